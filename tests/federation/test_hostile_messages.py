"""The same hostile messages to two sites that differ in one record: nothing but noise may tell their replies apart.

    python -m tests.federation.test_hostile_messages 1000000 7     a million messages, from seed 7

The messages pass the whole way, from bytes to bytes, with queries of every kind. Ledgers are in memory, and noise is
drawn from a seed: other tests look at both.
"""

import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.federation import wire
from tacit.federation.messages import REPLIES, Ask, Close, Join, Meet, Signed, read, written
from tacit.federation.run_service import JoiningAgent, ServiceContext, SiteRun
from tacit.message import Numbers
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.terms import Memory, Terms
from tacit.privacy.witness import Position, Receipt, ReceiptKey
from tacit.problem.loss import Softmax
from tacit.problem.sensitivity import Adjacency, Clipped
from tacit.query import gradient
from tacit.query.counts import Counts
from tacit.query.gradient import Gradient
from tacit.query.moments import Moments
from tacit.query.query import AgentQuery
from tacit.query.records import InMemory, View
from tacit.run import deploy
from tacit.types import LARGEST, Norm
from tests.federation.sites import service

MESSAGES, ROUNDS, RECORDS, SHAPE = 100_000, 10**6, 5, (4, 3)
AGENTS, HASH = ("north", "south"), "5" * 64
GAUSSIAN, LAPLACE = Noise(Law.GAUSSIAN, Norm.L2, 4.0), Noise(Law.LAPLACE, Norm.L1, 4.0)
SOFTMAX = Gradient(SHAPE, Softmax(), Clipped(Norm.L2, 1.0), 1 / 12)
MOMENTS = Moments(SHAPE, 1.0, gram=1.0, cross=0.5, square=0.1)
SCORES = Counts(((-1.0, 0.0, 1.0), (0.0,), (0.5, 2.0)), features=4)
CELLS = Counts(((0.0, 1.0), (-1e50, 3.0)), columns=("age", "dose"))
LISTS = {
    "gradient": [NoisyQuery(SOFTMAX, GAUSSIAN, ROUNDS)],
    "gradient at z": [NoisyQuery(replace(SOFTMAX, shared=False), GAUSSIAN, ROUNDS)],
    "gradient, laplace": [NoisyQuery(replace(SOFTMAX, record_bound=Clipped(Norm.L1, 1.0)), LAPLACE, ROUNDS)],
    "moments": [NoisyQuery(MOMENTS, GAUSSIAN, ROUNDS)],
    "counts of scores": [NoisyQuery(SCORES, GAUSSIAN, ROUNDS)],
    "counts of cells": [NoisyQuery(CELLS, GAUSSIAN, ROUNDS)],
    "all": [NoisyQuery(query, GAUSSIAN, 300) for query in (MOMENTS, SCORES, CELLS, SOFTMAX)],
}


class Books(Memory):
    """A ledger in memory, whose heads are the same at both sites."""

    def position_after(self, agent, key):
        return Position(agent, HASH, key.round, HASH)

    def forget_later(self, _run, _before):
        """Keep what a memory keeps."""


