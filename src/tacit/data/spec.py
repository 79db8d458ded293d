"""`DataSpec`: the section [data] of a spec. It says which records there are, who holds them and what is public."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Number

from tacit.data.classes import check_class_names, parse_classes
from tacit.data.partition import PARTITIONS
from tacit.data.transform import MODES, NORMS
from tacit.errors import SpecError, printable
from tacit.registry import key
from tacit.types import Target

GIVEN = "given in Python: "  # what the source of records begins with that no file holds
ESTIMATOR = "estimator"  # the name of records that an estimator was given
# by the name of a source, or by what may lie at a path (tacit.data.sources): who reads the keys below
DEALT = {"data.source": ("mnist", "heart", "synthetic", "tables")}
HELD_OUT = {"data.source": ("heart", "tables"), "data.test": (None,)}
WITHOUT_SCHEMA = {"data.source": ("tables",), "data.schema": (None,)}
LEAF, SYNTHETIC, RESCALED = {"data.source": ("LEAF",)}, {"data.source": ("synthetic",)}, {"data.row_norm": tuple(NORMS)}


@dataclass(frozen=True)
class DataSpec:
    """The records that a run is about, as plain values."""

    source: str = key(
        "mnist", "mnist, heart, synthetic, a LEAF directory, a table, or a directory of tables", path=True
    )
    agents: int | None = key(None, "number of agents, where the source does not say")
    partition: str | None = key(None, "how records are dealt to agents", choices=PARTITIONS)
    alpha: float = key(0.5, "concentration of the dirichlet partition: smaller is more skewed",
                       when={"data.partition": ("dirichlet",)})  # fmt: skip
    seed: int = key(0, "seed of the partition and of synthetic data", when=DEALT)
    test: str | None = key(None, "a table of test records; without it test_fraction is held out", path=True)
    test_fraction: float = key(
        0.2, "share of each agent's records held out for testing; 0 for no test set", when=HELD_OUT
    )
    label_column: str = key("label", "the column that holds the label", when=WITHOUT_SCHEMA)
    agent_column: str = key("agent", "the column that names the agent", when=WITHOUT_SCHEMA)
    class_names: str | tuple[str, ...] | None = key(
        None, "tables: the public classes, with commas between them, or K for 0 to K-1"
    )
    target_low: float | None = key(None, "tables: the label is a number to predict, and this its public lower bound")
    target_high: float | None = key(None, "tables: the public upper bound of that number")
    schema: str | None = key(
        None, "tables: a schema.toml that declares the columns (tacit data schema init)", path=True
    )
    low: float | None = key(None, "tables, LEAF without invert: the public lower bound of every feature")
    high: float | None = key(None, "tables, LEAF without invert: the public upper bound of every feature")
    invert: bool = key(True, "LEAF images: use 1 - x, so that ink is 1", when=LEAF)
    dedup: bool = key(False, "LEAF: drop the record that its pipeline writes twice", when=LEAF)
    strangers: bool = key(True, "LEAF: test on users without training records too", when=LEAF)
    class_count: int | None = key(None, "LEAF: the public number of classes, 62 for FEMNIST; else 1 + largest label")
    records: int = key(2000, "synthetic: records in all", when=SYNTHETIC)
    features: int = key(20, "synthetic: features", when=SYNTHETIC)
    classes: int = key(3, "synthetic: classes", when=SYNTHETIC)
    intercept: bool = key(False, "append a feature that is always one")
    row_norm: str = key("none", "rescale each record to row_bound in this norm", "none", *NORMS)
    row_bound: float = key(1.0, "the norm that row_norm rescales to", when=RESCALED)
    row_mode: str = key("clip", "clip: only longer records; unit: all records", *MODES, when=RESCALED)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, text = getattr(self, one.name), "str" in str(one.type)
            if not (value is None or isinstance(value, str if text else Number) or one.name == "class_names"):
                raise SpecError(f"data.{one.name} takes a {'text' if text else 'number'}, got {printable(value)}.")

    @property
    def n_agents(self) -> int:
        """The number of agents where the source names none: ten, as in the paper, unless it is given."""
        return 10 if self.agents is None else self.agents

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public range of every feature (low, high), None where it is not declared."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def target(self) -> Target | None:
        """The public range of the label, where it is declared to be a number."""
        low, high = self.target_low, self.target_high
        return None if low is None or high is None else Target(low, high)

    @property
    def declared_classes(self) -> tuple[str, ...] | None:
        """The public classes, None where they are not declared: a text names them, and Python may give a tuple."""
        names = self.class_names
        if isinstance(names, str):
            return parse_classes(names)
        return None if names is None else check_class_names(names)

    def checked(self) -> DataSpec:
        """This spec, or an error where the range of the features or of the label is half given, infinite or empty."""
        given = [end for end in (self.low, self.high) if end is not None]
        if given and not (len(given) == 2 and -math.inf < given[0] < given[1] < math.inf):
            raise SpecError(
                f"data.low and data.high go together, both finite and low < high: got {self.low} and {self.high}. "
                "Where features have no public range, drop both and clip (privacy.sensitivity = clip)."
            )
        if (self.target_low is None) != (self.target_high is None):
            raise SpecError(
                f"data.target_low and data.target_high go together: got {self.target_low} and {self.target_high}. "
                "Give the public range of the label, or drop both where the label names classes."
            )
        _ = self.target  # refuses a range that is empty or infinite
        return self
