"""What the owner of the records is told where they do not fit the declarations, and that nobody else is."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import cli
from tacit.errors import OwnerWarning

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
import pandas

N = 40
TEXT = """
[columns.age]
kind = "numeric"
lo = {lo}
hi = {hi}

[columns.job]
kind = "categorical"
values = ["{job}", "farming"]

[columns.seen]
kind = "date"
lo = {year}-01-01
hi = 2030-01-01

[columns.ill]
{outcome}
"""
RIGHT = {"lo": 15, "hi": 60, "job": "student", "year": 2000, "outcome": 'kind = "label"\nclasses = ["no", "yes"]'}


def frame() -> pandas.DataFrame:
    return pandas.DataFrame({
        "age": np.linspace(16, 59, N), "job": ["student"] * N, "seen": ["2015-03-01"] * N,
        "ill": ["no", "yes"] * (N // 2),
    })  # fmt: skip


Heard = tuple[Any, list[str]]  # all that is kept of a run, and what its owner was told


def fitted(model: Any, x: Any, y: Any) -> Heard:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, y)
    return model, [str(one.message) for one in caught if issubclass(one.category, OwnerWarning)]


def by_estimator(schema: str, table: pandas.DataFrame, *_: Any) -> Heard:
    number = "target" in schema
    kind = tacit.PrivateFederatedRegressor if number else tacit.PrivateFederatedClassifier
    return fitted(kind(schema=schema, rounds=1), table, table["ill"])


def by_command(schema: str, table: pandas.DataFrame, folder: Path, capsys: Any) -> Heard:
    (folder / "s.toml").write_text(schema)
    table.to_csv(folder / "t.csv", index=False)
    options = ["--rounds", "1", "--agents", "1", "--set", "data.test_fraction=0", "--out", str(folder / "run")]
    assert cli.main(["train", "--data", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), *options]) == 0
    out, err = capsys.readouterr()
    kept = [path.read_bytes() for path in sorted((folder / "run").rglob("*")) if path.is_file()]
    return [*kept, out], [line for line in err.splitlines() if "for the owner's eyes" in line]


FACES = pytest.mark.parametrize("face", [by_estimator, by_command])


@FACES
@pytest.mark.parametrize(("wrong", "says"), [
    ({"lo": 180, "hi": 720}, "'age' (declared as a number from 180 to 720): 40 outside the bounds, of 40 cells"),
    ({"job": "Student"}, "'job' (declared as one of 'Student', 'farming'): 40 with another value, of 40 cells"),
    ({"year": 2020}, "'seen' (declared as a date from 2020-01-01 to 2030-01-01): 40 outside the bounds, of 40 cells"),
    ({"outcome": 'kind = "label"\nclasses = ["No", "Yes"]'}, "ALL 40 of 40 training labels. Declared: 'No', 'Yes'."),
    ({"outcome": 'kind = "target"\nlo = 0\nhi = 9'}, "ALL 40 of 40 training labels. Declared: a number from 0 to 9."),
])  # fmt: skip
def test_the_owner_hears_once_what_hardly_ever_fits_and_no_file_or_attribute_does(
    tmp_path: Path, capsys: Any, face: Callable[..., Heard], wrong: dict[str, Any], says: str
) -> None:
    kept, said = face(TEXT.format(**RIGHT | wrong), frame(), tmp_path, capsys)
    assert len(said) == 1
    assert said[0].count(says) == 1
    for held in ("student", "2015-03", "16.0", "'yes'"):
        assert held not in said[0].replace(says, "")
    assert b"eyes" not in pickle.dumps(kept)
    assert b"of 40" not in pickle.dumps(kept)


@FACES
def test_all_that_does_not_fit_is_one_warning(tmp_path: Path, capsys: Any, face: Callable[..., Heard]) -> None:
    wrong = RIGHT | {"lo": 180, "hi": 720, "job": "x", "outcome": 'kind = "label"\nclasses = ["No", "Yes"]'}
    _, (said,) = face(TEXT.format(**wrong), frame(), tmp_path, capsys)
    assert all(part in said for part in ("'age'", "'job'", ". Also, labels", "ALL 40 of 40 training labels"))


@FACES
@pytest.mark.parametrize(("changed", "warns"), [(37, False), (38, True)])
def test_a_column_is_told_of_from_95_percent_on_whatever_is_wrong_with_its_cells(
    tmp_path: Path, capsys: Any, face: Callable[..., Heard], changed: int, warns: bool
) -> None:
    table = frame().astype({"age": object})
    table.loc[: changed - 1, "age"] = [*[None] * 12, *["old"] * 13, *[1e6] * (changed - 25)]
    _, said = face(TEXT.format(**RIGHT), table, tmp_path, capsys)
    assert len(said) == warns
    if warns:
        assert f"{changed - 25} outside the bounds, 13 unreadable, 12 missing, of 40 cells" in said[0]


@FACES
def test_the_owner_of_records_that_fit_hears_nothing(tmp_path: Path, capsys: Any, face: Callable[..., Heard]) -> None:
    assert face(TEXT.format(**RIGHT), frame(), tmp_path, capsys)[1] == []


def test_bounds_in_another_unit_are_told_of_too() -> None:
    x, y = np.linspace(16, 59, N)[:, None], np.arange(N) % 2
    model = tacit.PrivateFederatedClassifier(feature_bounds=(180, 720), classes=[0, 1], rounds=1)
    _, said = fitted(model, x, y)
    assert "'x0' (declared as a number from 180 to 720): 40 outside the bounds, of 40 cells" in said[0]
