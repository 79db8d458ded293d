"""What Python prints of a result, a model and records is short, and holds no record."""

import numpy as np
import pytest

import tacit
from tacit.types import ColumnFeatures

MARK = 0.8152637  # of no other number here


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return tacit.train(data="heart", rounds=2, seed=0, out=tmp_path_factory.mktemp("repr") / "run")


def shown(value):
    lines = repr(value).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 240
    return "\n".join(lines)


def test_a_result_is_shown_in_ten_lines_that_say_what_was_trained_and_what_is_guaranteed(result):
    told = shown(result)
    for words in ("objt on heart, 4 agents, 2 rounds", "920 records: 735 train, 185 held out", "test error", "-DP for"):
        assert words in told


def test_a_model_is_shown_by_its_sizes(result):
    assert "('healthy', 'diseased')" in shown(result.model)
    assert f"w {result.model.w.shape}" in shown(result.model)


def test_shapes_are_shown_by_their_largest_columns(result):
    shapes = result.model.shapes()
    told = shown(shapes)
    assert told.splitlines()[1].strip() == repr(shapes.columns[0])
    assert f"and {len(shapes.columns) - 8} more columns" in told
    assert "values" in shown(shapes.columns[0])


def test_records_are_shown_by_their_number_and_never_by_a_value():
    x = np.full((3, 2), MARK, np.float32)
    shard = tacit.Shard(x, np.array([0, 1, 1]))
    federation = tacit.Federation((shard, shard), shard, 2, "marked", columns=(ColumnFeatures("a", 0, 1),))
    for one in (shard, federation):
        assert "0.81" not in shown(one)
    assert repr(shard) == "Shard(3 records of 2 features)"
    assert "2 agents, 6 training records, 3 test records, 2 features, predicts 2 classes" in repr(federation)


def test_names_of_any_length_keep_a_repr_short():
    names = tuple(f"{'n' * 5000}{k}" for k in range(300))
    x = np.zeros((300, 1), np.float32)
    federation = tacit.Federation((tacit.Shard(x, np.arange(300)),), tacit.Shard(x[:0], np.zeros(0, int)), 300,
                                  "f" * 9000, classes=names)  # fmt: skip
    shown(federation)
    shown(tacit.Model(np.zeros((1, 300)), np.zeros((1, 300)), names, ()))
