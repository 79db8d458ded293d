"""What the number of rounds does to the rules of the sound preset, and how many rounds a federation takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.run import build, compose, rules
from tacit.run.presets import preset
from tacit.types import Federation, Shard, Target

BUDGETS = (0.01, 0.3, 1.0, 3.0, 8.0, 100.0, math.inf)


@pytest.fixture(scope="module")
def table():
    return tacit.load("synthetic", agents=3, records=300, features=4, classes=2)


@pytest.fixture(scope="module")
def images(table):
    return replace(table, columns=(), recipe=None, image=(2, 2, 1))


def spec(epsilon=1.0, **values):
    return preset("sound", "objt", "synthetic").with_values({"privacy.epsilon": epsilon, **values})


def test_less_noise_takes_more_rounds_and_none_takes_as_many_as_the_preset(table):
    rounds = [compose.federated_rounds(spec(epsilon), table) for epsilon in BUDGETS]
    assert rounds == sorted(rounds)
    assert rounds[0] == rules.FEWEST_ROUNDS
    assert rounds[-1] == rules.USUAL_ROUNDS == spec().run.rounds


def test_the_rounds_of_a_federation_do_not_depend_on_the_rounds_that_a_spec_names(table):
    asked = {compose.federated_rounds(spec(**{"run.rounds": rounds}), table) for rounds in (1, 25, 300)}
    assert len(asked) == 1


def test_the_rounds_of_a_federation_are_read_off_public_numbers_alone(table):
    blank = replace(table, shards=tuple(replace(own, x=own.x * 0, y=own.y * 0) for own in table.shards))
    for epsilon in BUDGETS:
        assert compose.federated_rounds(spec(epsilon), blank) == compose.federated_rounds(spec(epsilon), table)


@pytest.mark.parametrize("noise", [0.0, 5e-324, 1e-300, 1e-4, 1.0, 1e300, math.inf])
def test_any_noise_gives_rounds_between_the_fewest_and_the_usual(noise, table):
    found = rules.federated_rounds(noise, table)
    assert isinstance(found, int)
    assert rules.FEWEST_ROUNDS <= found <= rules.USUAL_ROUNDS


def test_four_times_the_noise_takes_half_the_rounds(table):
    noise = rules.LOUD / 9
    assert rules.federated_rounds(noise, table) == 3 * rules.FEWEST_ROUNDS
    assert rules.federated_rounds(noise * 4, table) == math.ceil(1.5 * rules.FEWEST_ROUNDS)


def test_a_number_to_predict_takes_more_rounds(table):
    own = Shard(table.shards[0].x, np.zeros(len(table.shards[0]), np.float32))
    numbers = Federation((own,), own, 1, "numbers", target=Target(0.0, 1.0))
    assert rules.federated_rounds(1.0, numbers) > rules.federated_rounds(1.0, table)


def test_from_the_usual_rounds_on_nothing_depends_on_them(table):
    problem = build.objective(spec(), table)
    for rounds in (rules.USUAL_ROUNDS, 101, 10_000):
        assert rules.momentum(table, rounds) == rules.MOMENTUM
        stable = rules.STABLE * 2 * (1 + 0.9) / (1 - 0.9) / problem.loss.curvature
        assert rules.longest_step(table, problem, 1.0, 0.9, rounds) == stable


def test_a_short_run_repeats_less_of_a_move_and_takes_longer_steps_within_limits(table):
    problem = build.objective(spec(), table)
    counts = (1, 2, 5, 10, 25, 50, 100)
    shares = [rules.momentum(table, rounds) for rounds in counts]
    steps = [rules.longest_step(table, problem, 1.0, 0.5, rounds) for rounds in counts]
    assert shares == sorted(shares)
    assert shares[0] == rules.LEAST_MOMENTUM < shares[4] < rules.MOMENTUM
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == pytest.approx(rules.LONGER * steps[-1])


def test_images_and_losses_that_curve_everywhere_take_the_same_steps_in_a_short_run(table, images):
    squared = build.objective(spec(**{"problem.loss": "squared"}), table)
    assert rules.longest_step(table, squared, 1.0, 0.9, 5) == rules.longest_step(table, squared, 1.0, 0.9, 100)
    problem = build.objective(spec(), table)
    assert rules.longest_step(images, problem, 1.0, 0.0, 5) == rules.longest_step(images, problem, 1.0, 0.0, 100)
    assert rules.momentum(images, 5) == rules.momentum(images, 100) == 0


def test_a_run_takes_the_momentum_of_its_rounds_and_a_key_that_is_set_wins(table):
    def server(**values):
        return build.admm_setup(spec(**values), build.transformed(spec(), table)).server

    assert server(**{"run.rounds": 20}).momentum == rules.momentum(table, 20)
    assert server(**{"run.rounds": 20, "algorithm.momentum": 0.3}).momentum == 0.3
