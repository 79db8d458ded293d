"""The paper's Table 1."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tacit.data.describe import describe, table
from tacit.types import Federation, Shard


def agents(*sizes: int) -> Federation:
    shards = [Shard(np.tile([[0.0, 1.0]], (n, 1)), np.arange(n) % 2) for n in sizes]
    return Federation(tuple(shards), shards[0], 2, name="small", bounds=(0.0, 1.0))


def test_the_facts_are_plain_numbers() -> None:
    facts = describe(agents(1, 2, 6), labels=True)
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["I"], facts["J"], facts["K"], facts["P"]) == (9, 2, 2, 3)
    assert (facts["min"], facts["max"], facts["mean"], facts["test_records"]) == (1, 6, 3, 1)
    assert facts["sd"] == pytest.approx(7**0.5)  # (4 + 1 + 9) / (3 - 1)
    assert facts["density"] == 0.5
    assert facts["label_counts"] == {"0": [1, 0], "1": [1, 1], "2": [3, 3]}


def test_one_agent_has_no_spread() -> None:
    assert describe(agents(5))["sd"] == 0


def test_the_table_is_aligned_and_has_a_row_a_federation() -> None:
    lines = table(agents(1, 2, 6), agents(4)).splitlines()
    assert lines[3].split() == ["small", "9", "2", "2", "3", "3", "2.65"]
    assert lines[4].split() == ["small", "4", "2", "2", "1", "4", "0"]
    assert len(lines[1]) == len(lines[2]) == len(lines[3]) == len(lines[4])
    for letter, word in zip("IJKP", ("data", "features", "classes", "agents"), strict=True):
        assert lines[1].index(f"({letter})") + 3 == lines[0].index(word) + len(word)
