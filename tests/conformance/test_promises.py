"""What every method promises, pinned, and tied to the noise that it really draws.

A method that stops promising, promises another amount, or draws another amount than it promises, fails here.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from tacit.methods.method import simulate
from tacit.methods.promise import Trusted, Unit
from tacit.methods.registry import METHODS
from tacit.privacy.release import BinomialRelease, GaussianRelease, GeneralRelease, LaplaceRelease
from tacit.run import build
from tacit.run.presets import preset
from tests.conformance.test_methods import BUDGET, small
from tests.conftest import federation
from tests.methods.tasks import empty

RECORD, REPLACED, CLIENT = Unit.RECORD, Unit.REPLACED, Unit.CLIENT
NOBODY, SUM, SERVER, CURATOR = Trusted.NOBODY, Trusted.SUM, Trusted.SERVER, Trusted.CURATOR

# who is protected, who is trusted, and what a run of three rounds (or of one, where the method has one) releases at
# BUDGET by default; None where nothing is promised
ONE, TWO, THREE, SIX, NINE = (
    ((GaussianRelease(m), n),) for m, n in ((1.39059, 1), (1.96659, 2), (2.40858, 3), (3.40625, 6), (4.17178, 9))
)
MASKED = ((GeneralRelease(2.96752, 9.9e-6), 1), (GaussianRelease(128.947), 1))
PINNED = {
    "amp": (RECORD, CURATOR, MASKED),
    "chaudhuri": (RECORD, CURATOR, ((GeneralRelease(2.97), 1), (GeneralRelease(0.03), 1))),
    "chaudhuri-output": (RECORD, CURATOR, ((GeneralRelease(3.0), 1),)),
    "cpsgd": (RECORD, NOBODY, ((BinomialRelease(7110, 16.0, 12, 1e-7 / 3), 3),)),
    "dp-fedavg": (CLIENT, SERVER, THREE),
    "dpsgd": (RECORD, CURATOR, THREE),
    "dpsgd-local": (RECORD, NOBODY, SIX),
    "dvp": (RECORD, NOBODY, ((GeneralRelease(2.96623), 1), (GaussianRelease(91.6283), 1))),
    "fedavg": None,
    "fedgd": (RECORD, NOBODY, THREE),
    "fedprox": None,
    "gadmm": (RECORD, NOBODY, TWO),  # of three rounds the heads answer in the first and the last
    "graph-admm": (RECORD, NOBODY, THREE),
    "iceadmm": (RECORD, NOBODY, THREE),
    "iiadmm": (RECORD, NOBODY, THREE),
    "input-perturbation": (RECORD, NOBODY, ONE),
    "kifer": (RECORD, CURATOR, MASKED),
    "nbafl": None,
    "objp-local": (RECORD, NOBODY, SIX),
    "objt-local": (RECORD, NOBODY, SIX),
    "onemessage": (RECORD, NOBODY, ONE),
    "onemessage-sum": (RECORD, SUM, ONE),
    "outp-huang": (REPLACED, NOBODY, THREE),
    "outp-plus": (REPLACED, NOBODY, THREE),
    "outp-released": None,
    "pvp": (RECORD, NOBODY, THREE),
    "secure-sum": (RECORD, SUM, THREE),
}
PRIVATE = [name for name, pinned in PINNED.items() if pinned]


# the ADMM family, which agents of tacit.admm answer: the noise of three rounds at BUDGET under the sound preset
FAMILY = {
    "objp": GaussianRelease(2.40858),
    "objt": GaussianRelease(2.40858),
    "outp": GaussianRelease(2.40858),
    "objt-laplace": LaplaceRelease(math.inf, 0.386651),
    "admm": None,
    "iadmm-prox": None,
    "iadmm-trust": None,
}


def test_every_method_is_pinned():
    assert PINNED.keys() | FAMILY.keys() == METHODS.keys()


@pytest.mark.parametrize("name", FAMILY)
def test_a_method_of_the_admm_family_promises_what_is_pinned(name):
    values = {"run.rounds": 3, "privacy.dp_delta": BUDGET.dp_delta}
    if FAMILY[name] is not None:
        values["privacy.epsilon"] = BUDGET.epsilon
    promise = build.setup(preset("sound", name).with_values(values), federation()).promise
    if FAMILY[name] is None:
        assert promise.caveats == ("no noise is added.",)
        return
    assert (promise.unit, promise.trusted, promise.caveats, promise.once) == (RECORD, NOBODY, (), ())
    ((release, count),) = promise.each_round
    assert (type(release), count) == (type(FAMILY[name]), 1)
    for term, value in vars(FAMILY[name]).items():
        assert vars(release)[term] == (value if value is None else pytest.approx(value, rel=1e-4))


@pytest.mark.parametrize("name", PINNED)
def test_a_method_promises_what_is_pinned(name):
    own, method = small(METHODS[name])
    promise = method.promise(own)
    spent = promise.total(method.rounds, BUDGET.dp_delta)
    if PINNED[name] is None:
        assert promise.caveats
        assert spent is None
        return
    unit, trusted, events = PINNED[name]
    assert (promise.unit, promise.trusted, promise.caveats) == (unit, trusted, ())
    told = promise.events(method.rounds)
    assert [(type(release), count) for release, count in told] == [(type(release), count) for release, count in events]
    for (release, _), (expected, _) in zip(told, events, strict=True):
        assert vars(release) == pytest.approx(vars(expected), rel=1e-4)
    assert 0.98 * BUDGET.epsilon < spent.epsilon <= BUDGET.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", PINNED)
def test_the_index_of_methods_says_what_is_pinned(name):
    index = (Path(__file__).parents[2] / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| \[{name}\]\({name}\.md\) \|.*$", index, re.MULTILINE)
    protects, trusts = (cell.strip() for cell in line.split("|")[3:5])
    if PINNED[name] is None:
        assert (protects, trusts) == ("nothing: not private", "-")
    else:
        unit, trusted, _ = PINNED[name]
        assert protects == unit.value
        assert trusted.value.startswith(trusts)


def clipped(own, method):
    """How far a record moves a sum of clipped gradients over I."""
    return method.clip * own.problem.weight * own.rounding


def longest(own):
    """How far a record moves the gradient where nothing is clipped: sqrt(2) bounds a residual of the softmax."""
    return own.row_norm * math.sqrt(2) * own.problem.weight


def moments(own, method):
    """How far a record of the largest norm moves X'X and X'Y, whose labels less 1/K have the norm sqrt(1 - 1/K)."""
    return own.row_norm**2 * math.sqrt(1 + method.balance**2 * (1 - 1 / own.shape[1]))


def labelled(own, method):
    """How far a record of the largest norm and its label, less 1/K, lie from zero."""
    return own.row_norm * math.sqrt(1 + method.balance**2 * (1 - 1 / own.shape[1]))


def shared(own, method):
    """The noise of a total over that of the agents who do not collude."""
    return math.sqrt(own.n_agents / (own.n_agents - method.in_sum.colluding))


def jacobian(own, mu):
    """What the determinant takes of an epsilon."""
    k = own.shape[1]
    return (k - 1) * math.log1p(own.row_norm**2 * own.problem.weight / (k * mu))


def radial(own, release, mu):
    """The std of an entry of noise of density exp(-|b| / m), whose minimiser is epsilon-private."""
    return math.sqrt(math.prod(own.shape) + 1) / (release.epsilon - jacobian(own, mu))


def normal(own, release, mu):
    """The std of Gaussian noise whose minimiser is (epsilon, dp_delta)-private."""
    s = math.sqrt(own.shape[1] - 1) + math.sqrt(2 * math.log(1 / release.dp_delta))
    e = release.epsilon - jacobian(own, mu)
    return (s + math.sqrt(s**2 + 2 * e)) / (2 * e)


def minimum(law):
    """Of one minimiser by a curator, with noise of this law in its objective; the second release adds next to none."""
    return lambda own, one, release, _: [law(own, release, one.convexity) * longest(own) / one.convexity]


def gaussian(spread):
    """Of what is seen, from the std of each part for a multiplier of one."""
    return lambda own, one, release: [release.multiplier * part for part in spread(own, one)]


def _outp(own, _one):
    return [REPLACED_RECORD * longest(own)]


def _dvp(own, one, release, mask):
    rho = one.penalty(own, 1)
    return [math.hypot(radial(own, release, rho), 2 * one.tolerance * mask.multiplier) * longest(own) / rho]


REPLACED_RECORD = 2  # one record goes, and another comes
# the std of every part that is seen of the first round, on records that are empty and without a regulariser, as it
# follows from the releases that are promised and from how far one record moves what is seen
SPREAD = {
    "amp": minimum(normal),
    "chaudhuri": minimum(radial),
    "chaudhuri-output": lambda own, one, release: [
        math.sqrt(math.prod(own.shape) + 1) / release.epsilon * (1 + 2 * one.tolerance) * longest(own) / one.convexity
    ],
    "cpsgd": lambda _own, _one, release: [math.sqrt(release.coins) / 2],  # whole numbers of steps
    "dp-fedavg": gaussian(lambda own, one: [one.clip / (one.rate * own.n_agents)]),
    "dpsgd": gaussian(lambda own, one: [one.step * clipped(own, one) / one.rate]),
    "dpsgd-local": gaussian(
        lambda own, one: [math.sqrt(one.local_steps) * one.step * one.clip / (one.rate * own.own_sizes)]
    ),
    "dvp": _dvp,
    "fedgd": gaussian(lambda own, one: [clipped(own, one)]),
    "gadmm": gaussian(lambda own, one: [clipped(own, one) / one.rho(1)]),
    "graph-admm": gaussian(lambda own, one: [clipped(own, one) / one.rho(1)]),
    "iceadmm": gaussian(
        lambda own, one: [clipped(own, one) / (one.rho(1) + one.zeta), clipped(own, one) / (1 + one.zeta / one.rho(1))]
    ),
    "iiadmm": gaussian(lambda own, one: [clipped(own, one) / one.rho(1)]),
    # zeros stand after the records of an agent that has fewer than another
    "input-perturbation": gaussian(
        lambda own, one: [labelled(own, one) * math.sqrt(own.n_records / own.n_agents / max(own.sizes))]
    ),
    "kifer": minimum(normal),
    # half of the first noise stays in the second point: the mean of both holds 3/4 of the first, 1/2 of the second
    "objp-local": gaussian(lambda own, one: [math.hypot(3 / 4, 1 / 2) * clipped(own, one) / (2 * one.rho(1))]),
    "objt-local": gaussian(lambda own, one: [math.hypot(1 / 2, 1 / 2) * clipped(own, one) / one.rho(1)]),
    "onemessage": gaussian(lambda own, one: [moments(own, one)]),
    "onemessage-sum": gaussian(lambda own, one: [moments(own, one) * shared(own, one)]),
    "outp-huang": gaussian(_outp),
    "outp-plus": gaussian(_outp),
    "pvp": gaussian(lambda own, one: [(1 + 2 * one.tolerance) * longest(own) / one.rho(1)]),
    "secure-sum": gaussian(lambda own, one: [clipped(own, one) * shared(own, one)]),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_the_noise_that_is_drawn_is_the_noise_that_is_promised(name):
    """Over 150 draws, which give a std to 2.5 % or better."""
    own, method = small(METHODS[name], beta=0.0)
    releases = [release for release, _ in method.promise(own).events(method.rounds)]
    draws = [next(simulate(method, empty(own, seed)))[1].seen for seed in range(150)]
    expected = SPREAD[name](own, method, *releases)
    assert len(expected) == len(draws[0])
    for part, std in zip(zip(*draws, strict=True), expected, strict=True):
        assert np.sqrt(np.mean(np.square(np.stack(part) / std))) == pytest.approx(1, abs=0.1)
