"""A model takes new records as their owner has them, through its own schema, and is read from a whole run only."""

from __future__ import annotations

import csv
import json
import shutil
from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import record
from tacit.cli import main
from tacit.data.column_kinds import CategoricalColumn
from tacit.errors import DataError, RunDirectoryError
from tacit.run.directory import RunDirectory

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")

SCHEMA = """
[columns.age]
kind = "numeric"
lo = 20
hi = 90
[columns.smoker]
kind = "categorical"
values = ["never", "ever"]
[columns.dose]
kind = "numeric"
lo = 0
hi = 1000
[columns.outcome]
kind = "label"
classes = ["ill", "well"]
[columns.hospital]
kind = "agent"
"""


def patients(n: int = 120) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    age, dose = rng.integers(20, 91, n), rng.integers(0, 1001, n)
    return {
        "hospital": ["abc"[i % 3] for i in range(n)],
        "dose": dose.tolist(),
        "age": age.tolist(),
        "smoker": rng.choice(["never", "ever"], n).tolist(),
        "outcome": np.where((age - 20) / 70 > dose / 1000, "ill", "well").tolist(),
    }


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `schema` (through s.toml) and `plain` (numbers alone), and the table of each."""
    here = tmp_path_factory.mktemp("models")
    (here / "s.toml").write_text(SCHEMA)
    write(here / "schema.csv", patients())
    write(here / "plain.csv", {name: column for name, column in patients().items() if name != "smoker"})
    common = ["--algorithm", "iadmm-prox", "--rounds", "300", "--set", "data.intercept=true", "-qq"]
    roles = ["--label-column", "outcome", "--agent-column", "hospital"]
    for name, how in (("schema", ["--schema", str(here / "s.toml")]), ("plain", roles)):
        assert main(["train", "--data", str(here / f"{name}.csv"), "--out", str(here / name), *how, *common]) == 0
    return here


def wrong(predicted: list[str]) -> float:
    return float(np.mean(np.array(predicted) != patients()["outcome"]))


def test_a_schema_is_applied_however_records_are_given(folder: Path) -> None:
    model = tacit.Model.read(str(folder / "schema"))
    columns = patients()
    by_path = model.predict(str(folder / "schema.csv"))
    assert wrong(by_path) < 0.2
    in_order = np.array([columns[name] for name in ("age", "smoker", "dose")], dtype=object).T
    given: list[Any] = [
        folder / "schema.csv", columns, UserDict(columns), {k: np.array(v) for k, v in columns.items()}, in_order,
        in_order.astype(str), in_order.tolist(),
    ]  # fmt: skip
    for data in given:
        assert model.predict(data) == by_path
    assert model.predict(columns, averaged=True) == model.predict(folder / "schema.csv", averaged=True)


def test_without_a_schema_columns_are_features(folder: Path) -> None:
    model = tacit.Model.read(folder / "plain" / "model.npz")
    columns = patients()
    x = np.array([columns["dose"], columns["age"]]).T
    by_array = model.predict(x)
    assert by_array == model.predict(columns) == model.predict({"age": columns["age"], "dose": columns["dose"]})
    assert by_array == [model.classes[k] for k in model.scores(x).argmax(axis=1)]
    table = write(folder / "new.csv", {"age": columns["age"], "dose": columns["dose"]})
    assert by_array == model.predict(table)


def test_encoded_features_have_scores(folder: Path) -> None:
    model = tacit.Model.read(folder / "schema")
    encoded = model.inputs(patients())
    assert (encoded.min(), encoded.max(), encoded.shape) == (0, 1, (120, 4))
    assert model.predict(patients()) == [model.classes[k] for k in model.scores(encoded).argmax(axis=1)]


class Frame:
    """What predicting needs of a pandas DataFrame: its columns by name, and a value that is not there."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns = columns

    def keys(self) -> list[str]:
        return list(self.columns)

    def __getitem__(self, name: str) -> Any:
        return np.array(self.columns[name], dtype=object)


class NotThere:
    """pandas.NA: it equals nothing, and is neither true nor false."""

    def __ne__(self, other: object) -> Any:
        return self

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_a_frame_is_its_columns_and_a_value_that_is_not_there_is_missing(folder: Path) -> None:
    model = tacit.Model.read(folder / "schema")
    frame = Frame(dose=[100, NotThere(), None], age=[80, 80, float("nan")], smoker=["never", "ever", NotThere()])
    empty = {"dose": ["100", "", ""], "age": ["80", "80", ""], "smoker": ["never", "ever", ""]}
    assert model.inputs(frame).tolist() == model.inputs(empty).tolist()


