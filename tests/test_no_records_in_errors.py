"""Wrong arguments at every public entry point: whatever is printed, no value of a record is in it.

The entry points are those of `tacit.__all__`, the public methods of its classes, and the commands. A new one without a
case here fails the first test; a new parameter is tried without a word.
"""

import inspect
import io
import json
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import cli
from tacit.types import Federation, Shard, Target

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

TEXT, NUMBER = "QXMARK", 8675309  # somebody's, in every cell
SHOWS_A_MARK = re.compile(r"QXMARK|86753\d\d|8[.]67\d*e\+?0?6", re.IGNORECASE)

COLUMNS = {"age": [NUMBER + i for i in range(8)], "job": [f"{TEXT}{i % 3}" for i in range(8)], "label": [0, 1] * 4}
FRAME = pandas.DataFrame(COLUMNS)
CSV = FRAME.to_csv(index=False)
NUMBERS = np.column_stack([COLUMNS["age"]] * 2).astype(float)
SECRET = Shard(NUMBERS, np.array(COLUMNS["label"]))
FEDERATION = Federation((SECRET,), SECRET, 2)
WRONG: dict[str, Any] = {
    "frame": FRAME, "polars": polars.DataFrame(COLUMNS), "texts": FRAME["job"], "numbers": FRAME["age"],
    "categories": FRAME["job"].astype("category").cat.categories, "matrix": NUMBERS, "objects": FRAME.to_numpy(),
    "vector": NUMBERS[:, 0], "gaps": np.where(NUMBERS == NUMBER, np.nan, NUMBERS), "rows": FRAME.to_numpy().tolist(),
    "list": COLUMNS["job"], "whole": COLUMNS["age"], "pair": (NUMBER + 1, f"{TEXT}2"), "back": (NUMBER + 1, NUMBER),
    "set": {*COLUMNS["job"]}, "columns": COLUMNS, "column": {"age": NUMBERS[:, 0]}, "cell": {"age": [TEXT]},
    "csv": CSV, "json": FRAME.to_json(), "bytes": CSV.encode(),
    "federation": FEDERATION, "shard": SECRET, "array": FRAME["job"].to_numpy(),
    "ragged": [[NUMBER], [TEXT, NUMBER]], "frames": [FRAME],
}  # fmt: skip
SPELLED = {"classes": {*WRONG}, "class_names": {*WRONG}, "schema": {"columns"}}  # what declares is public, and shown


def plain(n: int = 8) -> tuple[Any, Any]:
    return np.linspace(0, 1, 2 * n).reshape(n, 2), np.arange(n) % 2


X, Y = plain()
OVER = Federation((Shard(X, Y),), Shard(X, Y), 2, features=("age", "job"))


def fits(kind: Any, **own: Any) -> Callable[..., Any]:
    """The constructor of an estimator, whose parameters are looked at when it is fitted."""

    def fit(**given: Any) -> Any:
        return kind(**{"feature_bounds": (0, 1), "rounds": 1, "random_state": 0, **own, **given}).fit(X, Y)

    fit.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return fit


OF_SCIKIT_LEARN = {"get_metadata_routing", "get_params", "set_params", "set_fit_request", "set_score_request"}
NO_ENTRY = {"__version__", "errors"}  # a text, and the classes of errors


def with_value(key: str) -> Callable[[Any], Any]:
    return lambda value: tacit.Spec().with_values({key: value})


