"""The agents' half of a deployed round at the server, against agents that take their own steps (admm/agent.py)."""

import numpy as np
import pytest

from tacit.admm.agent import Agent
from tacit.admm.algorithm import Consensus
from tacit.admm.local_models import LocalModels
from tacit.admm.messages import Broadcast, Order
from tacit.admm.updates import ascent, trust_center
from tacit.federation.attendance import Attendance
from tacit.rounds import FADING, Spread
from tacit.run import build
from tacit.run.presets import preset
from tacit.schedule import Cooling
from tests.conftest import federation

SHAPE, AGENTS, ROUNDS = (3, 2), 4, 30
TARGETS = np.random.default_rng(5).normal(size=(AGENTS, *SHAPE))
RHO = Cooling(0.7, ROUNDS)

# --- every variant -------------------------------------------------------------------------------------------------

VARIANTS = {
    f"{rule}-{norm}-{domain}-{order}-{at}-{where}": {
        "algorithm.rule": rule, "algorithm.trust_norm": norm, "algorithm.order": order, "algorithm.linearize_at": at,
        "algorithm.perturbation": where, "schedule.radius": "constant", "schedule.radius_a": 0.05,
        "problem.domain": domain, "problem.domain_radius": 0.2,
    }
    for rule, norm in (("prox", "inf"), ("trust", "inf"), ("trust", "l2"))
    for domain in ("everywhere", "box", "ball", "simplex")
    for order in ("wzd", "zwd")
    for at in ("z", "w")
    for where in ("objective", "output")
    if where == "objective" or (rule, domain) == ("prox", "everywhere")
}  # fmt: skip
VARIANTS |= {
    f"released regulariser-{order}": {
        "algorithm.rule": "prox", "algorithm.order": order, "algorithm.regularize_at": "w", "problem.beta": 0.3,
    }
    for order in ("wzd", "zwd")
}  # fmt: skip
FIXED = {
    "schedule.rho": "root", "schedule.rho_static": 0.7, "privacy.sensitivity": "clip", "privacy.clip": 0.4,
    "privacy.mechanism": "gaussian", "privacy.epsilon": 5.0, "problem.beta": 0.01, "run.rounds": 6, "run.seed": 3,
}  # fmt: skip


def setup_of(values):
    return build.setup(preset("paper", "objt").with_values(FIXED | values), federation(sizes=(5, 9, 23)))


def noisy_gradient(agent: Agent, u, msg):
    """What the agent's records say at u, with the noise of the simulated agent: what it would answer as deployed."""
    value, bound = agent.data_gradient(u)
    drawn = agent.variant.mechanism.sample(agent.stream, msg.t, 0, value.shape)
    return value + agent.calibration * bound * drawn.astype(np.float64)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_server_program_is_the_readable_twin_round_by_round(values):
    """z_p, dual_p and the mean of both, in every variant, with noise: equal to 1e-12."""
    setup = setup_of(values)
    twins = [agent.in_double() for agent in setup.agents]
    models, owns = setup.deployment.program(False), [agent.start(setup.shape) for agent in twins]
    state = setup.server.start()
    for _ in range(6):
        msg = setup.server.ask(state)
        for p, agent in enumerate(twins):
            asked = models.parameters(msg, p)["point"]
            np.testing.assert_allclose(asked, agent.variant.rule.at.of(owns[p], msg), rtol=1e-12)
            models.move(p, msg, noisy_gradient(agent, asked, msg))
        answered = [agent.respond(own, msg) for agent, own in zip(twins, owns, strict=True)]
        owns = [own for own, _, _ in answered]
        for p, own in enumerate(owns):
            assert close(models.z[p], own.z)
            assert close(models.dual[p], own.dual)
            assert models.rho[p] == own.rho
            assert models.binding[p] == answered[p][2].binding
        replies = models.replies(msg, [Spread(1.0, 1.0, 1.0)] * len(twins), {})
        z = np.stack([reply.z for _, reply, _ in answered])
        assert close(replies.z_mean, z.mean(0))
        assert replies.violation(state.w) == pytest.approx(np.abs(state.w - z).sum(), rel=1e-12)
        state, _ = setup.server.conclude(state, msg, replies)


def close(ours, theirs):
    """Whether two arrays are equal to 1e-12 of the largest entry."""
    return np.abs(ours - theirs).max() <= 1e-12 * max(np.abs(theirs).max(), 1e-3)


AT_W = {name: values for name, values in VARIANTS.items() if name.endswith("-w-objective") and "everywhere" in name}


