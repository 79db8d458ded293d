"""The service of a site in secure sums: words that add up, under keys that were pinned; a refusal for all else."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tacit.agent.masks.keys import RunKey, SigningKey
from tacit.cli import main
from tacit.errors import DataError, SpecError
from tacit.federation import facts, ledger_files
from tacit.federation import service as services_module
from tacit.federation.messages import Close, Closed, Meet, Met, Refusal, Signed, SiteAnswer, Unjoined, written
from tacit.federation.service import Service
from tacit.federation.site import load
from tacit.federation.site import read as read_site
from tacit.privacy.history import Limit
from tacit.privacy.summed import Attempt, Peers, attempt_of
from tacit.run import build, compose
from tests.federation import sites as small
from tests.federation.sites import ROUNDS, SIZES, agreement_of, at, told
from tests.federation.sum_sites import FOUR, ONE, PEERS, begun, joined, key_of, make, services, spec
from tests.federation.test_service import neighbour, watched


def raw(one: Service, message) -> tuple[str, bytes]:
    header, body = one.answer(*written(message))
    return json.dumps(header), body


def spent(party) -> dict[str, list[tuple[int, int]]]:
    """The rounds and attempts that each agent has paid for."""
    return {
        name: [(key.round, key.step) for key in ledger.history().answers]
        for one in party.services.values()
        for name, ledger in one._ledgers.items()
    }


def nothing(party) -> bool:
    return not any(spent(party).values())


def words_of(party, question) -> dict[str, np.ndarray]:
    """What the agents of all sites give, each site asked for all of its agents."""
    found = {}
    for one in party.services.values():
        reply = told(one, replace(question, asked=one.own.agents))
        if isinstance(reply, SiteAnswer):
            found |= {each.agent: row for each, row in zip(reply.given, reply.words, strict=True)}
    return found


def numbers_of(one: Service, run: str = "r1"):
    """The public numbers of the sums of a run."""
    return agreement_of(one, run).summed(0)


def added(words: dict[str, np.ndarray]) -> np.ndarray:
    return np.add.reduce(list(words.values()), dtype=np.uint64)


def run_keys(one: Service) -> list[str]:
    return sorted(path.name for path in one.site.ledger.glob("*.runkey"))


# --- what was agreed -----------------------------------------------------------------------------------------------


def test_words_of_all_sites_add_up_to_a_sum_that_a_coordinator_reads_and_no_part_of_them_does(tmp_path, monkeypatch):
    """Without noise, the sum is that of the gradients on the grid, to the step; the coordinator knows public facts."""
    monkeypatch.setattr("tacit.privacy.summed.sample", lambda _law, _steps, shape, _bits: np.zeros(shape, np.int64))
    with begun(tmp_path) as party:
        question = party.ask()
        words = words_of(party, question)
        assert set(words) == set(PEERS)
        chosen = spec()
        hollow = build.transformed(chosen, facts.hollow("trial", party["alone"].public, party.join.agents))
        attempt = build.setup(chosen, hollow).deployment.attempt(1, 3)
        residues = added(words)
        assert attempt.holds(residues)
        values = [
            agent.queries[0].value({"point": question.parameters["point"][0]})
            for one in party.services.values()
            for agent in one._runs["r1"].agents.values()
        ]
        steps = sum(np.rint(value / attempt.step).astype(np.int64).ravel() for value in values)
        np.testing.assert_array_equal(attempt.steps(residues), steps)
        assert not attempt.holds(added({who: words[who] for who in ("north", "south")}))
        for row, value in zip((words[who] for who in words), values, strict=True):
            assert not attempt.holds(row)
            assert (attempt.steps(row) != np.rint(value / attempt.step).ravel()).all()


@pytest.mark.parametrize("changed", ["records", "noise", "bound", "colluding"])
def test_the_public_numbers_of_the_sum_are_part_of_what_is_agreed(tmp_path, monkeypatch, changed):
    """Agents with different grids would add up to nothing, and find out after the first round."""
    agreement = compose.agreement_of

    def other_numbers(*of):
        found = agreement(*of)
        (one,) = found.queries
        if changed == "records":
            return replace(found, most_records=found.most_records + 1)
        if changed == "colluding":
            return replace(found, in_sum=replace(found.in_sum, colluding=2))
        if changed == "noise":
            one = replace(one, noise=replace(one.noise, multiplier=1.01 * one.noise.multiplier))
        else:
            own = one.query.record_bound
            one = replace(one, query=replace(one.query, record_bound=replace(own, value=0.99 * own.value)))
        return replace(found, queries=(one,))

    with services(tmp_path, sites=ONE)["alone"] as one:
        fine = small.join(one, chosen=spec())
        monkeypatch.setattr(compose, "agreement_of", other_numbers)
        other = small.join(one, chosen=spec())
        monkeypatch.setattr(compose, "agreement_of", agreement)
        assert (other.spec, other.agents) == (fine.spec, fine.agents)
        assert told(one, other) == Refusal("r1")
        assert told(one, fine).kind == "joined"


def test_a_run_is_paid_for_round_by_round_and_no_more_than_it_was_agreed_to_cost(tmp_path):
    with begun(tmp_path) as party:
        for t in range(1, ROUNDS + 1):
            assert set(words_of(party, party.ask(t))) == set(PEERS)
        assert spent(party) == {who: [(t, 0) for t in range(1, ROUNDS + 1)] for who in PEERS}
        for one in party.services.values():
            for name, agent in one._runs["r1"].agents.items():
                (account,) = one._ledgers[name].show()
                assert account.epsilon < agent.terms.epsilon <= 1.0
                assert agent.terms.repetitions == 1


def test_a_lost_peer_is_left_out_of_another_attempt_which_is_paid_for_too(tmp_path):
    """Sets of 3 of 4 agents: the attempt over all, and then over those that are left."""
    with begun(tmp_path, sites=FOUR) as party:
        everybody = (*PEERS, "west")
        lost = words_of(party, party.ask(peers=everybody))
        assert set(lost) == set(everybody)
        found = words_of(party, party.ask(attempt=1))
        assert set(found) == set(PEERS)
        assert all((found[who] != lost[who]).any() for who in PEERS)
        assert spent(party) == {**{who: [(1, 0), (1, 1)] for who in PEERS}, "west": [(1, 0)]}
        assert set(words_of(party, party.ask(2, peers=everybody))) == set(everybody)
        not_a_peer = party.ask(3, site="more", asked=("west",))
        assert told(party["more"], not_a_peer) == Refusal("r1")


def test_a_run_has_as_many_releases_as_rounds_and_repetitions_however_they_are_shared_out(tmp_path):
    with begun(tmp_path) as party:
        for t, attempt in ((1, 0), (1, 1), (2, 0), (2, 1), (3, 0)):
            assert set(words_of(party, party.ask(t, attempt))) == set(PEERS)
        for t, attempt in ((3, 1), (4, 0), (4, 1)):
            assert words_of(party, party.ask(t, attempt)) == {}
        assert {len(rounds) for rounds in spent(party).values()} == {ROUNDS + 1}


def test_the_same_question_gets_the_same_bytes_at_no_price_also_after_a_restart(tmp_path):
    with begun(tmp_path) as party:
        question = party.ask(site="pair")
        sent = raw(party["pair"], question)
        keys = run_keys(party["pair"])
        assert len(keys) == 2
        assert raw(party["pair"], question) == sent
        one = party.reopened("pair")
        assert told(one, question) == Unjoined("r1")
        again = told(one, party.join)
        assert again.signed == tuple(each for each in party.signed if each.agent in ("south", "east"))
        assert told(one, question) == Unjoined("r1")  # joined, and not yet met
        assert told(one, party.meet()) == Met("r1")
        assert raw(one, question) == sent
        assert run_keys(one) == keys
        assert [stat.S_IMODE(path.stat().st_mode) for path in one.site.ledger.glob("*.runkey")] == [0o600] * 2
        assert spent(party)["south"] == [(1, 0)]
        assert set(words_of(party, party.ask(2))) == set(PEERS)


def test_a_restart_in_the_middle_goes_on_with_the_same_masks(tmp_path):
    """A service that has started again, and one that has not, still add up."""
    with begun(tmp_path) as party:
        words_of(party, party.ask(1))
        one = party.reopened("alone")
        told(one, party.join)
        told(one, party.meet())
        attempt = attempt_of(numbers_of(one), Peers(3, 1))
        assert attempt.holds(added(words_of(party, party.ask(2))))


def test_many_who_ask_the_same_at_once_cause_one_release(tmp_path):
    with begun(tmp_path) as party, ThreadPoolExecutor(8) as threads:
        question = party.ask(site="pair")
        assert len(set(threads.map(lambda _: raw(party["pair"], question), range(16)))) == 1
        assert spent(party)["south"] == spent(party)["east"] == [(1, 0)]


def test_a_run_that_was_not_used_for_long_is_joined_and_met_again(tmp_path, monkeypatch):
    monkeypatch.setattr(services_module, "RUNS_KEPT", 1)
    with begun(tmp_path) as party:
        one, question = party["alone"], party.ask()
        assert told(one, small.join(one, "r2", chosen=spec("r2"))).kind == "joined"
        assert told(one, question) == Unjoined("r1")
        assert told(one, party.meet()) == Unjoined("r1")
        assert told(one, party.join).kind == "joined"
        assert told(one, party.meet()) == Met("r1")
        assert told(one, question).kind == "answer"


def test_a_body_that_was_not_read_is_an_invitation_to_join_again(tmp_path):
    with joined(tmp_path) as party:
        header, body = written(party.ask())
        assert party["alone"].largest_body == len(body)
        assert party["alone"].answer_unread({**header, "run": "r9"}) == written(Unjoined("r9"))
        assert party["alone"].answer_unread(header) == written(Refusal())
        assert party["alone"].answer_unread({**header, "run": "r9", "kind": "answer"}) == written(Refusal())


def test_ledgers_keep_the_words_of_the_last_rounds_and_no_earlier_ones(tmp_path):
    with begun(tmp_path) as party:
        for t in (1, 2, 3, 4):
            words_of(party, party.ask(t))
        assert words_of(party, party.ask(1)) == {}
        for t in (2, 3, 4):  # round 2 goes with the next release
            assert set(words_of(party, party.ask(t))) == set(PEERS)


# --- who is who ----------------------------------------------------------------------------------------------------


def test_joining_shows_a_key_that_the_agents_own_signing_key_has_signed_and_no_secret(tmp_path):
    with joined(tmp_path) as party:
        assert [one.agent for one in party.signed] == ["north", "south", "east"]
        secrets = [path.read_text().strip() for path in tmp_path.rglob("*key")]
        assert len(secrets) == 6 + len(party.services)  # signing keys, run keys, and each site's key of receipts
        assert not set(secrets) & {text for one in party.signed for text in (one.key, one.signature)}
        assert len({one.key for one in party.signed}) == 3


def forged(who: str, run: str = "r1") -> Signed:
    """What a coordinator can make itself: a key of its own, under a signature of its own."""
    statement = SigningKey.new().state(run, who, RunKey.new().public)
    return Signed(who, statement.key.hex(), statement.signature.hex())


def elsewhere(party, who: str, run: str) -> Signed:
    """What an agent has signed truly, for another run."""
    site = next(one for one in party.services.values() if who in one.own.agents)
    made = told(site, small.join(site, run, chosen=spec(run)))
    assert made.kind == "joined"
    return next(one for one in made.signed if one.agent == who)


def changed(party, who: str, **parts) -> tuple[Signed, ...]:
    return tuple(replace(one, **parts) if one.agent == who else one for one in party.signed)


def meetings(party) -> dict[str, tuple[Signed, ...]]:
    """What a coordinator might deliver in place of the keys of all agents."""
    signed, mine = party.signed, {one.agent: one for one in party.signed}
    swapped = replace(mine["south"], key=mine["east"].key, signature=mine["east"].signature)

    def instead(one):
        return tuple(one if each.agent == one.agent else each for each in signed)

    return {
        "a substituted key": instead(forged("south")),
        "a key under the signature of another": changed(party, "south", key=RunKey.new().public.hex()),
        "a substituted signature": changed(party, "south", signature="00" * 64),
        "another agent's statement": instead(swapped),
        "a statement of another run": instead(elsewhere(party, "south", "r7")),
        "a key of small order": changed(party, "south", key="00" * 32),
        "a substituted key of the site itself": instead(forged("north")),
        "an old key of the site itself": instead(elsewhere(party, "north", "r7")),
        "one agent too few": signed[:2],
        "nobody": (),
        "nobody but the agent itself": (mine["north"],),
        "one agent too many": (*signed, forged("west")),
        "an agent of the coordinator's own in the place of another": (*signed[:2], forged("west")),
    }


MEETINGS = [
    "a substituted key", "a key under the signature of another", "a substituted signature",
    "another agent's statement", "a statement of another run", "a key of small order",
    "a substituted key of the site itself", "an old key of the site itself", "one agent too few", "nobody",
    "nobody but the agent itself", "one agent too many", "an agent of the coordinator's own in the place of another",
]  # fmt: skip


def without_one(site):
    """The records of a site, but for one of each agent, which is absent in its place."""
    whole, shards = load(site), []
    for one in whole.shards:
        x, present = one.x.copy(), np.arange(len(one)) != 3
        x[~present] = 0
        shards.append(replace(one, x=x, present=present))
    return replace(whole, shards=tuple(shards))


def twins_of(tmp_path, monkeypatch, made, other: str):
    """Two parties that differ in one record of each agent: another one, or none."""
    one = made(tmp_path / "a")
    if other == "absent":
        monkeypatch.setattr(services_module, "load", without_one)
    two = made(tmp_path / "b", change=neighbour if other == "changed" else None)
    monkeypatch.setattr(services_module, "load", load)
    theirs = [party["alone"].own.shards[0] for party in (one, two)]
    assert (theirs[0].x != theirs[1].x).any(axis=1).sum() == 1
    assert (theirs[1].present is not None) == (other == "absent")
    return [one, two]


NEIGHBOURS = pytest.mark.parametrize("other", ["changed", "absent"])


@NEIGHBOURS
def test_keys_that_the_pinned_agents_did_not_sign_for_this_run_are_not_met(tmp_path, monkeypatch, other):
    twins = twins_of(tmp_path, monkeypatch, joined, other)
    offered = [meetings(party) for party in twins]
    assert list(offered[0]) == MEETINGS
    for name in MEETINGS:
        seen = [raw(p["alone"], p.meet(signed=of[name])) for p, of in zip(twins, offered, strict=True)]
        assert seen[0] == seen[1], name
        assert seen[0] == (json.dumps(written(Refusal("r1"))[0]), b""), name
        assert told(twins[0]["alone"], twins[0].ask()) == Unjoined("r1"), name
    for party in twins:
        with party.met():  # none of it has done any harm
            assert set(words_of(party, party.ask())) == set(PEERS)


def test_keys_with_the_hash_of_another_agreement_are_not_met(tmp_path):
    with joined(tmp_path) as party:
        assert told(party["alone"], party.meet(agreed="0" * 64)) == Refusal("r1")
        assert told(party["alone"], party.meet()) == Met("r1")


def test_agents_that_joined_on_other_terms_are_not_met_and_share_no_mask(tmp_path):
    """With less noise in the shares of others, the sum would have less than was agreed here."""
    loud, faint = joined(tmp_path / "a"), services(tmp_path / "a", sites={"pair": ("south", "east")})
    loud["pair"].close()
    with loud, faint["pair"] as other:
        other.site.agree.values["privacy.epsilon"] = (2.5,)  # this site agrees to less noise
        cheap = small.join(other, chosen=spec(**{"privacy.epsilon": 2.5}))
        assert cheap.run == loud.join.run
        signed = {one.agent: one for one in told(other, cheap).signed}
        before = {one.agent: one for one in loud.signed}
        assert {who: one.key for who, one in signed.items()} == {who: before[who].key for who in ("south", "east")}
        mixed = tuple(signed.get(one.agent, one) for one in loud.signed)
        assert told(loud["alone"], loud.meet(signed=mixed)) == Refusal("r1")
        for these in (mixed, loud.signed):
            assert told(other, Meet("r1", cheap.agreed, these)) == Refusal("r1")
        assert told(loud["alone"], loud.meet()) == Met("r1")


def test_what_was_met_stays_and_the_owner_is_told_of_other_keys(tmp_path):
    """The same again is no harm, in whatever order; another true statement of a peer is not taken any more."""
    lines = []
    with begun(tmp_path, log=lambda text, **_: lines.append(text)) as party:
        one = party["alone"]
        assert told(one, party.meet()) == Met("r1")
        assert told(one, party.meet(signed=party.signed[::-1])) == Met("r1")
        before = dict(one._runs["r1"].agents)
        party["pair"].close()
        site = party["pair"].site
        for file in (*site.ledger.iterdir(), *site.witness.iterdir()):
            file.unlink()  # the keys of the others are lost, and what their ledgers knew of the run
        ledger_files.init(site)
        lost = party.reopened("pair")
        fresh = {each.agent: each for each in told(lost, party.join).signed}
        other = tuple(fresh.get(each.agent, each) for each in party.signed)
        assert other != party.signed
        assert told(lost, party.meet(signed=other)) == Met("r1")
        assert told(one, party.meet(signed=other)) == Refusal("r1")
        assert one._runs["r1"].agents == before
        assert any("other keys came for run 'r1'" in line for line in lines)
        words = words_of(party, party.ask())  # masked for keys that the other side does not have
        assert not attempt_of(numbers_of(one), Peers(3, 1)).holds(added(words))


@pytest.mark.parametrize("pin", [
    lambda site, peers: peers if site == "pair" else {who: key for who, key in peers.items() if who != "east"},
    lambda site, peers: peers if site == "pair" else peers | {"east": SigningKey.new().public.hex()},
    lambda site, peers: peers if site == "pair" else {},
], ids=["unpinned", "pinned to another key", "nobody pinned"])  # fmt: skip
def test_a_peer_that_is_not_pinned_is_not_met(tmp_path, pin):
    with joined(tmp_path, pin=pin) as party:
        assert told(party["alone"], party.meet()) == Refusal("r1")
        assert told(party["alone"], party.ask()) == Unjoined("r1")
        assert told(party["pair"], party.meet()) == Met("r1")
        assert nothing(party)


def test_data_of_another_name_have_another_key(tmp_path):
    """One key is for one budget: an answer from there must not be masked as one from here was."""
    with begun(tmp_path) as party:
        words_of(party, party.ask())
        path = tmp_path / "alone" / "site.toml"
        apart = 'north 2025"\nshares_no_record_with = ["north 2024"]'
        path.write_text(path.read_text().replace('north 2024"', apart))
        one = party.reopened("alone")
        (fresh,) = told(one, party.join).signed
        assert fresh.key != party.signed[0].key
        assert told(one, party.meet()) == Refusal("r1")  # its own key in it is the old one
        assert told(one, party.meet(signed=(fresh, *party.signed[1:]))) == Met("r1")
        assert told(party["pair"], party.meet(signed=(fresh, *party.signed[1:]))) == Refusal("r1")


# --- a hostile coordinator -----------------------------------------------------------------------------------------


def hostile(party) -> dict[str, tuple[dict, bytes]]:
    """Questions to the site "alone" of a coordinator that wants more than a sum, after round 2 was answered."""
    shape = small.shape_of(party["alone"])

    def question(*args, **parts):
        return written(party.ask(*args, **{"asked": ("north",)} | parts))

    def header(**parts):
        head, body = written(party.ask(3))
        return head | parts, body

    huge = np.zeros(shape)
    huge[0, 0] = 1e308
    return {
        "a sum over one": question(3, peers=("north",)),
        "a sum over nobody": question(3, peers=()),
        "a set below the threshold": question(3, peers=("north", "south")),
        "a set without the own agent": question(3, peers=("east", "south")),
        "peers out of order": question(3, peers=("north", "east", "south")),
        "a peer twice": header(peers=["east", "north", "north", "south"]),
        "a peer of the coordinator's own": question(3, peers=("east", "north", "west")),
        "a peer more of the coordinator's own": question(3, peers=(*PEERS, "west")),
        "a peer without a name": header(peers=["", "east", "north", "south"]),
        "a peer by another spelling": question(3, peers=("North", "east", "north", "south")),
        "the same attempt over another set": question(2, peers=("north", "south", "west")),
        "the same attempt over a smaller set": question(2, peers=("north", "south")),
        "the same attempt with another w": question(2, w=np.full(shape, 0.5)),
        "an earlier round with another w": question(1, w=np.full(shape, 0.5)),
        "another attempt at an earlier round": question(1, attempt=1),
        "attempts beyond those agreed": question(3, attempt=2),
        "the largest attempt": question(3, attempt=2**53 - 1),
        "a negative attempt": header(attempt=-1),
        "an attempt in text": header(attempt="0"),
        "an attempt that is true": header(attempt=True),
        "a round beyond those agreed": question(ROUNDS + 1),
        "the largest round": question(2**53 - 1),
        "another hash": question(3, agreed="0" * 64),
        "wrong shape": question(3, w=np.zeros((shape[0], shape[1] + 1))),
        "transposed": question(3, w=np.zeros(shape[::-1])),
        "flat": question(3, w=np.zeros(shape[0] * shape[1])),
        "no entry": question(3, w=np.zeros((0, 0))),
        "nan": question(3, w=np.full(shape, np.nan)),
        "inf": question(3, w=np.full(shape, np.inf)),
        "1e308": question(3, w=huge),
        "a release in place of a sum": written(replace(party.ask(3), peers=(), attempt=0)),
        "an agent of another site": question(3, asked=("south",)),
        "an agent of another site too": question(3, asked=("north", "south")),
        "no agent": question(3, asked=()),
        "two points for one agent": question(3, parameters={"point": np.zeros((2, *shape))}),
        "a parameter more": question(3, parameters=at(np.zeros(shape)) | {"clip": np.ones((1, 1))}),
        "its own answer": header(kind="answer"),
        "more fields": header(colluding=0),
        "less body": (header()[0], header()[1][:-8]),
        "more body": (header()[0], header()[1] + b"\0" * 8),
        "other keys": written(party.meet(signed=party.signed[:2])),
        "an end with another hash": written(replace(party.close(), agreed="0" * 64)),
    }


ATTACKS = [
    "a sum over one", "a sum over nobody", "a set below the threshold", "a set without the own agent",
    "peers out of order", "a peer twice", "a peer of the coordinator's own", "a peer more of the coordinator's own",
    "a peer without a name", "a peer by another spelling", "the same attempt over another set",
    "the same attempt over a smaller set", "the same attempt with another w", "an earlier round with another w",
    "another attempt at an earlier round", "attempts beyond those agreed", "the largest attempt",
    "a negative attempt", "an attempt in text", "an attempt that is true", "a round beyond those agreed",
    "the largest round", "another hash", "wrong shape", "transposed", "flat", "no entry", "nan", "inf", "1e308",
    "a release in place of a sum", "an agent of another site", "an agent of another site too", "no agent",
    "two points for one agent", "a parameter more", "its own answer", "more fields", "less body", "more body",
    "other keys", "an end with another hash",
]  # fmt: skip


@NEIGHBOURS
def test_a_hostile_coordinator_gets_refusals_alone_and_no_record_decides_their_bytes(tmp_path, monkeypatch, other):
    twins = twins_of(tmp_path, monkeypatch, begun, other)
    for party in twins:
        for t in (1, 2):
            assert set(words_of(party, party.ask(t))) == set(PEERS)
    attacks = [hostile(party) for party in twins]
    assert list(attacks[0]) == ATTACKS
    paid = {who: [(1, 0), (2, 0)] for who in PEERS}
    for name in ATTACKS:
        seen = [party["alone"].answer(*attack[name]) for party, attack in zip(twins, attacks, strict=True)]
        assert seen[0] == seen[1], name
        header, body = seen[0]
        assert header == written(Refusal(header["run"]))[0], name
        assert (header["run"], body) in (("", b""), ("r1", b"")), name
        assert [spent(party) for party in twins] == [paid] * 2, name
    for party in twins:
        with party:
            assert set(words_of(party, party.ask(3))) == set(PEERS)  # none of it has done any harm


def test_a_server_that_tells_agents_different_sets_gets_random_words_once(tmp_path):
    """The set is part of every mask: sums over part of those who think that they are in one set show nothing."""
    with begun(tmp_path, sites=FOUR) as party:
        whole, part = (*PEERS, "west"), PEERS
        one = {"north": told(party["alone"], party.ask(peers=whole)).words[0]}
        pair = told(party["pair"], party.ask(peers=part, site="pair")).words
        numbers = numbers_of(party["alone"])
        for n in (3, 4):
            assert not attempt_of(numbers, Peers(n, 1)).holds(added(one | dict(zip("ab", pair, strict=True))))
        assert told(party["alone"], party.ask(peers=part)) == Refusal("r1")  # that attempt is spent
        assert told(party["pair"], party.ask(peers=whole, site="pair")) == Refusal("r1")
        assert spent(party)["north"] == [(1, 0)]


def test_a_threshold_of_the_site_stands_above_that_of_the_run(tmp_path):
    with begun(tmp_path, sites=FOUR, threshold=4) as party:
        assert words_of(party, party.ask()) == {}
        assert nothing(party)
        assert len(words_of(party, party.ask(peers=(*PEERS, "west")))) == 4


def test_a_run_with_fewer_agents_than_the_threshold_is_not_joined(tmp_path):
    found = services(tmp_path, threshold=4)
    for one in found.values():
        with one:
            assert told(one, small.join(one, chosen=spec())) == Refusal("r1")
            assert run_keys(one) == []


def test_a_run_that_expects_more_to_collude_raises_the_threshold(tmp_path):
    with begun(tmp_path, sites=FOUR, chosen=spec(**{"privacy.colluding": 2})) as party:
        assert words_of(party, party.ask()) == {}
        assert nothing(party)
        assert len(words_of(party, party.ask(peers=(*PEERS, "west")))) == 4


def test_a_run_of_releases_takes_no_part_in_sums_nor_a_run_of_sums_in_releases(tmp_path):
    with services(tmp_path, sites=ONE, agree='"privacy.trust" = ["sum", "nobody"]\n')["alone"] as one:
        plain = small.join(one, "plain", chosen=small.spec("plain"))
        reply = told(one, plain)
        assert (reply.joined, reply.signed) == (("north",), ())
        assert told(one, small.ask(one, plain)).kind == "answer"
        signed = told(one, small.join(one, chosen=spec())).signed
        name = plain.run, plain.agreed
        for message in (replace(small.ask(one, plain, 2), peers=PEERS), Meet(*name, signed)):
            assert told(one, message) == Refusal("plain")
        assert told(one, small.ask(one, plain, 2)).kind == "answer"
        question = small.ask(one, plain, 3)
    with Service(one.site) as one:
        told(one, plain)
        assert told(one, question).kind == "answer"  # it goes on from what its ledger holds
        assert told(one, Close(*name)) == Closed("plain")
        assert told(one, plain) == Refusal("plain")


def test_whatever_fails_at_a_record_is_told_to_the_owner_alone(tmp_path, monkeypatch):
    lines = []
    party = begun(tmp_path, log=lambda text, **_: lines.append(text))

    def fails(records, _parameters):
        if len(records) == SIZES["south"]:
            raise ZeroDivisionError("record 7 of patient Smith")

    watched(monkeypatch, fails)
    with party:
        found = raw(party["pair"], party.ask(site="pair"))
        assert "Smith" not in found[0]
        assert json.loads(found[0])["refused"] == ["south"]
        assert any("ZeroDivisionError: record 7 of patient Smith" in line for line in lines)
        assert spent(party)["south"] == []
        assert spent(party)["east"] == [(1, 0)]


def test_an_agent_without_budget_refuses_and_pays_nothing(tmp_path):
    with begun(tmp_path) as party:
        party["pair"]._ledgers["south"].set_limit(Limit(1e-3, 1e-6))
        found = told(party["pair"], party.ask(site="pair"))
        assert (found.refused, [each.agent for each in found.given]) == (("south",), ["east"])
        assert spent(party)["south"] == []


def test_a_run_that_a_ledger_cannot_pay_with_its_repetitions_is_not_joined(tmp_path):
    """The budget is for T + R releases: what is enough for T rounds alone may not be."""
    with services(tmp_path, sites=ONE)["alone"] as one:
        join = small.join(one, chosen=spec(**{"privacy.epsilon": 1.0}))
        one._ledgers["north"].set_limit(Limit(0.99, 1e-6))
        assert told(one, join) == Refusal("r1")
        assert run_keys(one) == []
        one._ledgers["north"].set_limit(Limit(3.0, 1e-6))
        assert told(one, join).kind == "joined"


def test_shares_have_the_noise_that_was_agreed(tmp_path, monkeypatch):
    """Of m honest agents each draws s steps, s^2 m >= t^2; s depends on the set and on nothing of the records."""
    drawn = []
    share = Attempt.share
    monkeypatch.setattr(Attempt, "share", lambda self, value: drawn.append(self) or share(self, value))
    with begun(tmp_path) as party:
        words_of(party, party.ask())
        (attempt,) = set(drawn)
        numbers = numbers_of(party["alone"])
        assert 2 * (attempt.share_steps * attempt.step) ** 2 >= numbers.scale**2
        assert attempt == numbers.attempt(Peers(3, 1))


# --- the end -------------------------------------------------------------------------------------------------------


def test_the_end_of_a_run_deletes_its_keys_and_what_is_stored_of_it_and_not_its_price(tmp_path):
    with begun(tmp_path) as party:
        question = party.ask()
        words_of(party, question)
        one = party["alone"]
        assert len(run_keys(one)) == 1
        assert told(one, party.close()) == Closed("r1")
        assert run_keys(one) == []
        assert told(one, question) == Unjoined("r1")
        assert told(one, party.close()) == Closed("r1")  # the reply may have been lost
        assert spent(party)["north"] == [(1, 0)]
        assert told(one, party.join) == Refusal("r1")  # a double that came late: it draws no key
        assert told(party.reopened("alone"), party.join) == Refusal("r1")
        assert run_keys(one) == []
        assert told(party["alone"], question) == Unjoined("r1")
        assert spent(party)["north"] == [(1, 0)]
        assert len(run_keys(party["pair"])) == 2


def test_a_run_that_was_joined_and_not_met_ends_too(tmp_path):
    with joined(tmp_path) as party:
        assert told(party["alone"], party.close()) == Closed("r1")
        assert run_keys(party["alone"]) == []


def test_a_run_that_was_joined_and_not_met_ends_after_a_restart(tmp_path):
    with joined(tmp_path) as party:
        one = party.reopened("alone")
        assert len(run_keys(one)) == 1
        assert told(one, party.close()) == Closed("r1")
        assert run_keys(one) == []


def test_a_run_ends_after_a_restart_by_what_its_ledger_knows(tmp_path):
    with begun(tmp_path) as party:
        one = party.reopened("alone")
        assert told(one, replace(party.close(), agreed="0" * 64)) == Unjoined("r1")
        assert told(one, replace(party.close(), run="r9")) == Closed("r9")  # which no ledger knows: nothing is lost
        assert len(run_keys(one)) == 1
        assert told(one, party.close()) == Closed("r1")
        assert run_keys(one) == []


def test_a_run_that_nobody_ended_loses_its_keys_when_it_is_over_and_another_run_meets(tmp_path):
    lines = []
    with begun(tmp_path, log=lambda text, **_: lines.append(text)) as party:
        last = party.ask(t=ROUNDS)
        words_of(party, party.ask(t=ROUNDS - 1))
        one, kept = party["alone"], run_keys(party["alone"])
        for name in ("r2", "r3"):
            if name == "r3":
                words = told(one, last).words
            again = small.join(one, name, chosen=spec(name), agents=party.join.agents)
            signed = tuple(each for each_site in party.services.values() for each in told(each_site, again).signed)
            assert told(one, replace(party.meet(signed=signed), run=name, agreed=again.agreed)) == Met(name)
            assert (kept[0] in run_keys(one), len(run_keys(one))) == (name == "r2", 2)
        np.testing.assert_array_equal(told(one, last).words, words)  # of a run that is loaded
        assert any("its key of run 'r1', which is over, is deleted" in line for line in lines)
        one = party.reopened("alone")
        assert told(one, last) == Unjoined("r1")
        assert told(one, party.join) == Refusal("r1")


def test_an_owner_sees_the_keys_of_runs_that_nobody_ended_and_deletes_them(tmp_path, capsys):
    with begun(tmp_path) as party:
        words_of(party, party.ask())
        told(party["pair"], small.join(party["alone"], "r2", chosen=spec("r2"), agents=party.join.agents))
    file = str(tmp_path / "pair" / "site.toml")
    assert main(["agent", "check", file]) == 0
    text = capsys.readouterr().out
    assert f"run key of run r1, answered to round 1 of {ROUNDS}\n" in text
    assert "4 run keys in all" in text  # two of a run that was joined and not met, which no ledger knows
    assert main(["agent", "check", "--json", file]) == 0
    found = json.loads(capsys.readouterr().out)["sum"]["run_keys"]
    assert found == {"count": 4, "runs": {"r1": {"answered": 1, "rounds": ROUNDS}}}
    assert main(["agent", "key", "--forget-runs", file]) == 0
    assert capsys.readouterr().out == "deleted 4 run keys\n"
    assert run_keys(party["pair"]) == []
    assert run_keys(party["alone"])
    assert len(list((tmp_path / "pair" / "keys").iterdir())) == 2
    assert main(["agent", "check", file]) == 0
    assert "run key" not in capsys.readouterr().out


def test_whoever_waits_while_a_run_ends_finds_it_gone(tmp_path):
    with begun(tmp_path) as party:
        run, question = party["alone"]._runs["r1"], party.ask()
        assert told(party["alone"], party.close()) == Closed("r1")
        assert run.reply(question) == Unjoined("r1")
        assert run.reply(party.meet()) == Unjoined("r1")
        assert spent(party)["north"] == []


# --- keys on disk --------------------------------------------------------------------------------------------------


def test_a_service_with_a_key_that_others_may_read_or_without_one_does_not_start(tmp_path):
    path = make(tmp_path)["alone"]
    key = tmp_path / "alone" / "keys" / "north.key"
    key.chmod(0o644)
    with pytest.raises(DataError, match="others may read it"):
        Service(read_site(path))
    key.chmod(0o600)
    Service(read_site(path)).close()
    key.rename(key.with_suffix(".moved"))
    with pytest.raises(DataError, match="agent north has no signing key"):
        Service(read_site(path))


def test_a_run_key_that_others_may_read_is_not_used(tmp_path):
    with begun(tmp_path) as party:
        (file,) = party["alone"].site.ledger.glob("*.runkey")
        file.chmod(0o644)
        one = party.reopened("alone")
        assert told(one, party.join) == Refusal("r1")
        file.chmod(0o600)
        assert told(one, party.join).kind == "joined"


def test_own_agents_among_the_peers_have_their_own_key(tmp_path):
    make(tmp_path)
    own = key_of(tmp_path / "alone", "north")
    path = make(tmp_path, pin=lambda _, peers: {"north": own} | peers)["alone"]
    Service(read_site(path)).close()  # the same key again is no harm
    path = make(tmp_path, pin=lambda _, peers: peers | {"north": SigningKey.new().public.hex()}, ledgers=False)["alone"]
    with pytest.raises(SpecError, match="pins agent north, which is one of this site, to another key"):
        Service(read_site(path))
    path = make(tmp_path, pin=lambda _, peers: peers | {"west": own}, ledgers=False)["alone"]
    with pytest.raises(SpecError, match="west and north are pinned to one key"):
        Service(read_site(path))


def test_a_site_that_pins_nobody_needs_no_cryptography(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.federation.service._sums", None)
    one, first = small.begun(tmp_path)
    with one:
        assert told(one, small.ask(one, first)).kind == "answer"