Case = tuple[Callable[..., Any], dict[str, Any]]  # what to call, and arguments of which each is replaced by a wrong one


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """Return the cases of every entry point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {"feature_bounds": (0, 1), "rounds": 1, "random_state": 0}
        fitted = tacit.PrivateFederatedClassifier(**known, classes=[0, 1]).fit(X, Y)
        numeric = tacit.PrivateFederatedRegressor(**known, target_bounds=(0, 1)).fit(X, Y)
        schema = {"age": (0, 1), "job": ["a", "b", "c"]}
        schemed = tacit.PrivateFederatedClassifier(schema=schema, classes=[0, 1], rounds=1)
        schemed.fit(pandas.DataFrame({"age": [0, 1] * 4, "job": ["a", "b"] * 4}), Y)
        result = tacit.train(data=OVER, rounds=1, seed=0)
    spec = tacit.Spec()
    return {
        "train": [(tacit.train, {"data": OVER, "rounds": 1, "seed": 0}), (tacit.train, {"data": "none.csv"})],
        "load": [(tacit.load, {"source": "synthetic"}), (tacit.load, {"source": "heart"})],
        "preset": [(tacit.preset, {"name": "sound", "algorithm": "objt"})],
        "resume": [(tacit.resume, {"path": "nowhere"})],
        "Federation": [(Federation, {"shards": (Shard(X, Y),), "test": Shard(X, Y), "n_classes": 2})],
        "Federation.map": [(FEDERATION.map, {"change": lambda shard: shard})],
        "Shard": [(Shard, {"x": X, "y": Y})],
        "Shard.dtype": [],  # a type
        "Shard.elsewhere": [(Shard.elsewhere, {"n_records": 3, "n_features": 2})],
        "Shard.at_hand": [(SECRET.at_hand, {})],
        "Shard.rows": [(SECRET.rows, {"kept": slice(3)})],
        "Target": [(Target, {"lo": 0.0, "hi": 1.0})],
        "Target.scaled": [(Target(0, 1).scaled, {"values": X})],
        "Target.in_units": [(Target(0, 1).in_units, {"scores": X})],
        "Spec": [(tacit.Spec, {})],
        "Spec.with_values": [
            (spec.with_values, {"values": {}}),
            *((with_value(key), {"value": 1}) for key in spec.values()),
        ],
        "Spec.values": [(spec.values, {})],
        "Spec.toml": [(spec.toml, {})],
        "Spec.checked": [(spec.checked, {})],
        "Result": [],  # made by a run; a dataclass that looks at nothing
        "Result.predict": [(result.predict, {"data": X})],
        "Result.predict_proba": [(result.predict_proba, {"data": X})],
        "Result.plot": [(result.plot, {"path": "nowhere/at/all.png"})],
        "Model": [],  # made by a run, or read
        "Model.arrays": [(result.model.arrays, {})],
        "Model.read": [(tacit.Model.read, {"path": "nowhere"})],
        "Model.predict": [(result.model.predict, {"data": X}), (schemed.model_.predict, {"data": X})],
        "Model.predict_proba": [(result.model.predict_proba, {"data": X}), (schemed.model_.predict_proba, {"data": X})],
        "Model.inputs": [(result.model.inputs, {"data": X}), (schemed.model_.inputs, {"data": X})],
        "Model.table": [(result.model.table, {"path": "nowhere.csv"})],
        "Model.scores": [(result.model.scores, {"x": X})],
        "Model.shapes": [(result.model.shapes, {})],
        "Model.read_off": [(result.model.read_off, {"scores": X})],
        "Model.numbers": [(numeric.model_.numbers, {"scores": X})],
        "Model.error": [(result.model.error, {"scores": X, "labels": Y})],
        "PrivateFederatedClassifier": [(fits(tacit.PrivateFederatedClassifier, classes=[0, 1]), {})],
        "PrivateFederatedRegressor": [(fits(tacit.PrivateFederatedRegressor, target_bounds=(0, 1)), {})],
        **{
            f"{type(models[0]).__name__}.{method}": [
                (getattr(one, method), {"X": X, "y": Y} if method in ("fit", "score") else {"X": X}) for one in models
            ]
            for models in ((fitted, schemed), (numeric,))
            for method in ("fit", "score", "predict", "predict_proba", "decision_function")
            if hasattr(models[0], method)
        },
    }


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Collect all that is printed, warned, logged or raised."""
    said: list[str] = []
    out, handler = io.StringIO(), logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(out), redirect_stderr(out):
            warnings.simplefilter("always")
            try:
                yield said
            except (Exception, SystemExit) as error:
                said.append("".join(traceback.format_exception(error)))
        said += [str(one.message) for one in caught]
    finally:
        logging.getLogger().removeHandler(handler)
    said += [out.getvalue(), handler.stream.getvalue()]


def public(name: str) -> Iterator[str]:
    """Name an entry point and, of a class, its public methods."""
    yield name
    found = getattr(tacit, name)
    for method in dir(found) if inspect.isclass(found) else ():
        if not method.startswith("_") and method not in OF_SCIKIT_LEARN and callable(getattr(found, method)):
            yield f"{name}.{method}"


POINTS = [point for name in tacit.__all__ if name not in NO_ENTRY for point in public(name)]


def test_every_entry_point_has_a_case(cases: dict[str, list[Case]]) -> None:
    assert {*POINTS} == {*cases}
    assert {*COMMANDS} == {*cli.COMMANDS}


