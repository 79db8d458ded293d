"""The same hostile messages to two agents whose data differ in one record: nothing but noise may tell them apart.

    python -m tests.agent.test_fuzz 1000000 7     a million messages, from seed 7, with noise of the operating system

The test draws its noise from a seed: half of its time would go into exact integers, which test_agent.py looks at.
"""

import random
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tacit.agent import agent as deployed
from tacit.agent.agent import DeployedAgent
from tacit.agent.cover import Alone
from tacit.agent.gate import Question
from tacit.errors import Refused
from tacit.message import Numbers
from tacit.privacy import lattice
from tacit.privacy.terms import Memory, Terms
from tacit.query.gradient import evaluator, numpy_sums
from tacit.run import build, deploy
from tacit.run.compose import asked_of
from tacit.run.presets import preset
from tacit.types import LARGEST, Shard
from tests.conftest import federation

MESSAGES = 100_000
ROUNDS = 10**6
SHAPE = (4, 3)
SPECS = {
    "sound": ("objt", {}),
    "at z": ("objt", {"algorithm.order": "wzd", "algorithm.linearize_at": "z"}),
    "squared": ("objp", {"problem.loss": "squared", "privacy.adjacency": "replace_one"}),
    "declared": ("objt", {"privacy.sensitivity": "row_norm"}),
    "laplace": ("objp", {"privacy.mechanism": "laplace", "privacy.covers": "round",
                         "privacy.sensitivity": "feature_bounds", "data.row_norm": "none"}),
    "box": ("objt", {"problem.domain": "box", "problem.domain_radius": 3.0, "algorithm.trust_norm": "l2"}),
    "ball": ("objt", {"problem.domain": "ball", "problem.domain_radius": 3.0, "problem.beta": 0.1}),
    "bounds": ("objt", {"problem.domain": "box", "problem.domain_low": 0.5, "problem.domain_high": 1.0}),
    "ball around": ("objt", {"problem.domain": "ball", "problem.domain_center": 2.0, "schedule.radius_a": 0.5}),
    "simplex": ("objt", {"problem.domain": "simplex", "schedule.radius_a": 0.5, "problem.loss": "hinge"}),
    "simplex, l2": ("objt", {"problem.domain": "simplex", "schedule.radius_a": 0.5, "algorithm.trust_norm": "l2",
                             "problem.regularizer": "l1", "problem.beta": 0.1}),
    "ball, l2": ("objt", {"problem.domain": "ball", "algorithm.trust_norm": "l2", "schedule.radius_a": 0.5}),
}  # fmt: skip


def neighbours(shard):
    """The shard, and others that differ in their first record: absent, of another class, huge, tiny, minus itself."""
    def first(x, y=None):
        rows, labels = shard.x.astype(float), shard.y.copy()
        rows[0], labels[0] = x, labels[0] if y is None else y
        return Shard(rows, labels, np.float64)

    own, label = shard.x[0], (shard.y[0] + 1) % SHAPE[1]
    return shard, [first(0 * own), first(own, label), first(-LARGEST), first(1e-40), first(-own, label)]


def pair_of(name, n, summing=deploy.compiled_sums):
    """Two agents with the same terms, whose data are neighbours; they sum as deployed, unless told otherwise."""
    algorithm, values = SPECS[name]
    over = federation(sizes=(5, 3, 4))
    setup = build.setup(preset("sound", algorithm).with_values({"run.rounds": 100} | values), over)
    base, others = neighbours(over.shards[0])
    made = []
    for shard in (base, others[n % len(others)]):
        deployment = asked_of([replace(setup.agents[0], shard=shard), *setup.agents[1:]], SHAPE, ROUNDS)
        own, (one,) = deployment.first_agreement, deployment.first_agreement.queries
        adjacency, scale = own.adjacency.name.lower(), own.scale(0, len(shard))
        terms = Terms("run", "spec", ROUNDS, one.release(own.adjacency), adjacency, scale, 1e-6, 1.0)
        queries = tuple(replace(asked, evaluator=evaluator(summing)) for asked in deploy.queries_of(own, shard))
        made.append(DeployedAgent("p", "data", queries, own, terms, Alone(own, len(shard)), Memory()))
    return made


NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-320, 5e-324, 1e-160, 1e-38, 1e19, 7e38, 1e49, LARGEST, -LARGEST,
           float(np.nextafter(LARGEST, np.inf)), 1e60, 1e154, 1e308, np.inf, -np.inf, np.nan]  # fmt: skip
SHAPES = [(4, 3), (3, 4), (4, 1), (1, 3), (4,), (12,), (), (0, 3), (5, 4, 3), (1, 4, 3), (4, 3, 1), (4, 6), (8, 3)]
KINDS = ["f8", "f4", "f2", ">f8", "c16", "i8", "u1", "?", "O", "U2", "M8[s]"]
THINGS = [None, True, 0, 1, -1, 2.5, "1", b"w", [], {}, (), object(), np.float64(1), np.int64(3), 1 + 2j, 10**40]


