"""An agreement: its hash names every part, its cap is the total of its list, and it is for so many records at most."""

from dataclasses import replace

import pytest

from tacit.admm.compatible import release
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.agent.cover import Alone
from tacit.errors import IncompatibleError
from tacit.privacy.exact import Law
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.privacy.summed import InSum
from tacit.privacy.terms import Memory
from tacit.problem.loss import Softmax
from tacit.problem.sensitivity import Adjacency, Clipped, from_row_norm
from tacit.query.gradient import Gradient
from tacit.query.moments import Moments
from tacit.run.deployment import Deployment, price
from tacit.types import Norm
from tests.agent.agents import agents, setup_of, spec

N, SHAPE, DELTA = 40, (4, 3), 1e-6
GAUSSIAN, LOUD = Noise(Law.GAUSSIAN, Norm.L2, 5.0), Noise(Law.GAUSSIAN, Norm.L2, 20.0)
GRADIENT = Gradient(SHAPE, Softmax(), Clipped(Norm.L2, 1.0), 1 / 60)
MOMENTS = Moments(SHAPE, 1.0, gram=1.0, cross=0.7)
LIST = (NoisyQuery(GRADIENT, GAUSSIAN, 3), NoisyQuery(MOMENTS, LOUD, 1))
AGREED = Agreement(LIST, Adjacency.ZERO_OUT, N, InSum(1, 2))


def test_questions_are_numbered_in_the_order_of_the_list():
    assert (AGREED.rounds, AGREED.releases) == (4, 6)
    assert [AGREED.place(t) for t in range(1, 5)] == [0, 0, 0, 1]


@pytest.mark.parametrize("change", [
    {"queries": LIST[:1]}, {"queries": LIST[::-1]},
    {"queries": (replace(LIST[0], query=replace(GRADIENT, record_bound=Clipped(Norm.L2, 2.0))), LIST[1])},
    {"queries": (replace(LIST[0], query=replace(GRADIENT, weight=1 / 61)), LIST[1])},
    {"queries": (replace(LIST[0], noise=LOUD), LIST[1])}, {"queries": (replace(LIST[0], answers=4), LIST[1])},
    {"adjacency": Adjacency.REPLACE_ONE}, {"most_records": N + 1}, {"in_sum": None}, {"in_sum": InSum(2, 2)},
    {"in_sum": InSum(1, 3)},
])  # fmt: skip
def test_every_part_of_an_agreement_is_in_its_hash(change):
    assert replace(AGREED, **change).digest != AGREED.digest
    assert replace(AGREED).digest == AGREED.digest


def test_the_cap_is_the_total_of_the_list():
    """Each query at its own price, and every repetition at that of the dearest."""
    assert list(AGREED.events) == [(GaussianRelease(5.0), 3), (GaussianRelease(20.0), 1), (GaussianRelease(5.0), 2)]
    assert AGREED.first(4) == ((GaussianRelease(5.0), 3), (GaussianRelease(20.0), 1))


def test_the_price_of_an_answer_is_that_of_its_own_query():
    """In l1 a declared bound costs less in l2, by the ratio of both bounds."""
    declared = replace(GRADIENT, record_bound=from_row_norm(Norm.L1, 1.0, Softmax()))
    ratio = declared.bound(Norm.L2, Adjacency.ZERO_OUT) / declared.bound(Norm.L1, Adjacency.ZERO_OUT)
    assert 0 < ratio < 1
    laplace = NoisyQuery(declared, Noise(Law.LAPLACE, Norm.L1, 8.0), 1)
    assert laplace.release(Adjacency.ZERO_OUT) == LaplaceRelease(1 / 8, ratio / 8)
    assert LIST[1].release(Adjacency.ZERO_OUT) == GaussianRelease(20.0)


@pytest.mark.parametrize("in_sum", [None, InSum(1, 2)])
def test_the_terms_of_a_run_hold_the_total_of_the_list(in_sum):
    own, run = replace(AGREED, queries=LIST[:1], in_sum=in_sum), spec(**{"privacy.dp_delta": DELTA})
    terms = Deployment((own,), (N,), SHAPE, None).terms(run, 0, "hash")
    assert terms.epsilon == price(((GaussianRelease(5.0), 3 if in_sum is None else 5),), DELTA)
    assert terms.releases == own.releases


def test_an_agent_with_more_records_than_were_agreed_is_not_made():
    """The noise of a sum is scaled for the agent with most records: more of them round a value further away."""
    agent = agents()[0]
    few = replace(agent.agreement, most_records=len(agent.queries[0].records) - 1)
    for own in (few, replace(few, in_sum=InSum())):
        with pytest.raises(IncompatibleError, match="the agreement is for up to"):
            replace(agent, agreement=own, cover=Alone(own, 100), store=Memory())


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("sensitivity", ["feature_bounds", "clip"])
@pytest.mark.parametrize("covers", ["run", "round"])
def test_an_answer_costs_at_the_agent_what_the_run_states(adjacency, sensitivity, covers):
    """Laplace noise of a round is stated in l1, and that of a run in l2."""
    values = {"privacy.covers": covers, "privacy.sensitivity": sensitivity, "privacy.adjacency": adjacency}
    setup = setup_of(algorithm="objt", **{"privacy.mechanism": "laplace"} | values)
    stated, own = release(setup.agents[0].variant), setup.deployment.first_agreement
    paid = own.queries[0].release(own.adjacency)
    assert (paid.l1, paid.l2) == pytest.approx((stated.l1, stated.l2), rel=1e-12)
    assert (stated.l1 < float("inf")) == (covers == "round")
