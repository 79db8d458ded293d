"""The audit attacks the secure sum: the deployed one shows a record no better than its claim, every fault is caught."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography")

from tacit.audit import finding, mechanism, secure_sum, suite, training
from tacit.audit.controls import CONTROLS
from tacit.audit.finding import NOISE
from tacit.audit.neighbours import neighbours
from tacit.audit.sum_faults import CANARY, HONEST, NAMES, Fault, missing
from tacit.audit.sum_views import Asked, coalition
from tacit.cli import main
from tacit.errors import IncompatibleError, Refused, SpecError

SURE = 1 - 1e-9  # noise and keys are of the operating system: a false alarm must be no event
(SPEC,) = suite.sums()
SUMS = {name: control for name, control in CONTROLS.items() if control.fault}
HIDDEN = ("one agent", "low bits", "one agent's attempts", "one agent's rounds", "a part")
SHOWN_BY = {  # draws, and the views that must refute the claim
    "halved-shares": (120, {NOISE, "mu"}),
    "missing-share": (120, {NOISE}),
    "same-noise": (240, {"two attempts", "two rounds"}),
    "reused-mask": (640, {"one agent's attempts", "one agent's rounds"}),
    "wrong-modulus": (120, {"one agent", "a part"}),
    "unmasked": (120, {"one agent"}),
    "cut-masks": (120, {"a part"}),
}


def violated(found):
    return {view for view, check in found.checks.items() if check.violated}


def attacked(rounds=8, again=8, fault=None):
    """The agents of an attack with the canary and without it, and the model that the canary moves most."""
    spec = secure_sum._short(SPEC)
    pair = neighbours(spec)
    steer = pair.questions[0].msg.w
    return (*coalition(spec, pair.sides, pair.other, steer.shape, (rounds, again), fault), steer)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("_again", range(3))
def test_a_secure_sum_keeps_its_claim_and_the_attack_sees_much_of_it(adjacency, _again):
    found = secure_sum.audit(SPEC.with_values({"privacy.adjacency": adjacency}), draws=350, confidence=SURE)
    assert found.verdict == "consistent"
    assert found.claim.epsilon <= 8 * (1 + 1e-9)
    assert found.measured > 0.2 * found.claim.epsilon
    assert found.detects >= 0.7
    assert set(found.checks) == {NOISE, "rates", "mu", "two attempts", "one dropped", "two rounds", *HIDDEN}
    assert {found.checks[view].claimed for view in HIDDEN} == {0}
    assert {found.checks[view].measured for view in HIDDEN} == {0}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("_again", range(5))
def test_every_fault_of_a_secure_sum_is_caught_by_the_views_that_it_opens(name, _again):
    draws, views = SHOWN_BY[name]
    found = SUMS[name].audit(draws)
    assert found.attack == "control"
    assert violated(found) >= views


@pytest.mark.parametrize("name", ["missing-share", "unmasked", "cut-masks"])
def test_a_fault_shows_in_no_view_that_it_leaves_whole(name):
    """Or the audit would cry wolf: each view of the other kind stays within its claim."""
    whole = {"missing-share": HIDDEN, "unmasked": ("mu", NOISE, "a part", "low bits", "two attempts"),
             "cut-masks": ("mu", NOISE, "one agent", "low bits", "one dropped")}[name]  # fmt: skip
    assert not violated(SUMS[name].audit(120, confidence=SURE)) & set(whole)


def test_low_bits_that_neither_noise_nor_masks_hide_are_seen():
    def bare(attempt, value, at):
        return missing(attempt, value, replace(at, agent=HONEST[-1]))

    shifted = Fault(bare, lambda words, _: words << np.uint64(secure_sum.LOW))
    assert "low bits" in violated(secure_sum.audit(SPEC, 160, fault=shifted))


def test_what_the_coalition_takes_off_leaves_the_sum_of_the_honest_shares():
    """And without what it knows, the words add up to nothing: masks are on in every view."""
    side, _, steer = attacked(fault=Fault(lambda attempt, value, _: replace(attempt, share_steps=1).share(value)))
    asked = Asked(1, 0, HONEST, steer)
    attempt, words = side.attempt(asked), side.seen(asked)
    values = sum(side.value(name, steer) for name in HONEST)
    total = attempt.total(words.sum(axis=0, dtype=np.uint64))
    np.testing.assert_allclose(total, values, rtol=0, atol=100 * attempt.step)
    blind = replace(side, known=[])
    assert not attempt.holds(blind.seen(replace(asked, t=2)).sum(axis=0, dtype=np.uint64))


def test_sets_that_shrink_show_totals_whose_noise_is_new_each_time():
    """The difference of S and of S less the record's agent is that agent's value: under the noise of two sums."""
    rounds = 150
    side, _, steer = attacked(rounds, rounds)
    others = [name for name in HONEST if name != CANARY]
    noise = []
    for t in range(1, rounds + 1):
        totals = []
        for attempt, honest in enumerate((HONEST, others)):
            asked = Asked(t, attempt, honest, steer)
            totals.append(side.attempt(asked).total(side.seen(asked).sum(axis=0, dtype=np.uint64)))
        noise.append(totals[0] - totals[1] - side.value(CANARY, steer))
    claimed = side.summed.multiplier * side.summed.sensitivity
    entries = np.array(noise) / claimed
    low, high = 2 * (1 - 6 / np.sqrt(entries.size / 2)), 2 * (1 + 6 / np.sqrt(entries.size / 2))
    assert low < entries.var() < high * 1.01  # shares are rounded up
    assert entries.std() > 1


def test_a_server_that_drops_agents_one_by_one_gets_no_more_than_all_releases_and_none_below_the_threshold():
    """Three rounds and one repetition are four releases, whichever attempts they are."""
    side, _, steer = attacked(rounds=3, again=1)
    side.seen(Asked(1, 0, HONEST, steer))
    with pytest.warns(UserWarning, match="the threshold"), pytest.raises(Refused):
        side.seen(Asked(1, 1, HONEST[:1], steer))
    side.seen(Asked(1, 1, HONEST[:2], steer))
    side.seen(Asked(2, 0, HONEST[:2], steer))
    side.seen(Asked(2, 1, HONEST[:2], steer))
    with pytest.warns(UserWarning, match="is not answered"), pytest.raises(Refused):
        side.seen(Asked(3, 0, HONEST[:2], steer))


def test_scores_of_words_know_the_sign_of_a_residue():
    words = np.array([[3], [2**10 - 3], [7]], np.uint64)
    scores = secure_sum.nearer(words, (np.array([-2]), np.array([2])), 10)
    assert [np.sign(score) for score in scores] == [-1, 1, -1]


def test_the_command_attacks_a_sum_and_says_what_it_cannot_attack(capsys, monkeypatch):
    monkeypatch.setattr(finding, "CONFIDENCE_DEPLOYED", SURE)
    assert main(["audit", "--trust", "sum", "--epsilon", "8", "--draws", "200"]) == 0
    assert "secure sum" in capsys.readouterr().out
    assert main(["audit", "--control", "unmasked", "--draws", "160"]) == 0
    assert "VIOLATED: caught" in capsys.readouterr().out
    assert main(["audit", "--trust", "sum", "--what", "run"]) == 2
    assert "a secure sum shows none of them" in capsys.readouterr().err
    assert main(["audit", "--trust", "sum", "--algorithm", "outp", "--draws", "200"]) == 2
    assert "cannot go behind a secure sum" in capsys.readouterr().err


@pytest.mark.parametrize("audit", [mechanism.audit, training.audit])
def test_attacks_on_one_agent_refuse_a_sum(audit):
    with pytest.raises(IncompatibleError, match="secure sum"):
        audit(SPEC)


def test_a_sum_that_claims_nothing_is_not_audited():
    with pytest.raises((SpecError, IncompatibleError), match="epsilon"):
        secure_sum.audit(SPEC.with_values({"privacy.epsilon": float("inf")}), draws=100)


def test_without_cryptography_the_rows_of_the_sum_are_left_out_with_a_word(monkeypatch, capsys):
    from tacit.audit import controls

    for name in [one for one in sys.modules if one.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [one for one in sys.modules if one.startswith(("tacit.agent.masks", "tacit.audit.s"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("tacit.audit.secure_sum")
    monkeypatch.setattr(suite, "mechanisms", lambda: [suite.standard()])
    kept = {name: CONTROLS[name] for name in ("halved-noise", "halved-shares")}
    monkeypatch.setattr(controls, "CONTROLS", kept)
    assert main(["audit", "--what", "mechanism", "--draws", "400", "--controls"]) == 0
    told = capsys.readouterr()
    assert "halved-noise" in told.out
    assert "sum" not in told.out
    assert told.err.count("the extra 'secure'") == 2
    assert main(["audit", "--control", "halved-shares", "--draws", "100"]) == 2
    assert "the extra 'secure'" in capsys.readouterr().err


def test_the_federation_of_the_attack_is_the_one_that_its_names_say():
    side, _, _ = attacked()
    assert tuple(side.honest) == HONEST
    assert set(next(iter(side.honest.values())).cover.masker.keys) == set(NAMES)
