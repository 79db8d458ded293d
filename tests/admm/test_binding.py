"""Where a constraint binds: the share of the entries of z that W or the trust region moves away from the centre."""

import numpy as np
import pytest

from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Exact, Prox, Trust
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.rounds import Trace, mean_trace
from tacit.schedule import Constant
from tacit.types import Norm

OWN = Local(np.zeros((2, 2)), np.zeros((2, 2)))
MSG = Broadcast(1, np.zeros((2, 2)), rho=1.0)
SLOPE = np.array([[0.1, -0.2], [3.0, -4.0]])  # with rho 1 and z = w = dual = 0 the centre is -slope


def solved(rule, domain):
    return rule.solve(SLOPE, lambda _: SLOPE, OWN, MSG, domain)


@pytest.mark.parametrize(("radius", "share"), [(0.05, 1.0), (0.15, 0.75), (1.0, 0.5), (3.5, 0.25), (4.0, 0.0)])
def test_a_trust_region_stops_the_entries_beyond_it(radius, share):
    z, binding = solved(Trust(Constant(radius)), Everywhere())
    assert binding == share
    np.testing.assert_array_equal(z, np.clip(-SLOPE, -radius, radius))


def test_a_box_stops_entries_in_a_proximal_step_too():
    assert solved(Prox(Constant(1.0)), Box(1.0))[1] == 0.5  # the centre is -slope / 2
    assert solved(Trust(Constant(1.0)), Box(0.15))[1] == 0.75  # the smaller of two boxes decides


@pytest.mark.parametrize("rule", [Prox(Constant(1e9)), Trust(Constant(1e9))])
def test_a_ball_moves_every_entry_or_none(rule):
    assert solved(rule, Ball(5.1))[1] == 0.0
    assert solved(rule, Ball(4.9))[1] == 1.0


def test_an_euclidean_region_moves_every_entry_or_none():
    assert solved(Trust(Constant(5.1), Norm.L2), Everywhere())[1] == 0.0
    assert solved(Trust(Constant(4.9), Norm.L2), Everywhere())[1] == 1.0


def test_an_exact_solve_says_where_its_solution_lies_on_the_box():
    solution, binding = Exact(smoothness=0.0).solve(SLOPE, lambda _: SLOPE, OWN, MSG, Box(1.0))
    np.testing.assert_allclose(solution, np.clip(-SLOPE, -1, 1), atol=1e-9)
    assert binding == 0.5


def test_nobody_counts_for_agents_that_say_nothing():
    counted, silent = (Trace(1.0, 1.0, 1.0, 1.0, share, {}) for share in (0.5, None))
    assert mean_trace([counted, counted]).binding == 0.5
    assert mean_trace([counted, silent]).binding is None