def records(n):
    """The records of an agent, those of its neighbour, and those of the other agent of the site."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, RECORDS, SHAPE[0])), rng.integers(SHAPE[1], size=(2, RECORDS))
    own, first, label, present = x[0, 0], x[0].copy(), y[0].copy(), np.ones(RECORDS, bool)
    first[0] = (0 * own, own, 0 * own - LARGEST, 0 * own + 1e-40, -own)[n]
    present[0] = n != 0
    label[0] = (label[0] + (n in (1, 4))) % SHAPE[1]

    def held(rows, labels, there=None):
        return InMemory(labels, {View.ROWS: rows}, there, {"age": rows[:, 0], "dose": rows[:, 1]})

    return held(x[0], y[0]), held(first, label, present), held(x[1], y[1])


def joined(one, name, own, other):
    """Let both agents of a site join a run of a list of queries; return what their queries compute from now on."""
    agreement, computed = Agreement(tuple(LISTS[name]), Adjacency.ZERO_OUT, RECORDS), []
    compiled, books = gradient.evaluator(deploy.compiled_sums), {name: Books() for name in AGENTS}
    scale = max(agreement.scale(k, RECORDS) for k in range(len(agreement.queries)))
    terms = Terms("r1", HASH, agreement.rounds, agreement.events[0][0], "zero_out", scale, 1e-6, 1.0)

    def watched(query, held):
        own = AgentQuery(query, held, compiled if isinstance(query, Gradient) else query.evaluator)

        def watch(parameters):
            computed.append((query, parameters))
            return own.value(parameters)

        asked = replace(own)
        vars(asked)["value"] = watch
        return asked

    def entrant(who, held):
        queries = tuple(watched(listed.query, held) for listed in agreement.queries)
        return JoiningAgent(who, "data", queries, agreement, terms, books[who])

    ids, threads = dict.fromkeys(AGENTS, "data"), SimpleNamespace(map=map)
    context = ServiceContext(books, ids, ReceiptKey(b"of both sites"), threads, one.log)
    join = Join("r1", "", HASH, tuple((who, RECORDS) for who in AGENTS))
    one._runs["r1"] = SiteRun(join, {"north": entrant("north", own), "south": entrant("south", other)}, context)
    return computed


NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-320, 5e-324, 1e-160, 1e-38, 1e19, 7e38, 1e49, LARGEST, -LARGEST,
           float(np.nextafter(LARGEST, np.inf)), 1e60, 1e154, 1e308, np.inf, -np.inf, np.nan]  # fmt: skip
SHAPES = [(4, 3), (3, 4), (1, 3, 4), (1, 4, 1), (1, 1, 3), (1, 12), (12,), (1,), (), (0,), (0, 4, 3), (3, 4, 3),
          (1, 1, 4, 3), (1, 4, 3, 1), (1, 0), (1, 5, 3), (2, 4, 6)]  # fmt: skip
SIZES = [-1, 0, 1, 2, 4, 3.0, 2**31, 2**62, 10**30, None, True, "4", [4]]
THINGS = [None, True, False, 0, 1, -1, 2.5, 1e300, 10**40, 2**53, "", "1", "r1", HASH, "\ud800", "\x1b[2J", "x" * 300,
          [], {}, [[]], [None], ["north"], ["north", "north"], ["west"], [["north", 1]], {"north": 1}]  # fmt: skip
WHO = [["north"], ["south"], ["south", "north"], ["north", "north"], ["north", "west"], ["west"], [], [""]]
KINDS = ["hello", "join", "meet", "close", "answer", "refusal", "ask sum", "ASK", ""]


class Coordinator:
    """A source of messages, most of them nearly right."""

    def __init__(self, name, seed):
        self.agreement = Agreement(tuple(LISTS[name]), Adjacency.ZERO_OUT, RECORDS)
        self.rng, self.dice, self.t = np.random.default_rng(seed), random.Random(repr(seed)), 0

    def one_of(self, things):
        return self.dice.choice(things)

    def array(self, shape):
        """Entries from the tame to the largest there are."""
        found = self.rng.normal(size=shape) * 10.0 ** self.dice.randrange(-3, 3)
        if self.dice.random() < 0.3:
            found[self.rng.random(shape) < 0.4] = self.one_of(NUMBERS[:13])
        if self.dice.random() < 0.1:
            found = self.one_of([1, -1, 0]) * np.full(shape, self.one_of(NUMBERS[:13]))
        return found

    def parts(self, t, rows):
        parameters = self.agreement.at(min(max(t, 1), self.agreement.rounds)).query.parameters
        return {name: self.array((rows, *part.shape)) for name, part in parameters.parts.items()}

    def wild(self, found):
        """Parameters of another name, number, shape or size."""
        found, way = dict(found), self.dice.randrange(5)
        name = self.one_of([*found, "point", "model", "w"])
        if way == 0 and found.get(name) is not None:
            found[name][self.rng.random(found[name].shape) < 0.3] = self.one_of(NUMBERS)
        elif way == 1:
            found[name] = np.full(self.one_of(SHAPES), self.one_of(NUMBERS))
        elif way == 2:
            found.pop(name, None)
        elif way == 3:
            found |= {self.one_of(["more", "", "attempt", "\x00", "x" * 300]): np.zeros(self.one_of(SHAPES))}
        else:
            found = {f"{name}{k}": np.zeros(1) for k in range(self.one_of([2, 16, 17]))} | found
        return found

    def message(self):
        """Return header and body: right in a share of cases, else changed in one to three places."""
        self.t = self.t % (self.agreement.rounds + 1) + self.dice.randrange(1, 3)
        asked = self.one_of([AGENTS, AGENTS, ("north",), ("south",), AGENTS[::-1]])
        ask = Ask("r1", HASH, self.t, 0, asked, (), self.parts(self.t, self.one_of([1, 1, len(asked)])))
        ways = [self.dice.randrange(12) for _ in range(self.one_of([0, 1, 1, 1, 1, 2, 3]))]
        if 0 in ways:
            ask = replace(ask, t=max(self.t - self.dice.randrange(4), 1))
        if any(way in (1, 2, 3) for way in ways):
            ask = replace(ask, parameters=self.wild(ask.parameters))
        header, body = written(ask if 4 not in ways else self.other())
        for way in ways:
            self.change(way, header)
            if way == 11:
                body = self.one_of([b"", body[:-1], body[:-8], body + b"\0" * 8, self.rng.bytes(len(body))])
        return wire.parsed(json.dumps(header)), body

    def other(self):
        key = Signed("north", HASH, 2 * HASH)
        join = Join("r1", "", HASH, (("north", RECORDS),))
        shown = replace(join, receipts=(Receipt("north", HASH, self.dice.randrange(1, 9), HASH, HASH),))
        return self.one_of([Meet("r1", HASH, (key,)), join, shown, Close("r1", "0" * 64), Close("r2", HASH)])

    def change(self, way, header):
        """Change one field of a header."""
        if way == 5:
            header["t"] = self.one_of([self.t - 1, 0, -self.t, ROUNDS + 1, 2**53 - 1, float(self.t), *THINGS])
        elif way == 6:
            header[self.one_of(["run", "agreed"])] = self.one_of(["R1", "r1 ", "6" * 64, *THINGS])
        elif way == 7:
            header[self.one_of(["asked", "peers"])] = self.one_of([*WHO, *THINGS])
        elif way == 8:
            header["attempt"] = self.one_of([1, -1, 2**53 - 1, *THINGS])
        elif way == 9 and isinstance(arrays := header["arrays"], dict) and arrays:
            name = self.one_of(list(arrays))
            shape = arrays[name] if isinstance(arrays[name], list) else []
            wild = self.one_of([[*shape, 1], shape[::-1], shape[1:], [self.one_of(SIZES), *shape[1:]], *THINGS])
            header["arrays"] = arrays | {name: wild}
        elif way == 10:
            header |= self.one_of([{"version": self.one_of([1, 3, 2.0, True, None, "2"])}, {"kind": self.one_of(KINDS)},
                                   {"more": 1}, {"arrays": self.one_of(THINGS)}, {"rho": 1.0}])  # fmt: skip


def outcome(one, lines, message):
    """All that a coordinator, and the site's owner, can see of a reply but for its noisy numbers."""
    lines.clear()
    header, body = one.answer(*message)
    reply = read(header, body, REPLIES)
    numbers = reply.words.view(np.float64) if header["kind"] == "answer" else np.zeros(0)
    return header, len(body), bool(np.isfinite(numbers).all()), tuple(lines)