@pytest.mark.parametrize("values", [one for name, one in AT_W.items() if "prox" in name] + [
    {"algorithm.rule": "trust", "algorithm.order": order, "algorithm.linearize_at": "w", "schedule.radius": "constant",
     "schedule.radius_a": 1e6} for order in ("wzd", "zwd")
])  # fmt: skip
def test_the_row_behind_a_sum_is_the_mean_of_the_twins(values):
    """Linearised at w, where no constraint binds: the total of the answers moves the mean as each moves its own."""
    setup = setup_of(values)
    twins = [agent.in_double() for agent in setup.agents]
    mean = LocalModels(setup.agents[:1], setup.shape, len(twins))
    assert mean.is_mean
    owns, state = [agent.start(setup.shape) for agent in twins], setup.server.start()
    for _ in range(6):
        msg = setup.server.ask(state)
        at = mean.parameters(msg, 0)["point"]
        np.testing.assert_array_equal(at, msg.w)
        mean.move(0, msg, sum(noisy_gradient(agent, at, msg) for agent in twins).ravel())
        owns = [agent.respond(own, msg)[0] for agent, own in zip(twins, owns, strict=True)]
        assert close(mean.z[0], np.mean([own.z for own in owns], axis=0))
        assert close(mean.dual[0], np.mean([own.dual for own in owns], axis=0))
        replies = mean.replies(msg, [Spread(1.0, 1.0, 1.0)], {})
        assert replies.violation is None  # how far single agents are from w is hidden
        assert replies.number_bytes == 8.0
        state, _ = setup.server.conclude(state, msg, replies)


def test_a_total_of_the_agents_that_are_present_stands_for_the_gradient_of_all():
    setup = setup_of({"algorithm.rule": "prox", "algorithm.linearize_at": "w", "algorithm.order": "zwd"})
    some, all_ = (LocalModels(setup.agents[:1], setup.shape, 3) for _ in range(2))
    msg, total = setup.server.ask(setup.server.start()), np.random.default_rng(0).normal(size=setup.shape)
    some.move(0, msg, total, whole=37 / 14)
    all_.move(0, msg, total * (37 / 14))
    np.testing.assert_allclose(some.z, all_.z, rtol=1e-12)


# --- missing agents ------------------------------------------------------------------------------------------------


class Honest:
    """An agent that keeps its own z, dual and penalty. f_p(w) = |w - target|^2 / 2."""

    def __init__(self, p):
        self.p, self.z, self.dual, self.rho = p, np.zeros(SHAPE), np.zeros(SHAPE), 0.0

    def answer(self, msg):
        self.dual = ascent(self.dual, msg.w, self.z, self.rho)
        self.z, self.rho = trust_center(msg.w, self.dual, msg.w - TARGETS[self.p], msg.rho), msg.rho


def models_of(n_agents=AGENTS, order="zwd"):
    """Local models whose steps nothing stops, and whose slope is the answer: there is no regulariser."""
    values = {
        "algorithm.rule": "trust", "algorithm.linearize_at": "w", "algorithm.order": order, "problem.beta": 0.0,
        "schedule.radius": "constant", "schedule.radius_a": 1e9,
    }  # fmt: skip
    over = federation(n_agents, *SHAPE, sizes=(5,) * n_agents)
    agents = build.setup(preset("paper", "objt").with_values(FIXED | values), over).agents
    return LocalModels(agents, SHAPE, n_agents, fades=order == "zwd")


def replies_of(models, msg, before):
    """What the server concludes a round with that began when `before` were the accepted rounds."""
    in_step = bool((models.accepted == msg.t).all() and (before == msg.t - 1).all())
    return models.replies(msg, [Spread(0.0, 0.0, 0.0)] * len(before), {}, in_step)


def run(present, momentum=0.0):
    """Rounds in which `present(t, p)` says who answers: the question, what came of it, and the gradients used."""
    server, models = Consensus(ROUNDS, SHAPE, RHO, Order.ZWD, momentum), models_of()
    state, agents, used = server.start(), list(map(Honest, range(AGENTS))), np.zeros((AGENTS, *SHAPE))
    while state.t < ROUNDS:
        msg, before = server.ask(state), models.accepted.copy()
        for p, agent in enumerate(agents):
            if present(msg.t, p):
                agent.answer(msg)
                models.move(p, msg, msg.w - TARGETS[p])
                np.testing.assert_allclose(models.z[p], agent.z, atol=1e-12)
                np.testing.assert_allclose(models.dual[p], agent.dual, atol=1e-12)
                used[p] = msg.w - TARGETS[p]
            else:
                used[p] *= FADING
        replies = replies_of(models, msg, before)
        state, _ = server.conclude(state, msg, replies)
        yield msg, state, models, replies, used.copy()


