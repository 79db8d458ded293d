"""Heart disease, shipped with the package: 920 patients of four hospitals, thirteen columns, many cells missing.

A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano, Heart Disease, UCI Machine Learning Repository (1989), CC BY 4.0,
doi 10.24432/C52P4X. Unchanged but for a header, a column that names the hospital, and "?" written as an empty cell.
Each hospital is an agent (Cleveland, Budapest, Zurich and Basel, Long Beach). The table is read by a schema,
_heart/schema.toml, whose every number is public knowledge, with its reason beside it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib import resources

from tacit.data import tables
from tacit.data.spec import DataSpec
from tacit.errors import DataError, IncompatibleError
from tacit.types import Federation

SHA256 = "faa4910e53dbdba7ae8cb45fc70e9e8032a1002ecdf874b7bbd5b1c8e9cade87"


def load(spec: DataSpec) -> Federation:
    """Load the patients of each hospital; a fraction of each hospital's is held out for testing."""
    if spec.agents is not None or spec.partition is not None:
        raise IncompatibleError("the agents of heart are its four hospitals: drop agents and partition.")
    folder = resources.files("tacit.data").joinpath("_heart")
    with resources.as_file(folder) as path:
        table = path / "heart.csv"
        try:
            digest = hashlib.sha256(table.read_bytes()).hexdigest()
        except OSError as error:
            raise DataError(f"heart.csv cannot be read ({error.strerror}): reinstall tacit.") from error
        if digest != SHA256:
            raise DataError("heart.csv does not hold the heart data (its sha256 differs): reinstall tacit.")
        return tables.load(replace(spec, source=str(table), schema=str(path / "schema.toml")))
