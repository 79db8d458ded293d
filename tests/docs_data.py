"""The files that pages take for granted: invented records, and a schema that a reader would have written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

SCHEMA = """\
[columns.age]
kind = "numeric"
lo = 18
hi = 100

[columns.smoker]
kind = "categorical"
values = ["never", "former", "current"]

[columns.outcome]
kind = "label"
classes = ["well", "ill"]

[columns.hospital]
kind = "agent"
"""

STAYS = """\
[columns.age]
kind = "numeric"
lo = 18
hi = 100

[columns.hospital]
kind = "agent"

[columns.days]
kind = "target"
lo = 0
hi = 60
"""


def patients(path: Path, seed: int = 0, records: int = 900) -> None:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 95, records)
    smoker = rng.choice(["never", "former", "current"], records)
    hospital = rng.choice(["north", "east", "south"], records)
    risk = 0.002 * (age - 50) ** 2 - 1 + 1.2 * (smoker == "current")
    outcome = np.where(rng.random(records) < 1 / (1 + np.exp(-risk)), "ill", "well")
    lines = [",".join(map(str, row)) for row in zip(age, smoker, hospital, outcome, strict=True)]
    path.write_text("\n".join(["age,smoker,hospital,outcome", *lines]) + "\n")


def stays(path: Path, seed: int = 0, records: int = 600) -> None:
    rng = np.random.default_rng(seed)
    age, hospital = rng.integers(18, 95, records), rng.choice(["north", "east"], records)
    days = np.clip(rng.normal(age / 4, 4), 0, 60).round(1)
    lines = [",".join(map(str, row)) for row in zip(age, hospital, days, strict=True)]
    path.write_text("\n".join(["age,hospital,days", *lines]) + "\n")


def numbers(path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((600, 3)).round(3)
    days = (20 * x[:, 0] + 30 * x[:, 1]).round(1)
    lines = [",".join(map(str, row)) for row in np.column_stack([x, days])]
    path.write_text("\n".join(["height,weight,dose,days", *lines]) + "\n")


def images(path: Path, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    np.savez(path, x=rng.random((600, 64)), y=rng.integers(0, 10, 600))


GIVEN: dict[str, Callable[[Path], None]] = {
    "patients.csv": patients,
    "new_patients.csv": lambda path: patients(path, seed=1, records=50),
    "schema.toml": lambda path: path.write_text(SCHEMA) and None,
    "stays.csv": stays,
    "new_stays.csv": lambda path: stays(path, seed=1, records=50),
    "stays-schema.toml": lambda path: path.write_text(STAYS) and None,
    "numbers.csv": numbers,
    "images.npz": images,
    "new.npz": lambda path: images(path, seed=1),
}
