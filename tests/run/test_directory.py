"""A run directory appears whole or not at all, and says in one line which of its files is damaged."""

import json

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import Interrupted, RunDirectoryError
from tacit.report import source
from tacit.run.directory import RunDirectory, fitting, load_npz
from tacit.run.model import Model
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.run.train import resume, train
from tests.conftest import claim_too_much, encrypt

SMALL = {"data.source": "synthetic", "data.records": 200, "data.agents": 4, "run.rounds": 6}

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


@pytest.fixture
def finished(tmp_path):
    train(preset("released", "objt").with_values(SMALL), out=tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def stopped(tmp_path):
    def stop(done, _row):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(preset("released", "objt").with_values(SMALL), out=tmp_path / "run", listener=stop)
    return tmp_path / "run"


LONG = "a" * 300


@pytest.mark.parametrize(("out", "says"), [
    (".", "no name for a run"), ("", "no name for a run"), ("new/..", "no name for a run"),
    ("link", "is a link"), ("dangling", "is a link"), ("file", "is a file"), ("file/run", "cannot write"),
    (LONG, "too long"), (f"new/newer/{LONG}", "too long"), ("new/a\0b", "cannot write"),
])  # fmt: skip
def test_an_out_that_cannot_become_a_directory_is_refused_and_nothing_left_behind(tmp_path, monkeypatch, out, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "dangling").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunDirectoryError, match=says):
        train(preset("released", "objt").with_values(SMALL), out=out)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_of_the_greatest_length_and_an_empty_directory_are_used(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / ("a" * 255), tmp_path / "empty", tmp_path / "new" / "newer"):
        assert RunDirectory.create(path, Spec()).spec() == Spec()
        assert [file.name for file in path.iterdir()] == ["spec.toml"]


def test_numbers_that_are_not_finite_are_null_in_every_file(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", Spec())
    directory.append({"t": 1, "objective": float("nan"), "more": [float("inf"), 1.5]})
    directory.finish({"w": np.ones(1)}, {"objective": float("-inf"), "seconds": 1.0})

    def refuse(constant):
        raise AssertionError(constant)

    texts = [(tmp_path / "run" / name).read_text() for name in ("rounds.jsonl", "result.json")]
    rows, result = (json.loads(text, parse_constant=refuse) for text in texts)
    assert rows == {"t": 1, "objective": None, "more": [None, 1.5]}
    assert {key: result[key] for key in ("objective", "seconds")} == {"objective": None, "seconds": 1.0}


@pytest.mark.parametrize("content", [b"\xff\x00\xfe\n", b"{}\n", b"5\n", b'{"t": "1"}\n', b"[" * 200_000 + b"\n"])
def test_a_damaged_record_of_rounds_is_named(stopped, content):
    (stopped / "rounds.jsonl").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=r"rounds\.jsonl is damaged"):
        resume(stopped)


def test_a_missing_record_of_rounds_is_named(stopped):
    (stopped / "rounds.jsonl").unlink()
    with pytest.raises(RunDirectoryError, match=r"rounds\.jsonl is damaged"):
        resume(stopped)


@pytest.mark.parametrize(("file", "edit"), [
    ("spec.toml", lambda text: text.replace("seed = 0", "seed = 1")),
    ("rounds.jsonl", lambda text: "".join(text.splitlines(keepends=True)[:-1])),
    ("rounds.jsonl", lambda _: None),
    ("result.json", lambda text: text.replace('"guarantee": "', '"guarantee": "(0.1, 1e-9)-DP, ')),
    ("result.json", lambda text: text.replace('"rounds": ', '"rounds": 1, "rounds": ')),
    ("result.json", lambda text: text.replace('"seconds": ', '"spare": NaN, "seconds": ')),
    ("result.json", lambda text: json.dumps({key: value for key, value in json.loads(text).items() if key != "seal"})),
])  # fmt: skip
def test_a_finished_run_of_which_anything_was_edited_is_refused(finished, file, edit):
    before = (finished / file).read_text()
    after = edit(before)
    assert after != before
    if after is None:
        (finished / file).unlink()
    else:
        (finished / file).write_text(after)
    with pytest.raises(RunDirectoryError, match=rf"{file}.*(run {finished.name} again|start the run again)"):
        resume(finished)
    with pytest.raises(RunDirectoryError, match=f"[rR]un {finished.name} again"):
        source.read(finished)


@pytest.mark.parametrize("content", ["[]", "null", "{}", "5", "", '{"algorithm": "objt"}', "[" * 200_000])
def test_a_damaged_result_is_named(finished, content):
    (finished / "result.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=r"result\.json is damaged"):
        resume(finished)


@pytest.mark.parametrize("damage", [{"t": None}, {"t": np.array([1, 2])}, {"t": np.array(1.5)}, {"w": np.ones(3)}])
def test_a_checkpoint_without_its_arrays_or_with_others_is_named(stopped, damage):
    path = stopped / "checkpoint.npz"
    arrays = load_npz(path) | damage
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(RunDirectoryError, match=r"checkpoint\.npz is damaged"):
        RunDirectory.open(stopped).restore({"w": ("f", (20, 3)), "clock_names": ("U", (None,))})
    assert (stopped / "rounds.jsonl").read_text().count("\n") == 3  # nothing was cut back


def test_the_layout_of_arrays_is_a_kind_and_a_shape(tmp_path):
    arrays = {"w": np.ones((2, 3)), "names": np.array(["a"])}
    assert fitting(tmp_path, arrays, {"w": ("f", (2, None)), "names": ("U", (1,))}) is arrays
    for wrong in ({"z": ("f", ())}, {"w": ("iu", (2, 3))}, {"w": ("f", (2,))}, {"w": ("f", (3, None))}):
        with pytest.raises(RunDirectoryError, match="is damaged"):
            fitting(tmp_path, arrays, wrong)


@pytest.mark.parametrize("damage", [
    {"w": None}, {"w": np.ones(3)}, {"w": np.array([["a"]])}, {"w": np.full((20, 3), np.nan)}, {"w": np.ones((20, 4))},
    {"w_average": np.ones((20, 4))}, {"w_average": np.full((20, 3), np.inf)}, {"w_average": np.ones((20, 3)) > 0},
    {"classes": np.array("abc")}, {"classes": np.arange(3)}, {"classes": np.array([["a", "b", "c"]])},
    {"features": np.array(["u"])}, {"features": np.arange(20)}, {"intercept": np.array([True, False])},
    {"intercept": np.array("yes")}, {"schema": np.array(["a", "b"])},
])  # fmt: skip
def test_a_model_whose_arrays_do_not_fit_is_named(finished, damage):
    path = finished / "model.npz"
    arrays = load_npz(path) | damage
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(RunDirectoryError, match=r"model\.npz is damaged"):
        Model.read(path)


def test_a_model_is_read_from_its_directory_or_its_file(finished):
    np.testing.assert_array_equal(Model.read(finished).w, Model.read(finished / "model.npz").w)


def test_an_archive_that_asks_for_72_terabytes_or_a_password_is_damaged(finished, capsys):
    path = finished / "model.npz"
    claim_too_much(path)
    with pytest.raises(RunDirectoryError, match=r"model\.npz is damaged"):
        load_npz(path)
    np.savez(path, w=np.ones(3))
    encrypt(path)
    assert main(["predict", "--model", str(path), "--data", "absent.csv"]) == 2
    assert "is damaged" in capsys.readouterr().err