class Server:
    """A source of questions, most of them nearly right."""

    def __init__(self, seed):
        self.rng, self.dice, self.t = np.random.default_rng(seed), random.Random(repr(seed)), 0

    def one_of(self, things):
        return self.dice.choice(things)

    def model(self):
        """An array of the right type and shape, its entries from the tame to the largest there are."""
        w = self.rng.normal(size=SHAPE) * 10.0 ** self.dice.randrange(-3, 3)
        if self.dice.random() < 0.3:
            w[self.rng.random(SHAPE) < 0.4] = self.one_of(NUMBERS[:13])
        if self.dice.random() < 0.1:
            w = self.one_of([1, -1, 0]) * np.full(SHAPE, self.one_of(NUMBERS[:13]))
        return w

    def wild_model(self):
        w, way = self.model(), self.dice.randrange(4)
        if way == 0:
            w[self.rng.random(SHAPE) < 0.3] = self.one_of(NUMBERS)
        elif way == 1:
            w = np.ones(self.one_of(SHAPES))
        elif way == 2:
            w = np.zeros(self.one_of(SHAPES[:4])).astype(self.one_of(KINDS))
        else:
            w = self.one_of([*THINGS, w.tolist(), np.ma.masked_array(w), np.asmatrix(w), w[None], w[:, :, None]])
        return w

    def question(self):
        """One message: right in a share of cases, else with one to three of its parts changed."""
        self.t += self.dice.randrange(1, 4)
        t, w = self.t, self.model()
        parts = {"run": "run", "agreed": "spec", "t": t, "parameters": {"point": w}}
        for _ in range(self.one_of([0, 1, 1, 1, 1, 1, 2, 2, 3])):
            way = self.dice.randrange(8)
            if way <= 2:
                parts["parameters"] = self._dict(parts["parameters"]) | {"point": self.wild_model()}
            elif way == 3:
                place = self.one_of(["attempt", "peers"])
                parts[place] = self.one_of([*THINGS, ("p",), ("p", "q"), ["p"], ("q", "p"), (3,), ("\n",)])
            elif way == 4:
                parts["t"] = self.one_of([t - 1, t - 2, 1, 0, -t, ROUNDS + 1, float(t), np.int64(t), *THINGS])
            elif way == 5:
                parts[self.one_of(["run", "agreed"])] = self.one_of(["", "RUN", "spec ", *THINGS])
            elif way == 6:
                own = self._dict(parts["parameters"])
                parts["parameters"] = self.one_of([*THINGS, {"w": w}, own | {"more": w}, own | {"rho": 1.0}])
            else:
                parts["t"] = max(t - self.dice.randrange(5), 1)
        return Question(**parts)

    @staticmethod
    def _dict(body):
        return body if type(body) is dict else {}


def outcome(agent, question, said):
    """All that a server, and the agent's owner, can see of a round but for its noisy numbers."""
    said.clear()
    try:
        answer = agent.answer_or_refuse(question)
    except Refused as error:
        return "refused", type(error).__name__, str(error), tuple(said)
    value = answer.value
    parts = value.dtype.str, value.shape, bool(np.isfinite(value).all())
    return "answered", answer.run, answer.t, answer.attempt, parts, tuple(answer.seconds), tuple(said)


def differ(messages, seed, monkeypatch, **how):
    """(messages sent, messages answered, those whose outcomes differed)."""
    said, split, answered, sent = [], [], 0, 0
    monkeypatch.setattr(deployed.warnings, "warn", lambda text, *_, **__: said.append(str(text)))
    block = -(-messages // (5 * len(SPECS)))
    for k, name in enumerate(SPECS):
        for n in range(5):
            base, other = pair_of(name, n, **how)
            server = Server((seed, k, n))
            for _ in range(block):
                question = server.question()
                first, second = (outcome(agent, question, said) for agent in (base, other))
                sent, answered = sent + 1, answered + (first[0] == "answered")
                if first != second:
                    split.append((name, n, question, first, second))
    return sent, answered, split


def test_no_message_tells_two_neighbouring_data_sets_apart(monkeypatch):
    normal = np.random.default_rng(0).normal
    monkeypatch.setattr(lattice, "sample", lambda _law, t, shape, _bits: np.rint(t * normal(size=shape)).astype(int))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        sent, answered, split = differ(MESSAGES, 0, monkeypatch)
    assert sent >= MESSAGES
    assert answered > 0.1 * sent  # or the records were never reached
    assert not split, f"{len(split)} of {sent} messages split the pair, the first: {split[0]}"


def test_the_messages_split_a_pair_where_only_the_size_of_a_model_is_checked(monkeypatch):
    """As it was once: a record then decided whether a model of shape (J, 1) was answered."""
    def size_alone(self, name, value):  # noqa: ARG001
        if not np.abs(np.asarray(value)).max() <= LARGEST:
            raise Refused(f"{name} is too large")
        return value

    monkeypatch.setattr(Numbers, "checked", size_alone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert differ(4000, 0, monkeypatch, summing=numpy_sums)[2]


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="raise"):
        found = differ(int(sys.argv[1]), int(sys.argv[2]), patch)
    print(f"{found[0]} messages, {found[1]} answered, {len(found[2])} split two neighbouring data sets")
    sys.exit(bool(found[2]))