@pytest.mark.parametrize(("run", "data", "says"), [
    ("schema", {"age": [1], "smoker": ["ever"]}, "lacks 'dose' of the model's schema"),
    ("schema", {"age": [1], "smoker": ["ever"], "dose": [1, 2]}, "one value a record"),
    ("schema", {"age": 1, "smoker": "ever", "dose": 2}, "one value a record"),
    ("schema", np.ones((3, 4)), r"3 columns: 'age', 'smoker', 'dose'"),
    ("schema", np.ones(3), r"3 columns: 'age', 'smoker', 'dose'"),
    ("schema", 5, "3 columns"),
    ("plain", {"age": [1]}, "lacks 'dose'"),
    ("plain", {"age": ["old"], "dose": [1]}, "'age' holds no numbers"),
    ("plain", {"age": [1, 2], "dose": [1]}, "one value a record"),
    ("plain", np.ones((3, 5)), "2 features"),
    ("plain", np.ones(2), "2 features"),
    ("plain", [["a", "b"]], "no numbers"),
    ("plain", [[1.0, float("nan")]], "NaN or inf"),
    ("plain", "nowhere.csv", "does not exist"),
])  # fmt: skip
def test_records_that_do_not_fit_are_named(folder: Path, run: str, data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        tacit.Model.read(folder / run).predict(data)


def test_a_model_without_names_takes_no_columns() -> None:
    model = tacit.Model(np.ones((2, 2)), np.ones((2, 2)), ("a", "b"), ())
    assert model.predict(np.ones((1, 2))) == ["a"]
    with pytest.raises(DataError, match="names no features"):
        model.predict({"u": [1.0], "v": [1.0]})


def test_the_command_predicts_what_the_model_predicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--model", str(folder / "schema"), "--data", str(folder / "schema.csv"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    predicted = tacit.Model.read(folder / "schema").predict(folder / "schema.csv")
    assert said == {"predictions": predicted, "error": pytest.approx(wrong(predicted))}


def test_a_record_without_a_label_does_not_count_in_the_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = patients()
    predicted = tacit.Model.read(folder / "schema").predict(columns)
    for labels, error in ((["", *predicted[1:]], 0.0), ([""] * 120, None)):
        table = write(folder / "few.csv", columns | {"outcome": labels})
        assert main(["predict", "--model", str(folder / "schema"), "--data", str(table), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["error"] == error


# --- a model is read from a whole run


def edit(path: Path) -> None:
    arrays = dict(np.load(path))
    np.savez(path, **(arrays | {"w": -arrays["w"]}))


def test_a_run_whose_model_was_edited_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folder / "plain", tmp_path / "run")
    edit(run / "model.npz")
    with pytest.raises(RunDirectoryError, match=r"model\.npz was changed after"):
        tacit.Model.read(run)
    predict = ["predict", "--model", str(run), "--data", str(folder / "plain.csv")]
    for command in (predict, ["train", "--resume", str(run)], ["report", str(run)]):
        assert main(command) == 2
        assert "was changed after" in capsys.readouterr().err
    tacit.Model.read(run / "model.npz")  # a file by itself has no seal


def test_a_run_whose_result_was_edited_predicts_nothing(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "plain", tmp_path / "run")
    text = (run / "result.json").read_text()
    (run / "result.json").write_text(text.replace('"guarantee": "not private', '"guarantee": "private'))
    with pytest.raises(RunDirectoryError, match=r"result\.json was changed after"):
        tacit.Model.read(run)


def test_a_run_that_is_not_finished_has_no_model(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "plain", tmp_path / "run")
    (run / "result.json").unlink()
    with pytest.raises(RunDirectoryError, match=r"not a finished run.*--resume"):
        tacit.Model.read(run)
    with pytest.raises(RunDirectoryError, match="does not exist"):
        tacit.Model.read(tmp_path / "nowhere")


def test_a_result_of_an_earlier_version_has_no_hash_of_its_model_and_is_read(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "plain", tmp_path / "run")
    old = {key: value for key, value in json.loads((run / "result.json").read_text()).items() if key != "model_hash"}
    (run / "result.json").write_text(json.dumps(record.with_seal(old)))
    assert tacit.Model.read(run).classes == ("ill", "well")
    assert RunDirectory.open(run).result()["algorithm"] == "iadmm-prox"


def test_a_record_is_predicted_the_same_however_it_is_given(tmp_path: Path) -> None:
    """Without a schema features are float32, as in a table."""
    close = np.array([[0.1, 0.10000000000001], [0.10000000000001, 0.1]])
    model = tacit.Model(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 2)), ("p", "q"), ("a", "b"))
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in close.tolist()))
    columns = {"a": close[:, 0], "b": close[:, 1]}
    for data in (close, columns):
        np.testing.assert_array_equal(model.inputs(data), model.inputs(tmp_path / "t.csv"))


@pytest.mark.parametrize("spelled", [("true", "false"), ("True", "False")])
def test_a_truth_value_is_the_category_that_the_schema_spells(spelled: tuple[str, str]) -> None:
    """A CSV file says true; a DataFrame or a Parquet file made of it holds a truth value."""
    kind = CategoricalColumn(spelled)
    typed, _ = kind.encode(np.array([True, False, True]), ())
    text, _ = kind.encode(np.array([spelled[0], spelled[1], spelled[0]], dtype=object), ())
    np.testing.assert_array_equal(typed, text)
    assert typed.sum() == 3