def check_reached(computed, kind):
    """No refused message reaches the records, and whatever reaches them is of its one form."""
    assert kind == "answer" or not computed
    for query, parameters in computed:
        assert set(parameters) == set(query.parameters.parts)
        for name, part in query.parameters.parts.items():
            value = parameters[name]
            assert type(value) is np.ndarray
            assert (value.dtype, value.shape) == (np.float64, part.shape)
            assert np.abs(value).max() <= LARGEST


def differ(messages, seed, check=check_reached):
    """(messages sent, messages answered, those whose outcomes differed)."""
    split, sent, answered, lines = [], 0, 0, ([], [])
    block = -(-messages // (5 * len(LISTS)))
    with tempfile.TemporaryDirectory() as place:
        logs = [lambda text, said=said, **_: said.append(text) for said in lines]
        pair = [service(Path(place) / str(side), log=log) for side, log in enumerate(logs)]
        for k, name in enumerate(LISTS):
            for n in range(5):
                base, neighbour, other = records(n)
                computed = [joined(one, name, own, other) for one, own in zip(pair, (base, neighbour), strict=True)]
                source = Coordinator(name, (seed, k, n))
                for _ in range(block):
                    message = source.message()
                    seen = [outcome(one, said, message) for one, said in zip(pair, lines, strict=True)]
                    sent, answered = sent + 1, answered + (seen[0][0]["kind"] == "answer")
                    if seen[0] != seen[1] or len(computed[0]) != len(computed[1]):
                        split.append((name, n, message, *seen))
                    for some, (header, *_) in zip(computed, seen, strict=True):
                        check(some, header["kind"])
                        some.clear()
        for one in pair:
            one.close()
    return sent, answered, split


def quick_noise(patch):
    """Draw noise from a seed: half of the time would go into exact integers."""
    normal = np.random.default_rng(0).normal
    patch.setattr(lattice, "sample", lambda _law, t, shape, *_: np.rint(t * normal(size=shape)).astype(int))


def test_no_message_tells_two_sites_apart_that_differ_in_one_record(monkeypatch):
    quick_noise(monkeypatch)
    with np.errstate(all="raise"):  # no record decides whether an answer is computed
        sent, answered, split = differ(MESSAGES, 0)
    assert sent >= MESSAGES
    assert answered > 0.1 * sent  # or the records were never reached
    assert not split, f"{len(split)} of {sent} messages split the pair, the first: {split[0]}"


def test_messages_tell_them_apart_if_the_numbers_of_a_question_are_not_checked(monkeypatch):
    quick_noise(monkeypatch)
    monkeypatch.setattr(Numbers, "checked", lambda _part, _name, value: value)
    assert differ(7000, 0, check=lambda *_: None)[2]


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        quick_noise(patch)
        found = differ(int(sys.argv[1]), int(sys.argv[2]))
    print(f"{found[0]} messages, {found[1]} answered, {len(found[2])} split two sites that differ in one record")
    sys.exit(bool(found[2]))
