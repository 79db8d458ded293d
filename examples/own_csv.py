"""Your own CSV: a table of three hospitals, a schema of public knowledge, a model that may be released.

    python examples/own_csv.py

The table is invented here, so that the example runs anywhere. Put your own file and your own schema in its place:
`tacit new`, or `tacit data schema init`, drafts a schema from a CSV (docs/own-data.md).
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

import tacit

SCHEMA = """
[columns.hospital]
kind = "agent"

[columns.age]           # years: adults, and hardly anybody is older than 100
kind = "numeric"
lo = 18
hi = 100

[columns.smoker]        # the three answers of the form; an empty cell is an answer too
kind = "categorical"
values = ["never", "former", "current"]
missing = "level"

[columns.outcome]
kind = "label"
classes = ["well", "ill"]
"""


def write_table(path, n=1500):
    """Invented patients, whose risk is least in the middle of life; one smoker cell in twenty is empty."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, n)
    smoker = rng.choice(["never", "former", "current"], n)
    risk = 0.002 * (age - 50) ** 2 - 1 + 1.2 * (smoker == "current")
    ill = rng.random(n) < 1 / (1 + np.exp(-risk))
    smoker[rng.random(n) < 0.05] = ""
    hospital = rng.choice(["north", "east", "south"], n)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["hospital", "age", "smoker", "outcome"])
        out.writerows(zip(hospital, age, smoker, np.where(ill, "ill", "well"), strict=True))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "patients.csv")
        (folder / "schema.toml").write_text(SCHEMA)
        # no seed: the noise is the operating system's, and differs every time
        result = tacit.train(data=folder / "patients.csv", schema=folder / "schema.toml", epsilon=1.0, dp_delta=1e-6)
        print(f"test error  {result.test_error:.1%}")
        print(f"guarantee   {result.guarantee}")
        new = {"age": [25, 80], "smoker": ["never", "current"]}
        print(f"new ones    {result.model.predict(new)}")


if __name__ == "__main__":
    main()
