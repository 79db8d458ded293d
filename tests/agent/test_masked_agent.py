"""A deployed agent of a secure sum: what it refuses before a record is touched, what it pays and never says twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography")

from tacit.agent.cover import Alone
from tacit.agent.masks import files
from tacit.agent.masks.keys import RunKey
from tacit.errors import (
    IncompatibleError,
    QuestionChanged,
    RefusalWarning,
    Refused,
    SpecError,
    TacitError,
    TermsChanged,
    Unfit,
)
from tacit.privacy.ledger import Ledger
from tacit.privacy.summed import InSum, Peers, attempt_of
from tacit.privacy.terms import Memory
from tacit.run import deployment
from tacit.types import Shard
from tests.agent import agents as deployed
from tests.agent.agents import SHAPE, value_at, with_records, with_value
from tests.conftest import federation

R = 2
PEERS = ("0", "1", "2", "3")
SUM = {"privacy.trust": "sum", "privacy.repetitions": R, "data.agents": 4}


def masked(ledger=None, over=None, started=False, **values):
    """All agents of a small federation, which answer into a secure sum."""
    return deployed.agents(ledger, federation(4) if over is None else over, started=started, **SUM | values)


def ask(agent, t=1, attempt=0, peers=PEERS, w=None, **changed):
    return deployed.ask(agent, t, w, **{"attempt": attempt, "peers": peers} | changed)


def untouched(agent):
    """The agent, whose records must not be read."""

    def never(_asked):
        raise AssertionError("a record was touched")

    return with_value(agent, lambda _value: never)


def attempt_over(agent, present, colluding=1):
    return attempt_of(agent.agreement.summed(0), Peers(present, colluding))


def total(agents, **asked):
    names = asked.get("peers", PEERS)
    chosen = [agent for agent in agents if agent.name in names]
    attempt = attempt_over(chosen[0], len(chosen))
    words = [agent.answer(ask(agent, **asked)).value for agent in chosen]
    return attempt.total(np.add.reduce(words, dtype=np.uint64)), attempt


@pytest.mark.parametrize("names", [PEERS, ("0", "1", "3")])
def test_the_sum_over_any_peers_is_that_of_their_values_with_the_noise_of_one_release(names):
    agents = masked()
    values = [value_at(agent, np.full(SHAPE, 0.1)) for agent in agents if agent.name in names]
    found, attempt = total(agents, peers=names)
    noise = found - np.sum(values, axis=0).ravel()
    whole = attempt.share_steps * attempt.step * np.sqrt(len(names))
    assert 0.1 * whole < np.abs(noise).max() < 6 * whole
    assert whole >= agents[0].agreement.summed(0).scale


@pytest.mark.parametrize(("changed", "why"), [
    ({"peers": ("1", "2", "3")}, "none of its business"),
    ({"peers": ("0", "1")}, "threshold"),
    ({"peers": ("0",)}, "threshold|cannot collude|hides less"),
    ({"peers": ()}, "if and only if"),
    ({"peers": ("0", "1", "9")}, "no signed key"),
    ({"peers": ("0", "1", "1", "2")}, "each once"),
    ({"peers": ("2", "1", "0")}, "in their order"),
    ({"peers": ["0", "1", "2"]}, "peers are names"),
    ({"peers": ("0", 1, "2")}, "names"),
    ({"attempt": R + 1}, "from 0 to 2"),
    ({"attempt": -1}, "from 0 to 2"),
    ({"attempt": True}, "whole number"),
    ({"attempt": 0.0}, "whole number"),
    ({"t": 7}, "from 1 to 6"),
    ({"t": 0}, "from 1 to 6"),
    ({"w": np.full(SHAPE, np.nan)}, "not finite"),
    ({"w": np.full(SHAPE, 1e300)}, "not finite, or has an entry beyond"),
    ({"w": np.zeros((2, 2))}, "shape"),
    ({"run": "another"}, "another run"),
    ({"agreed": "0" * 64}, "another agreement"),
    ({"parameters": {"point": np.zeros(SHAPE), "attempt": 0}}, "the parts point"),
])  # fmt: skip
def test_what_was_not_agreed_is_refused_before_a_record_is_touched(changed, why):
    agent = untouched(masked()[0])
    with pytest.raises((Unfit, SpecError), match=why):
        agent.answer(ask(agent, **changed))
    assert not agent.store._answered


@given(st.lists(st.sampled_from([*PEERS, "4", "", "0\n", "ab", 3, None]), max_size=6), st.booleans())
def test_whatever_is_named_as_peers_is_answered_over_exactly_those_or_not_at_all(names, as_tuple):
    agent = masked()[0]
    good = as_tuple and names in [list(one) for one in (PEERS, PEERS[:3], ("0", "1", "3"), ("0", "2", "3"))]
    question = ask(agent, peers=tuple(names) if as_tuple else names)
    if good:
        assert agent.answer(question).value.dtype == np.uint64
    else:
        with pytest.raises(TacitError):
            agent.answer(question)


def test_an_attempt_is_answered_once_for_one_set_at_one_model(tmp_path):
    agent = masked(tmp_path)[0]
    first = agent.answer(ask(agent)).value
    np.testing.assert_array_equal(agent.answer(ask(agent)).value, first)
    for changed in ({"peers": PEERS[:3]}, {"w": np.zeros(SHAPE)}):
        with pytest.raises(QuestionChanged):
            agent.answer(ask(agent, **changed))
    assert agent.store.verify().releases == 1


def test_every_attempt_has_fresh_noise_and_masks_and_is_paid_for(tmp_path):
    agents = masked(tmp_path)
    totals = [total(agents, attempt=a)[0] for a in range(R + 1)]
    words = [agents[0].answer(ask(agents[0], attempt=a)).value for a in range(R + 1)]
    assert len({found.tobytes() for found in totals}) == len({own.tobytes() for own in words}) == R + 1
    assert agents[0].store.verify().releases == R + 1


def test_no_more_attempts_are_answered_than_were_agreed_in_all(tmp_path):
    agent = masked(tmp_path)[0]
    for t, attempt in ((1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (4, 0), (5, 0), (6, 0)):
        agent.answer(ask(agent, t=t, attempt=attempt))
    for t, attempt in ((6, 1), (6, 2), (2, 2), (1, 2)):
        with pytest.raises(TermsChanged):
            agent.answer(ask(agent, t=t, attempt=attempt))
    assert agent.store.verify().releases == 6 + R


def test_an_attempt_that_was_left_out_is_not_answered_later(tmp_path):
    agent = masked(tmp_path)[0]
    agent.answer(ask(agent, attempt=1))
    with pytest.raises(TermsChanged):
        agent.answer(ask(agent, attempt=0))


def test_a_restart_answers_the_same_and_goes_on_with_the_same_masks(tmp_path):
    values = {"run.name": "one"}
    before = masked(tmp_path, **values)
    first = {agent.name: agent.answer(ask(agent)).value for agent in before[:2]}
    for agent in before:
        agent.store.close()
    after = masked(tmp_path, started=True, **values)
    words = [agent.answer(ask(agent)).value for agent in after]
    for agent, own in zip(after[:2], words, strict=False):
        np.testing.assert_array_equal(own, first[agent.name])
    attempt = attempt_over(after[0], 4)
    values = np.sum([value_at(agent, np.full(SHAPE, 0.1)) for agent in after], axis=0).ravel()
    found = attempt.total(np.add.reduce(words, dtype=np.uint64))
    assert np.abs(found - values).max() < 12 * attempt.share_steps * attempt.step


def test_the_server_is_told_no_reason_and_neighbours_are_refused_alike(tmp_path):
    over = federation(4)
    first = over.shards[0]
    less = with_records(over, Shard(np.vstack([np.zeros_like(first.x[:1]), first.x[1:]]), first.y))
    told = []
    for n, one in enumerate((over, less)):
        agent = masked(tmp_path / str(n), one)[0]
        for changed in ({"peers": ("0", "1")}, {"t": 9}, {"w": np.full(SHAPE, np.inf)}):
            with pytest.warns(RefusalWarning), pytest.raises(Refused) as refusal:
                agent.answer_or_refuse(ask(agent, **changed))
            assert refusal.value.__context__ is None
            told.append((n, str(refusal.value)))
    assert [text for n, text in told if n] == [text for n, text in told if not n]


def covered(agent, **changed):
    return {"cover": replace(agent.cover, **changed)}


def masks_of(agent, **changed):
    masker = agent.cover.masker
    return covered(agent, masker=replace(masker, terms=replace(masker.terms, **changed)))


@pytest.mark.parametrize("change", [
    lambda agent: covered(agent, agreement=replace(agent.agreement, most_records=agent.agreement.most_records // 2)),
    lambda agent: covered(agent, agreement=replace(agent.agreement, in_sum=InSum(1, 1))),
    lambda agent: {"terms": replace(agent.terms, scale=agent.terms.scale / 2)},
    lambda agent: {"terms": replace(agent.terms, repetitions=R + 1)},
    lambda agent: {"terms": replace(agent.terms, rounds=9)},
    lambda agent: covered(agent, masker=replace(agent.cover.masker, agent="1")),
    lambda agent: masks_of(agent, run="another"),
    lambda agent: masks_of(agent, colluding=0),
    lambda agent: {"cover": Alone(agent.agreement, agent.agreement.most_records)},
], ids=["sensitivity", "releases", "scale", "repetitions", "rounds", "agent", "run", "colluding", "alone"])  # fmt: skip
def test_an_agent_is_not_made_with_less_noise_other_terms_or_masks_of_another(change):
    agent = masked()[0]
    with pytest.raises(IncompatibleError):
        replace(agent, **change(agent), store=Memory())


def test_a_huge_record_changes_no_more_than_its_clipped_gradient():
    over = federation(4)
    first = over.shards[0]
    huge = np.array(first.x, dtype=np.float64)
    huge[0] = 1e49
    agents = [masked(over=one)[0] for one in (over, with_records(over, Shard(huge, first.y, dtype=np.float64)))]
    one, other = (value_at(agent, np.full(SHAPE, 0.1)) for agent in agents)
    summed = agents[0].agreement.summed(0)
    assert np.linalg.norm(one - other) <= 2 * summed.sensitivity  # both of them lie within one of absence
    assert np.abs(other).max() <= agents[1].agreement.summed(0).largest


# --- keys on disk


def test_a_run_key_is_drawn_once_kept_and_forgotten(tmp_path):
    key = files.run_key(tmp_path, "run", "a", "data")
    assert files.run_key(tmp_path, "run", "a", "data") == key
    others = [("run", "a", "other"), ("run", "b", "data"), ("again", "a", "data")]
    assert len({key.secret, *(files.run_key(tmp_path, *other).secret for other in others)}) == 4
    assert all(one.stat().st_mode & 0o777 == 0o600 for one in tmp_path.iterdir())
    files.forget_run(tmp_path, "run")
    assert len(list(tmp_path.iterdir())) == 1  # of another run
    assert files.run_key(tmp_path, "run", "a", "data") != key


def test_a_ledger_that_was_lost_takes_the_masks_of_a_run_with_it(tmp_path):
    values = {"run.name": "one"}
    before = masked(tmp_path, **values)
    first = before[0].answer(ask(before[0])).value
    keys = dict(before[0].cover.masker.keys)
    for agent in before:
        agent.store.close()
    (tmp_path / "0.ledger").unlink()
    after = masked(tmp_path, **values)
    again = after[0].answer(ask(after[0])).value
    attempt = attempt_over(after[0], 4)
    apart = np.abs(attempt.steps(again - first))  # were the masks the same, two shares would be apart
    assert np.count_nonzero(apart > 20 * attempt.share_steps) > 3  # of 12; of other masks 11 are expected
    assert {name for name in keys if after[0].cover.masker.keys[name] != keys[name]} == {"0"}


@pytest.mark.parametrize("text", [b"", b"zz" * 32, b"00" * 31, b"00" * 33, b"\xff" * 64, b"00" * 32 + b"\n\n\n"])
def test_a_file_that_holds_no_key_is_refused(tmp_path, text):
    path = tmp_path / "a.key"
    path.write_bytes(text)
    path.chmod(0o600)
    if text.strip() == b"00" * 32:
        assert files.signing_key(path).secret == bytes(32)
        return
    with pytest.raises(TacitError, match="holds no key"):
        files.signing_key(path)


def test_a_key_that_others_may_read_is_refused_and_one_that_peers_know_is_not_drawn_again(tmp_path):
    files.new_signing_key(tmp_path / "keys" / "a.key")
    with pytest.raises(TacitError, match="there already"):
        files.new_signing_key(tmp_path / "keys" / "a.key")
    (tmp_path / "keys" / "a.key").chmod(0o640)
    with pytest.raises(TacitError, match="others may read"):
        files.signing_key(tmp_path / "keys" / "a.key")


def test_a_secret_is_not_in_the_words_that_show_a_key():
    key = RunKey.new()
    assert key.secret.hex() not in repr(key)
    assert str(key.secret) not in repr(key)


def test_ledgers_of_a_sum_open_again_with_all_attempts(tmp_path):
    agent = masked(tmp_path)[0]
    for attempt in range(R + 1):
        agent.answer(ask(agent, attempt=attempt))
    agent.store.close()
    with Ledger.open(tmp_path / "0.ledger", deployment.price, create=False) as again:
        assert [(key.round, key.step) for key in again.history().answers] == [(1, a) for a in range(R + 1)]
