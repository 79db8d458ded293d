"""The yardstick of stand-ins for missing agents measures what it says."""

import numpy as np
import pytest
from benchmarks.stale import ABSENCES, RULES, absent, gradients, rows, table, trained

from tacit.engine.plain import PlainEngine
from tacit.rounds import rounds as loop
from tacit.run import build
from tacit.run.presets import preset

ROUNDS = 6


def test_with_nobody_missing_every_rule_is_the_run_of_the_plain_engine():
    spec = preset("sound", "objt", "heart").with_values({"run.rounds": ROUNDS})
    setup = build.admm_setup(spec, build.federation(spec))
    values = gradients(setup)
    engine = PlainEngine([setup.agents], setup.shape)
    *_, ((state, _),) = loop([setup.server], [setup.server.start()], engine.exchange_all)
    for rule in RULES:
        w = trained(setup, values, rule, absent("nobody", ROUNDS, len(setup.agents), 0))
        np.testing.assert_allclose(w, state.w, rtol=1e-6, atol=1e-9)


def test_absences_are_those_that_are_named():
    assert not absent("nobody", 300, 9, 0).any()
    assert absent("30 %", 300, 9, 0).mean() == pytest.approx(0.3, abs=0.04)
    long = absent("a third of the run", 300, 9, 0)
    assert long[:, 0].sum() == 100
    assert not long[:, 1:].any()


def test_rows_and_table_have_every_case():
    found = list(rows("heart", 1.0, 2, 1, (1,)))
    assert len(found) == 1 + (len(ABSENCES) - 1) * len(RULES)
    assert len(table(found)) == 2 + len(found)
