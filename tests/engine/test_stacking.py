"""Blocks hold every record once, waste little, and are no larger than asked."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.engine.stacking import SLACK, blocks
from tacit.run.build import setup
from tacit.run.presets import preset
from tacit.types import Norm
from tests.conftest import federation


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 60))
def test_blocks_hold_every_record_once(sizes, most):
    over = federation(len(sizes), sizes=tuple(sizes))
    agents = setup(preset("paper", "objt"), over).agents
    x_norm = [{Norm.L1: Norm.L1.of_rows(shard.x)} for shard in over.shards]
    found = [[] for _ in sizes]
    padded = 0
    for block in blocks(agents, x_norm, most):
        assert block.y.size <= most
        padded += block.y.size
        for p, x, y, size in zip(block.agents, block.x, block.y, block.x_norm[Norm.L1], strict=True):
            np.testing.assert_allclose(size.ravel(), Norm.L1.of_rows(x), rtol=1e-6)
            real = size.ravel() > 0  # features are positive here
            assert not x[~real].any()
            assert not y[~real].any()
            found[p] += [(*row, label) for row, label in zip(x[real].tolist(), y[real].ravel().tolist(), strict=True)]
    for records, shard in zip(found, over.shards, strict=True):
        expected = [(*row, label) for row, label in zip(shard.x.tolist(), shard.y.tolist(), strict=True)]
        assert sorted(records) == sorted(expected)
    assert padded <= SLACK * sum(sizes)
