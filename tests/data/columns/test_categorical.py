"""Categories: levels for cells that are missing, and for values that are not listed."""

from __future__ import annotations

import numpy as np

from tacit.data.column_kinds import CategoricalColumn, Tally


def test_missing_and_unknown_cells_can_be_levels_of_their_own() -> None:
    kind = CategoricalColumn(("a", "b"), drop="a", other="level", missing="level", marks=("-",))
    assert kind.features("c") == ("c=b", "c=other", "c=missing")
    x, tally = kind.encode(np.array(["a", "b", "z", "", "?", "-", None, "missing", "other"], dtype=object), ("?",))
    assert [row.index(1) if 1 in row else None for row in x.tolist()] == [None, 0, 1, 2, 2, 2, 2, 2, 1]
    assert tally == Tally(missing=5, unknown=2)


def test_a_level_that_is_listed_already_is_that_value() -> None:
    kind = CategoricalColumn(("missing", "b"), missing="level")
    assert kind.features("c") == ("c=missing", "c=b")
    assert kind.encode(np.array(["missing", "", "b"], dtype=object), ())[0].tolist() == [[1, 0], [1, 0], [0, 1]]


def test_where_level_is_a_value_it_means_that_value() -> None:
    kind = CategoricalColumn(("level", "slope"), missing="level")
    assert kind.features("ground") == ("ground=level", "ground=slope")
    assert kind.encode(np.array([""], dtype=object), ())[0].tolist() == [[1, 0]]
