"""An agent answers each query of its agreement as often as agreed, at its price; it repeats what it has stored.

Records are shut but for new answers: whoever reads them then stops the test.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tacit.agent.agent import DeployedAgent
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.agent.cover import Alone
from tacit.errors import IncompatibleError, QuestionChanged, Refused, TermsChanged
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.privacy.summed import Attempt
from tacit.privacy.terms import Memory
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import AgentQuery
from tacit.run.deployment import Deployment, price
from tacit.run.presets import preset
from tacit.types import Norm
from tests.agent.listed import (
    ALONE,
    CELLS,
    DELTA,
    GAUSSIAN,
    GRADIENT,
    HONEST,
    IN_SUM,
    LIST,
    MOMENTS,
    RUN,
    SCORES,
    SHAPE,
    N,
    Touched,
    agent_of,
    answered,
    every,
    question,
    refused,
    rows,
    spent,
    terms_of,
)  # fmt: skip

BOTH = pytest.mark.parametrize("agreement", [ALONE, IN_SUM], ids=["alone", "in a sum"])
BEYOND = (0, -1, 7, 8, 10**30, True, 1.0, "1", None, math.nan)

# --- how often -------------------------------------------------------------------------------------------------------


@BOTH
def test_a_stored_answer_is_repeated_bit_for_bit_and_no_record_is_read(store, masks, agreement, monkeypatch):
    agent, shut = agent_of(agreement, store, masks)
    for t, first in every(agent, shut).items():
        for drawn in (lattice, Attempt):  # it is not drawn again either
            monkeypatch.setattr(drawn, "release" if drawn is lattice else "share", None)
        for _ in range(2):
            again = agent.answer(question(agent, t)).value
            assert again.tobytes() == first.tobytes()
            assert again.dtype == first.dtype
    assert spent(store) == Counter({GaussianRelease(5.0): 6})


@BOTH
def test_an_agent_that_was_started_again_repeats_what_its_ledger_holds_and_reads_no_record(tmp_path, masks, agreement):
    """Records are packed with the first new answer, and not before."""
    with Ledger.open(tmp_path / "ann.ledger", price=price) as store:
        agent, shut = agent_of(agreement, store, masks)
        sent = {t: answered(agent, shut, question(agent, t)) for t in (1, 2, 3)}
    with Ledger.open(tmp_path / "ann.ledger", price=price) as store:
        agent, shut = agent_of(agreement, store, masks)
        for t, value in sent.items():
            assert agent.answer(question(agent, t)).value.tobytes() == value.tobytes()
        with pytest.raises(Touched):  # as a new question does
            agent.answer(question(agent, 4))
        assert answered(agent, shut, question(agent, 4)).shape == (SCORES.size,)


@BOTH
def test_no_question_beyond_the_list_is_answered_before_or_after_the_last(store, masks, agreement):
    agent, shut = agent_of(agreement, store, masks)
    for t in BEYOND:
        refused(agent, question(agent, t), "a number from 1 to 6, as agreed")
    every(agent, shut)
    for t in BEYOND:
        refused(agent, question(agent, t), "a number from 1 to 6, as agreed")


def test_a_query_is_answered_as_often_as_agreed_whoever_else_still_has_numbers(store):
    """Numbers 1 and 2 are of gradients, 3 of moments, 4 and 5 of scores, 6 of cells."""
    agent, shut = agent_of(ALONE, store)
    places = [GRADIENT, GRADIENT, MOMENTS, SCORES, SCORES, CELLS]
    for t, query in enumerate(places, start=1):
        for other in {GRADIENT, MOMENTS, SCORES} - {query}:
            if HONEST[other].keys() != HONEST[query].keys():
                refused(agent, question(agent, t, parameters=HONEST[other]), "a message has the parts")
    found = every(agent, shut)
    assert [value.size for value in found.values()] == [query.size for query in places]
    assert spent(store) == Counter({GaussianRelease(5.0): 6})


@BOTH
def test_another_question_for_an_answered_number_is_refused_and_so_is_one_that_was_passed_over(store, masks, agreement):
    agent, shut = agent_of(agreement, store, masks)
    answered(agent, shut, question(agent, 2))
    near = {"point": np.full(SHAPE, np.nextafter(0.1, 1))}
    refused(agent, question(agent, 2, parameters=near), "another question", QuestionChanged)
    refused(agent, question(agent, 1), "round 2 was the last answered", TermsChanged)
    if agreement.in_sum is not None:
        answered(agent, shut, question(agent, 2, attempt=1))
        answered(agent, shut, question(agent, 2, attempt=2))
        refused(agent, question(agent, 2, attempt=2, parameters=near), "another question", QuestionChanged)


def test_attempts_at_a_sum_never_come_to_more_releases_than_the_agreement_lists(store, masks):
    """Two repetitions in all, not two of every round."""
    agent, shut = agent_of(IN_SUM, store, masks)
    asked, times = list(itertools.product(range(1, 7), range(3))), 0
    for t, attempt in asked:
        try:
            answered(agent, shut, question(agent, t, attempt=attempt))
            times += 1
        except TermsChanged:
            pass
    assert times == IN_SUM.releases == 8 < len(asked)
    assert spent(store) == Counter({GaussianRelease(5.0): 8})


def test_an_answer_that_cannot_be_recorded_does_not_leave(tmp_path, monkeypatch):
    def full(*_):
        raise Refused("the disk is full")

    with Ledger.open(tmp_path / "ann.ledger", price=price) as store:
        agent, shut = agent_of(ALONE, store)
        answered(agent, shut, question(agent, 1))
        monkeypatch.setattr(Ledger, "_made", full)
        with pytest.raises(Refused, match="the disk is full"):
            answered(agent, shut, question(agent, 2))


# --- price -----------------------------------------------------------------------------------------------------------


@BOTH
def test_the_ledger_of_all_answers_is_the_list_of_the_agreement(tmp_path, masks, agreement):
    """In a sum the list has the repetitions too: here all of them are of the first round."""
    again = agreement.releases - agreement.rounds
    asked = [(1, attempt) for attempt in range(again + 1)] + [(t, 0) for t in range(2, agreement.rounds + 1)]
    listed = Counter()
    for release, count in agreement.events:
        listed[release] += count
    with Ledger.open(tmp_path / "ann.ledger", price=price) as store:
        agent, shut = agent_of(agreement, store, masks)
        for t, attempt in asked:
            answered(agent, shut, question(agent, t, attempt=attempt))
        assert spent(store) == listed
        (account,) = store.show()
        assert account.epsilon == agent.terms.epsilon == price(tuple(agreement.events), DELTA)


LAWS = {
    "gaussian": (GAUSSIAN, GaussianRelease(5.0)),
    "laplace in l1": (Noise(Law.LAPLACE, Norm.L1, 5.0), LaplaceRelease(0.2, 0.2)),
    "laplace in l2": (Noise(Law.LAPLACE, Norm.L2, 5.0), LaplaceRelease(math.inf, 0.2)),
}


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("law", LAWS)
def test_an_agent_prices_an_answer_by_its_own_query_and_noise(store, law, adjacency):
    noise, release = LAWS[law]
    agreement = Agreement((NoisyQuery(GRADIENT, noise, 3),), adjacency, N)
    agent, shut = agent_of(agreement, store)
    for t in (1, 2):
        answered(agent, shut, question(agent, t))
    (found,) = spent(store)
    assert found == release if law != "laplace in l1" else (found.l1, found.l2 <= 0.2) == (0.2, True)
    assert spent(store)[found] == 2


@pytest.mark.parametrize("changed", [
    {"release": GaussianRelease(50.0)}, {"release": GaussianRelease(5.0000001)}, {"scale": 1e-9}, {"scale": math.nan},
    {"release": LaplaceRelease(0.01, 0.01)}, {"rounds": 60}, {"rounds": 5}, {"repetitions": 3},
    {"adjacency": "replace_one"},
])  # fmt: skip
def test_terms_with_another_price_another_noise_or_more_answers_are_refused(changed):
    """Whoever makes the terms cannot lower what an answer costs, nor its noise."""
    with pytest.raises(IncompatibleError, match=r"(those|that) of its agreement"):
        agent_of(ALONE, **changed)


def test_terms_with_a_little_less_noise_than_the_neediest_query_are_refused():
    needed = max(ALONE.scale(k, N) for k in range(4))
    agent_of(ALONE, scale=needed)
    with pytest.raises(IncompatibleError, match="the noise of a run is not that of its agreement"):
        agent_of(ALONE, scale=math.nextafter(needed, 0))


def test_queries_of_one_run_have_one_noise_because_its_terms_have_one_price():
    louder = NoisyQuery(MOMENTS, replace(GAUSSIAN, multiplier=9.0), 1)
    with pytest.raises(IncompatibleError, match="give all queries of the method the same noise"):
        agent_of(Agreement((*LIST, louder), Adjacency.ZERO_OUT, N))


def test_terms_of_a_run_have_the_noise_of_its_neediest_query():
    spec = preset("sound", "objt").with_values({"run.name": RUN})
    own = Deployment((ALONE,), (N,), SHAPE, None)
    terms = own.terms(spec, 0, "agreed")
    assert terms.scale == max(ALONE.scale(k, N) for k in range(4)) > min(ALONE.scale(k, N) for k in range(4))
    assert (terms.rounds, terms.releases) == (6, 6)


@pytest.mark.parametrize("other", [
    (NoisyQuery(MOMENTS, GAUSSIAN, 1),), LIST[:3], LIST[::-1],
    (*LIST, NoisyQuery(replace(MOMENTS, gram=2.0), GAUSSIAN, 1)),
])  # fmt: skip
def test_an_agent_is_made_of_the_queries_of_its_agreement_and_no_others(other):
    asked = tuple(AgentQuery(one.query, rows().records, one.query.evaluator) for one in other)
    with pytest.raises(IncompatibleError, match="queries are not those of its agreement"):
        DeployedAgent("ann", "ann 2024", asked, ALONE, terms_of(ALONE), Alone(ALONE, N), Memory())
