"""Test error against rounds (benchmarks/rounds.py): the page says what the records say, and the rule holds on them."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from types import SimpleNamespace

import pytest
from benchmarks import rounds, tune_tables
from benchmarks.rounds import DEFAULT, ONE, OUT, RECORDS, RULE, SLACK, errors, fewest, grids, shown, shown_drawn

from tacit import record, toml
from tacit.run import compose
from tacit.run.presets import preset
from tacit.run.spec import Spec

PAGE = Path(__file__).parent.parent / "docs" / "rounds.md"
NAMES = sorted(path.stem.removeprefix("rounds-") for path in RECORDS.glob("rounds-*.toml"))
ALL = {name: record.read(RECORDS / f"rounds-{name}.jsonl") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_what_the_records_say(name):
    assert f"**{name}**\n\n{shown(ALL[name])}\n" in PAGE.read_text(encoding="utf-8")


def test_the_page_says_what_the_records_of_drawn_tables_say():
    assert shown_drawn(tune_tables.read(OUT)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["synthetic", "adult", "heart"])
def test_the_page_says_what_short_runs_were_before(name):
    own = {one["spec_hash"] for one in ALL[name]}
    before = [one | {"by_rule": False} for one in record.read(RECORDS / "rounds-before.jsonl")]
    was, now = errors([one for one in before if one["spec_hash"] in own]), errors(ALL[name])
    assert {epsilon for _, epsilon in was} == {epsilon for label, epsilon in now if label == DEFAULT}
    for (label, epsilon), found in was.items():
        cells = [f"{100 * mean(found[t]):.2f} -> {100 * mean(now[label, epsilon][t]):.2f}" for t in sorted(found)]
        assert f"| {name} | {epsilon:g} | {' | '.join(cells)} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_rounds_of_the_rule_are_within_a_tenth_of_the_best_at_every_budget(name):
    found = errors(ALL[name])
    budgets = [epsilon for label, epsilon in found if label == RULE]
    assert budgets
    for epsilon in budgets:
        ((chosen, told),) = found[RULE, epsilon].items()
        assert mean(told) <= (1 + SLACK) * min(map(mean, found[DEFAULT, epsilon].values())), (epsilon, chosen)


@pytest.mark.parametrize("name", NAMES)
def test_the_records_of_the_rule_have_the_rounds_that_it_gives_today(name):
    for one in ALL[name]:
        if one["by_rule"]:
            values = toml.parsed(one["spec"], one["name"])
            spec = Spec().with_values({key: values[key] for key in ("privacy.epsilon", "privacy.dp_delta")})
            facts = SimpleNamespace(n_agents=one["agents"], n_records=one["records"], target=None)
            assert one["rounds"] == compose.federated_rounds(spec, facts)


@pytest.mark.parametrize("name", NAMES)
def test_all_runs_of_a_table_have_the_same_budget_in_all(name):
    for one in ALL[name]:
        values = toml.parsed(one["spec"], one["name"])
        assert values["privacy.covers"] == "run" or values["algorithm.name"] != DEFAULT
        assert one["guarantee"].startswith(f"({values['privacy.epsilon']:g}, {values['privacy.dp_delta']:g})-DP")


def test_other_methods_run_at_the_first_budget_and_one_message_in_one_round():
    found = dict(grids(RECORDS / "rounds-mnist.toml"))
    budgets = found.pop(DEFAULT)["privacy.epsilon"]
    assert {grid["privacy.epsilon"] for grid in found.values()} == {budgets[0]}
    assert found[ONE]["run.rounds"] == 1
    steps = [grid["method.local_steps"] * max(grid["run.rounds"]) for label, grid in found.items() if label != ONE]
    assert max(steps) <= rounds.MOST_STEPS


def test_the_fewest_rounds_are_those_within_the_slack_of_the_best():
    by_rounds = {1: [0.5], 10: [0.2, 0.24], 25: [0.21], 100: [0.2]}
    assert fewest(by_rounds) == 10
    assert fewest(by_rounds, slack=0.05) == 25
    assert fewest(by_rounds, slack=0.0) == 100


def test_a_run_that_diverged_counts_as_a_guess():
    spec = preset("sound", "objt", "synthetic").toml()
    lost = {"name": "a", "spec": spec, "diverged": "lost", "by_rule": False}
    assert list(errors([lost])[DEFAULT, 1.0].values()) == [[1.0]]