def test_w_moves_as_gradient_descent_on_gradients_of_which_some_are_old_and_fade():
    absent = np.random.default_rng(1).random((ROUNDS + 1, AGENTS)) < 0.4
    for msg, state, _, _, used in run(lambda t, p: not absent[t, p]):
        np.testing.assert_allclose(state.w, msg.w - used.mean(0) / msg.rho, atol=1e-12)


def test_an_absence_of_a_third_of_the_run_leaves_duals_in_agreement_and_an_optimum_that_is_reached():
    last = None
    for _, state, models, _, _ in run(lambda t, p: p != 2 or not 10 <= t < 20):
        last = state.w
        assert models.accepted[2] == (9 if 10 <= state.t < 20 else state.t)
    np.testing.assert_allclose(last, TARGETS.mean(0), atol=0.05)


def test_the_mean_of_duals_is_that_of_all_agents_whoever_is_missing():
    absent = np.random.default_rng(2).random((ROUNDS + 1, AGENTS)) < 0.5
    told = None
    for msg, state, models, replies, _ in run(lambda t, p: not absent[t, p], momentum=0.3):
        if told is not None and replies.dual_mean is None:  # the server's own mean is then theirs
            np.testing.assert_allclose(told, models.dual.mean(0), atol=1e-12)
        fresh = models.accepted == msg.t
        if fresh.all() and replies.dual_mean is not None:
            np.testing.assert_allclose(replies.dual_mean, models.dual.mean(0), atol=0)
        told = state.own["dual_mean"]


def test_with_everybody_there_the_mean_is_left_to_the_server():
    for _, _, models, replies, _ in run(lambda _t, _p: True):
        assert replies.dual_mean is None
        np.testing.assert_array_equal(replies.z_mean, np.stack(list(models.z)).mean(0))


def test_an_agent_that_never_answered_counts_with_a_gradient_of_zero():
    for msg, state, models, _, used in run(lambda _t, p: p != 0):
        assert not used[0].any()
        assert models.accepted[0] == 0
        np.testing.assert_allclose(state.w, msg.w - used.mean(0) / msg.rho, atol=1e-12)


def test_a_late_answer_is_taken_with_the_model_that_it_was_asked_at():
    models, agent, rng = models_of(1), Honest(0), np.random.default_rng(3)
    first, second, third = (Broadcast(t, rng.normal(size=SHAPE), rho) for t, rho in ((1, 0.5), (2, 0.7), (3, 0.9)))
    for msg in (first, second):  # the second was asked at its own w, and is heard while round 3 asks at another
        agent.answer(msg)
        models.move(0, msg, msg.w - TARGETS[0])
    np.testing.assert_allclose(models.dual[0], agent.dual, atol=1e-12)
    np.testing.assert_allclose(models.slope[0], second.w - TARGETS[0], atol=1e-12)
    replies = replies_of(models, third, np.array([1]))
    moved = replies.z_mean - replies.dual_mean / 0.9
    np.testing.assert_allclose(moved, third.w - FADING * (second.w - TARGETS[0]) / 0.9, atol=1e-12)


def test_where_w_moves_first_an_agent_keeps_the_dual_of_its_round():
    rng, models = np.random.default_rng(4), models_of(1, "wzd")
    msg = Broadcast(1, rng.normal(size=SHAPE), 0.5)
    models.move(0, msg, rng.normal(size=SHAPE))
    np.testing.assert_array_equal(models.dual[0], 0.5 * (msg.w - models.z[0]))


def test_local_models_are_what_was_saved_of_them():
    *_, (_, _, models, _, _) = run(lambda t, p: (t + p) % 3 > 0)
    saved, again = models.save(), models_of()
    again.load(saved)
    for name, array in saved.items():
        np.testing.assert_array_equal(getattr(again, name), array)
        assert not np.shares_memory(getattr(models, name), array)  # models move in place, and what was saved does not


def test_every_round_is_answered_or_missed():
    said, rng = Attendance.zero(3), np.random.default_rng(0)
    for _ in range(20):
        fresh = rng.random(3) < 0.5
        late = ~fresh & (rng.random(3) < 0.5)
        before = said
        said = said.after(np.ones(3, bool), fresh, late, ~fresh & ~late)
        for p in range(3):
            assert said.in_a_row[p] == (0 if fresh[p] or late[p] else before.in_a_row[p] + 1)
    assert (said.answered + said.missed == 20).all()
    assert (said.released == said.answered + said.late).all()
    assert said.of(1) == pytest.approx({name: int(array[1]) for name, array in said.save().items()})