@pytest.mark.parametrize("point", POINTS)
def test_no_wrong_argument_shows_a_record(
    point: str, cases: dict[str, list[Case]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    leaks = []
    for call, right in cases[point]:
        for name in inspect.signature(call).parameters:
            for kind, wrong in WRONG.items():
                if kind in SPELLED.get(name, ()) or kind == "back":
                    continue
                with overheard() as said:
                    call(**right | {name: wrong})
                leaks += [f"{name}={kind}: {one.strip()[-200:]}" for one in said if SHOWS_A_MARK.search(one)]
    assert not leaks, "\n".join(leaks)


def test_a_federation_is_printed_without_its_records() -> None:
    assert not SHOWS_A_MARK.search(f"{FEDERATION} {SECRET}")


@pytest.mark.parametrize("given", WRONG)
def test_data_are_refused_by_their_type(given: str) -> None:
    if given in ("federation",):
        return
    with pytest.raises(tacit.errors.InputError, match=r"data takes .*got (an? \w+|a text of \d+ lines)"):
        tacit.train(data=WRONG[given])
    with pytest.raises(tacit.errors.InputError, match=r"source takes .*got (an? \w+|a text of \d+ lines)"):
        tacit.load(WRONG[given])


# --- commands, which read files


def files(folder: Path) -> dict[str, str]:
    """Write marked records in every format, and files that are damaged or of another kind."""
    FRAME.to_csv(folder / "t.csv", index=False)
    if find_spec("pyarrow"):
        FRAME.to_parquet(folder / "t.parquet", index=False)
    (folder / "texts.csv").write_text("\n".join(["job", *COLUMNS["job"]]))
    (folder / "ragged.csv").write_text(CSV + f"{TEXT},1\n")
    (folder / "one.csv").write_text(f"age,label,agent\n{NUMBER},{TEXT},a\n{NUMBER},{TEXT},b\n")
    (folder / "real.csv").write_text("age,label,agent\n" + "".join(f"{i},{NUMBER + i / 8},a\n" for i in range(30)))
    (folder / "schema.toml").write_text(f'[columns.age]\nkind = "numeric"\nlo = 0\nhi = 1\n{TEXT} = [')
    np.savez(folder / "t.npz", x=FRAME[["job"]].to_numpy().astype(str), y=COLUMNS["job"])
    np.savez(folder / "model.npz", w=NUMBERS, classes=COLUMNS["job"])
    (folder / "t.json").write_text(json.dumps(COLUMNS))
    (folder / "damaged.json").write_text(json.dumps(COLUMNS)[:-9])
    for name, x, y in (("leaf-x", COLUMNS["job"], [0, 1] * 4), ("leaf-y", [0.5] * 8, COLUMNS["age"])):
        records = {"users": ["a"], "num_samples": [8], "user_data": {"a": {"x": [[one] for one in x], "y": y}}}
        for part in ("train", "test"):
            (folder / name / part).mkdir(parents=True)
            (folder / name / part / "all.json").write_text(json.dumps(records))
    return {path.name: str(path) for path in folder.iterdir()}


MODEL = "{model}"  # the directory of a finished run
COMMANDS: dict[str, list[str]] = {
    "new": ["new project --data {file} --label label", "new project --data {file} --label nowhere"],
    "train": [
        "train --data {file}", "train --data {file} --agents 2 --label-column label", "train --data {file} --agents 2",
        "train --data heart --schema {file}", "train --config {file}", "train --resume {file}",
        "train --data {file} --label-column job --agents 2",
        "train --data mnist --test {file}",
    ],
    "sweep": ["sweep --config {file}"],
    "compare": ["compare --config {file}", "compare --data {file} --agents 2 --plan"],
    "reproduce": [],  # bundled data
    "report": ["report {file}"],
    "card": ["card {file}", "card {model} --audit {file}"],
    "ui": ["ui {file} --port 99999"],
    "predict": ["predict --model {model} --data {file}", "predict --model {file} --data {file}"],
    "account": [],  # numbers
    "audit": ["audit --config {file}"],
    "federate": ["federate link {file}", "federate node {file}", "federate init study --sites a,b --config {file}"],
    "ledger": ["ledger show {file}", "ledger verify {file}"],
    "agent": ["agent check {file}"],
    "data": ["data describe {file}", "data check {file} --schema {file}", "data schema init {file} --label-column x"],
    "info": [],  # the machine
}  # fmt: skip
DRAFTS = ("new project", "data schema init")  # they show the owner what they read, unless they refuse


@pytest.mark.parametrize("command", [line for lines in COMMANDS.values() for line in lines])
def test_no_command_shows_a_record_of_a_wrong_file(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    model = tmp_path / "run"
    if MODEL in command:
        tacit.train(data=OVER, rounds=1, seed=0, out=model)
    leaks = []
    for name, path in files(tmp_path / "in").items():
        code = 0
        with overheard() as said:
            code = cli.main(command.format(file=path, model=model).split())
        if code == 0 and command.startswith(DRAFTS):
            continue
        leaks += [f"{name}: {one.strip()[-200:]}" for one in said if SHOWS_A_MARK.search(one) or "Traceback" in one]
    assert not leaks, "\n".join(leaks)
