"""The service of a site: what was agreed, from its ledger, to the bit; a refusal that tells nothing for all else."""

import hashlib
import json
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tacit.data.schema import parse
from tacit.errors import DataRenamed
from tacit.federation import facts
from tacit.federation import service as services
from tacit.federation.messages import Ask, Refusal, SiteAnswer, Unjoined, written
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy import lattice
from tacit.privacy.history import Limit
from tacit.privacy.terms import Key
from tacit.problem.loss import LOSSES, Softmax
from tacit.query.query import AgentQuery
from tacit.query.records import View
from tacit.rounds import rounds
from tacit.run import build
from tacit.run.train import train
from tacit.types import LARGEST, Shard
from tests.federation.sites import (
    HELLO,
    ROUNDS,
    SIZES,
    ask,
    at,
    begun,
    join,
    make,
    service,
    shape_of,
    spec,
    stored,
    told,
)


def from_the_value(value, scale, law):
    """Noise that the value alone decides, in the tests: the same wherever the same value is released."""
    seed = hashlib.sha256(np.ascontiguousarray(value).tobytes() + law.name.encode()).digest()
    return value + scale * np.random.default_rng(list(seed)).standard_normal(value.shape)


def reopened(one: Service) -> Service:
    """The service after its process has ended and another was started."""
    one.close()
    return Service(one.site)


def watched(monkeypatch, watch) -> None:
    """Let a function see the records and the parameters of every query before its value is computed."""
    value = AgentQuery.__dict__["value"].func

    def seen(query):
        def of(parameters):
            watch(query.records, parameters)
            return value(query)(parameters)

        return of

    monkeypatch.setattr(AgentQuery, "value", property(seen))


def spent(one: Service) -> dict[str, int]:
    return {name: len(ledger.history().answers) for name, ledger in one._ledgers.items()}


def raw(one: Service, message) -> tuple[str, bytes]:
    header, body = one.answer(*written(message))
    return json.dumps(header), body


# --- what was agreed -----------------------------------------------------------------------------------------------


def test_a_site_says_who_is_here_and_what_is_public_and_no_more(tmp_path):
    with service(tmp_path, ("north", "south")) as one:
        found = told(one, HELLO)
        assert (found.site, found.agents) == ("north-south", (("north", 24), ("south", 17)))
        assert facts.hollow("trial", found.public, found.agents).n_features == 3
        assert one.largest_body == 0


class Mean(Softmax):
    """A loss that divides by the number of records, and so couples them."""

    def residual(self, score, y):
        return Softmax.residual(self, score, y) / len(y)


def test_a_site_whose_loss_couples_records_joins_no_run(tmp_path, monkeypatch):
    said = []
    with service(tmp_path, log=lambda line, **_: said.append(line)) as one:
        first = join(one)
        monkeypatch.setitem(LOSSES, "softmax", Mean)
        assert told(one, first) == Refusal("r1")
        assert spent(one) == {"north": 0}
    assert any("the loss softmax couples records" in line for line in said)


def test_a_round_is_answered_by_every_agent_that_is_asked(tmp_path):
    one, first = begun(tmp_path, ("north", "south"))
    with one:
        assert one.largest_body == 8 * 2 * np.prod(shape_of(one))  # a point for each of two agents
        found = told(one, ask(one, first))
        assert isinstance(found, SiteAnswer)
        assert [each.agent for each in found.given] == ["north", "south"]
        assert (found.t, found.attempt, found.refused) == (1, 0, ())
        assert found.words.shape == (2, np.prod(shape_of(one)))
        alone = told(one, ask(one, first, t=2, asked=("south",)))
        assert [each.agent for each in alone.given] == ["south"]
        assert spent(one) == {"north": 1, "south": 2}
        for each in alone.given:
            assert one._ledgers[each.agent].head == each.head


@pytest.mark.parametrize("values", [{}, {"algorithm.order": "wzd", "algorithm.linearize_at": "z"}], ids=["zwd", "wzd"])
@pytest.mark.parametrize("algorithm", ["objt", "objp"])
def test_sites_train_what_one_process_trains_to_the_bit(tmp_path, monkeypatch, algorithm, values):
    """With noise that the value decides; services start anew in the middle, and know nothing of the server's state."""
    monkeypatch.setattr(lattice, "release", from_the_value)
    allowed = "\n".join(f'"{key}" = "{value}"' for key, value in values.items())
    sites = {
        "one": service(tmp_path / "one", ("north", "south"), agree=allowed),
        "two": service(tmp_path / "two", ("east",), agree=allowed),
    }
    chosen = spec(algorithm=algorithm, **values)
    made = {name: join(one, chosen=chosen) for name, one in sites.items()}
    assert made["one"] == made["two"]
    for name, one in sites.items():
        assert told(one, made[name]).kind == "joined"
    hollow = build.transformed(chosen, facts.hollow("trial", sites["one"].public, made["one"].agents))
    setup = build.setup(chosen, hollow)
    program, names = setup.deployment.program(False), list(SIZES)

    def exchange(questions):
        (msg,) = questions
        for site in sites:
            if msg.t == 3:
                sites[site] = reopened(sites[site])
                assert told(sites[site], made[site]).kind == "joined"
            places = [names.index(who) for who in sites[site].own.agents]
            points = np.stack([program.parameters(msg, p)["point"] for p in places])
            found = told(sites[site], ask(sites[site], made[site], msg.t, parameters={"point": points}))
            for each, row in zip(found.given, found.words, strict=True):
                program.move(names.index(each.agent), msg, row.view(np.float64))
        return [program.replies(msg, setup.deployment.spreads(msg.t), {})]

    *_, ((state, _),) = rounds([setup.server], [setup.server.start()], exchange)
    owns = [one.own for one in sites.values()]
    shards = [shard for own in owns for shard in own.shards]
    names = [name for own in owns for name in own.agents]
    order = [names.index(who) for who in SIZES]
    test = Shard(np.zeros((1, 3)), np.zeros(1, np.int64))
    whole = replace(owns[0], shards=tuple(shards[p] for p in order), agents=tuple(SIZES), test=test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = train(chosen, whole)
    assert state.w.tobytes() == alone.w.tobytes()
    for one in sites.values():
        assert set(spent(one).values()) == {ROUNDS}
        one.close()


def test_with_noise_of_the_operating_system_the_ledgers_agree_with_the_account_of_the_run(tmp_path):
    one, first = begun(tmp_path)
    with one:
        for t in range(1, ROUNDS + 1):
            assert told(one, ask(one, first, t)).kind == "answer"
        (account,) = one._ledgers["north"].show()
        assert account.releases == ROUNDS
        assert account.epsilon <= one._runs["r1"].agents["north"].terms.epsilon <= 1.0


# --- again, late, lost ---------------------------------------------------------------------------------------------


def test_a_duplicate_gets_the_same_bytes_at_no_price_whatever_happened_in_between(tmp_path):
    one, first = begun(tmp_path, ("north", "south"))
    question = ask(one, first)
    sent = raw(one, question)
    assert raw(one, question) == sent
    other = join(one, "r2", chosen=spec("r2"))
    assert told(one, other).kind == "joined"
    assert told(one, ask(one, other)).kind == "answer"  # the heads of the ledgers move on
    assert raw(one, question) == sent
    one = reopened(one)
    with one:
        assert told(one, question) == Unjoined("r1")
        assert told(one, first).kind == "joined"
        assert raw(one, question) == sent
        assert spent(one) == {"north": 2, "south": 2}


def test_a_service_that_starts_again_goes_on_from_its_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(lattice, "release", from_the_value)
    def sent(folder, restarts):
        one, first = begun(folder)
        found = []
        for t in range(1, ROUNDS + 1):
            if restarts:
                one = reopened(one)
                told(one, first)
            found.append(told(one, ask(one, first, t)).words.tobytes())
        one.close()
        return found

    assert sent(tmp_path / "a", restarts=False) == sent(tmp_path / "b", restarts=True)


def test_an_answer_that_was_lost_is_as_if_it_had_not_been_given_but_for_its_price(tmp_path, monkeypatch):
    monkeypatch.setattr(lattice, "release", from_the_value)
    def sent(folder, lost):
        one, first = begun(folder)
        told(one, ask(one, first, 1))
        if lost:
            told(one, ask(one, first, 2))
        found = told(one, ask(one, first, 3))
        assert spent(one) == {"north": 3 if lost else 2}
        one.close()
        return found.words.tobytes()

    assert sent(tmp_path / "a", lost=True) == sent(tmp_path / "b", lost=False)


def test_ledgers_keep_the_rounds_that_may_still_be_gone_on_from_and_no_earlier_ones(tmp_path):
    one, first = begun(tmp_path)
    with one:
        for t in (1, 2, 3, 4):
            told(one, ask(one, first, t))
        assert [t for t in (1, 2, 3, 4) if _stored(one, t)] == [2, 3, 4]  # round 2 goes with the next release


def test_an_agent_answers_whatever_was_lost_before_and_repeats_its_last_two_rounds(tmp_path):
    one, first = begun(tmp_path)
    with one:
        sent = {}
        for t in (1, 3, 4):
            sent[t] = raw(one, ask(one, first, t))
            assert json.loads(sent[t][0])["kind"] == "answer"
            for earlier in list(sent)[-2:]:
                assert raw(one, ask(one, first, earlier)) == sent[earlier]
        assert spent(one) == {"north": 3}


def _stored(one, t):
    agent = one._runs["r1"].agents["north"]
    return stored(one._ledgers["north"], Key(agent.data_id, "r1", t)) is not None


def test_many_who_ask_the_same_at_once_cause_one_release(tmp_path):
    one, first = begun(tmp_path, ("north", "south"))
    with one, ThreadPoolExecutor(8) as threads:
        question = ask(one, first)
        found = set(threads.map(lambda _: raw(one, question), range(24)))
        assert len(found) == 1
        assert spent(one) == {"north": 1, "south": 1}


def test_a_run_that_was_not_used_for_long_is_joined_again(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "RUNS_KEPT", 1)
    one, first = begun(tmp_path)
    with one:
        question = ask(one, first)
        second = join(one, "r2", chosen=spec("r2"))
        assert told(one, second).kind == "joined"
        assert told(one, question) == Unjoined("r1")
        assert told(one, first).kind == "joined"
        assert told(one, question).kind == "answer"


def test_records_pass_a_feature_map_once_for_all_runs_that_have_it(tmp_path, monkeypatch):
    one, _ = begun(tmp_path, agree='"features.map" = ["auto", "unit"]')
    mapped = []
    before = build.transformed
    monkeypatch.setattr(build, "transformed", lambda s, f: mapped.append(any(x.here for x in f.shards)) or before(s, f))
    with one:
        second = join(one, "r2", chosen=spec("r2"))
        mapped.clear()
        assert told(one, second).kind == "joined"
        assert mapped == [False]
        a, b = (one._runs[run].agents["north"].queries[0].records for run in ("r1", "r2"))
        assert a.views[View.ROWS] is b.views[View.ROWS]


# --- a hostile coordinator -----------------------------------------------------------------------------------------


def hostile(one: Service, first) -> dict[str, tuple[dict, bytes]]:
    """Questions of a coordinator that wants more than was agreed, after round 2 was answered."""
    shape, fine = shape_of(one), ask(one, first, 3)
    n = shape[0] * shape[1]

    def changed(**parts):
        return written(replace(fine, **parts))

    def header(**parts):
        head, body = written(fine)
        return head | parts, body

    huge = np.zeros(shape)
    huge[0, 0] = 1e308
    return {
        "wrong shape": changed(parameters=at(np.zeros((shape[0], shape[1] + 1)))),
        "transposed": changed(parameters=at(np.zeros(shape[::-1]))),
        "records in front": changed(parameters=at(np.zeros((2, *shape)))),
        "flat": changed(parameters=at(np.zeros(n))),
        "no entry": changed(parameters=at(np.zeros((0, 0)))),
        "no row": changed(parameters={"point": np.zeros((0, *shape))}),
        "a number": changed(parameters={"point": np.zeros(1)}),
        "two points for one agent": changed(parameters={"point": np.zeros((2, *shape))}),
        "no point": changed(parameters={}),
        "a parameter more": changed(parameters=at(np.zeros(shape)) | {"clip": np.full((1, *shape), 1e9)}),
        "a parameter of another name": changed(parameters={"w": np.zeros((1, *shape))}),
        "nan": changed(parameters=at(np.full(shape, np.nan))),
        "inf": changed(parameters=at(np.full(shape, np.inf))),
        "1e308": changed(parameters=at(huge)),
        "a round beyond those agreed": changed(t=ROUNDS + 1),
        "ten times the rounds": changed(t=10 * ROUNDS),
        "the largest round": changed(t=2**53 - 1),
        "another attempt": changed(attempt=1),
        "the largest attempt": changed(attempt=2**53 - 1),
        "a secure sum": changed(peers=("north",)),
        "a secure sum of all": changed(peers=tuple(sorted(SIZES))),
        "a replayed round with another w": written(ask(one, first, 2, w=np.full(shape, 0.5))),
        "an earlier round": written(ask(one, first, 1, w=np.full(shape, 0.5))),
        "another hash": changed(agreed="0" * 64),
        "another agent": changed(asked=("south",)),
        "another agent too": changed(asked=("north", "south")),
        "nobody's name": changed(asked=("",)),
        "nobody": changed(asked=()),
        "an agent twice": changed(asked=("north", "north")),
        "an agent by its number": header(asked=[0]),
        "a round in text": header(t="3"),
        "an attempt that is negative": header(attempt=-1),
        "an attempt that is true": header(attempt=True),
        "the version before": header(version=1),
        "a later version": header(version=3),
        "another kind": header(kind="answer"),
        "more fields": header(seed=1),
        "a penalty": header(rho=1e-9),
        "no kind": ({}, b""),
        "less body": (written(fine)[0], written(fine)[1][:-8]),
        "more body": (written(fine)[0], written(fine)[1] + b"\0" * 8),
    }


NAMES = [
    "wrong shape", "transposed", "records in front", "flat", "no entry", "no row", "a number",
    "two points for one agent", "no point", "a parameter more", "a parameter of another name", "nan", "inf", "1e308",
    "a round beyond those agreed", "ten times the rounds", "the largest round", "another attempt",
    "the largest attempt", "a secure sum", "a secure sum of all", "a replayed round with another w",
    "an earlier round", "another hash", "another agent", "another agent too", "nobody's name", "nobody",
    "an agent twice", "an agent by its number", "a round in text", "an attempt that is negative",
    "an attempt that is true", "the version before", "a later version", "another kind", "more fields", "a penalty",
    "no kind", "less body", "more body",
]  # fmt: skip


def neighbour(x, y):
    """The records, but for one: it is as far from what it was as it can be."""
    x, y = x.copy(), y.copy()
    x[3], y[3] = 1 - np.round(x[3]), 1 - y[3]
    return x, y


def test_a_hostile_coordinator_gets_refusals_and_nothing_else_and_no_record_decides_their_bytes(tmp_path):
    pair = [begun(tmp_path / "a"), begun(tmp_path / "b", change=neighbour)]
    assert (pair[0][0].own.shards[0].x != pair[1][0].own.shards[0].x).any()
    for message in (HELLO, pair[0][1], replace(pair[0][1], run="r2"), replace(pair[0][1], spec="")):
        assert raw(pair[0][0], message) == raw(pair[1][0], message)
    for one, first in pair:
        for t in (1, 2):
            assert told(one, ask(one, first, t)).kind == "answer"
    attacks = [hostile(one, first) for one, first in pair]
    assert list(attacks[0]) == NAMES
    for name in NAMES:
        seen = [one.answer(*attack[name]) for (one, _), attack in zip(pair, attacks, strict=True)]
        assert seen[0] == seen[1], name
        header, body = seen[0]
        assert header == written(Refusal(header["run"]))[0], name
        assert header["run"] in ("", "r1")
        assert body == b""
        assert [spent(one) for one, _ in pair] == [{"north": 2}] * 2, name
    for one, first in pair:
        assert told(one, ask(one, first, 3)).kind == "answer"  # none of it has done any harm
        one.close()


def test_another_runs_name_is_not_known_here(tmp_path):
    one, first = begun(tmp_path)
    with one:
        assert told(one, replace(ask(one, first), run="another")) == Unjoined("another")
        assert spent(one) == {"north": 0}


def test_a_round_that_the_agent_missed_stays_missed(tmp_path):
    one, first = begun(tmp_path)
    with one:
        told(one, ask(one, first, 1))
        told(one, ask(one, first, 3))
        assert told(one, ask(one, first, 2)) == Refusal("r1")
        assert told(one, ask(one, first, 4)).kind == "answer"
        assert spent(one) == {"north": 3}


def test_a_question_of_one_run_is_not_answered_in_another(tmp_path):
    one, first = begun(tmp_path)
    with one:
        second = join(one, "r2", chosen=spec("r2"))
        told(one, second)
        assert told(one, replace(ask(one, second), agreed=first.agreed)) == Refusal("r2")
        assert spent(one) == {"north": 0}


def test_whatever_fails_at_a_record_is_told_to_the_owner_alone(tmp_path, monkeypatch):
    lines = []
    one, first = begun(tmp_path, ("north", "south"), log=lambda text, **_: lines.append(text))

    def fails(records, _parameters):
        if len(records) == SIZES["north"]:
            raise ZeroDivisionError("record 7 of patient Smith")

    watched(monkeypatch, fails)
    with one:
        found = raw(one, ask(one, first))
        assert "Smith" not in found[0]
        assert json.loads(found[0])["refused"] == ["north"]
        assert any("ZeroDivisionError: record 7 of patient Smith" in line for line in lines)
        assert spent(one) == {"north": 0, "south": 1}


def test_the_largest_model_is_answered_and_no_flag_of_a_float_tells_of_a_record(tmp_path, monkeypatch):
    one, first = begun(tmp_path)
    with one:
        largest = np.where(np.arange(np.prod(shape_of(one))).reshape(shape_of(one)) % 2, LARGEST, -LARGEST)
        assert told(one, ask(one, first, 1, w=largest)).kind == "answer"

        def flagged(_records, _parameters):
            assert np.isinf(np.array([1e308]) * 10)  # NumPy warns of it, and warnings are errors here

        watched(monkeypatch, flagged)
        assert told(one, ask(one, first, 2, w=-largest)).kind == "answer"


def test_an_agent_without_budget_refuses_and_the_other_agents_of_the_site_answer(tmp_path):
    one, first = begun(tmp_path, ("north", "south"))
    with one:
        told(one, ask(one, first, 1))
        one._ledgers["north"].set_limit(Limit(1e-3, 1e-6))
        found = told(one, ask(one, first, 2))
        assert found.refused == ("north",)
        assert [each.agent for each in found.given] == ["south"]


def test_a_log_that_cannot_be_written_keeps_no_answer_back(tmp_path):
    def closed(_text, **_facts):
        raise BrokenPipeError

    with begun(tmp_path, log=closed)[0] as one:
        first = join(one)
        assert told(one, ask(one, first)).kind == "answer"
        assert told(one, replace(ask(one, first), t=ROUNDS + 1)) == Refusal("r1")


def test_what_a_caller_writes_cannot_move_the_cursor_of_the_owner(tmp_path, monkeypatch):
    lines = []
    with service(tmp_path, log=lambda text, **_: lines.append(text)) as one:
        bad = "\x1b[2J\nroot: all is well"
        one.answer(*written(replace(join(one), run=bad)))
        one.answer(*written(replace(join(one), spec=f'[run]\n"{bad}" = 1')))
        one.answer(*written(Ask(bad, "0" * 64, 1, 0, ("north",), (), at(np.zeros((2, 2))))))

        def repeats(_):
            raise ValueError(bad)

        monkeypatch.setattr(one, "_reply", repeats)
        one.answer(*written(HELLO))
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_a_ledger_with_another_name_of_the_data_is_refused_until_its_owner_says_that_no_record_is_shared(tmp_path):
    one, first = begun(tmp_path)
    told(one, ask(one, first))
    one.close()
    path = tmp_path / "site.toml"
    path.write_text(path.read_text().replace("north 2024", "north 2025"))
    with pytest.raises(DataRenamed, match="has answered for 'north 2024', and the site file has"):
        Service(read_site(path))
    path.write_text(path.read_text().replace('north 2025"', 'north 2025"\nshares_no_record_with = ["north 2024"]'))
    lines = []
    with Service(read_site(path), lambda text, **_: lines.append(text)):
        assert "has answered for 'north 2024' too" in lines[0]


def test_noise_that_a_test_injects_is_reached_by_no_configuration(tmp_path):
    """The service draws from tacit.privacy.lattice, which has no option and reads no environment."""
    one, first = begun(tmp_path)
    question = ask(one, first)
    found = {told(one, question).words.tobytes()}
    one.close()
    for folder in ("b", "c"):
        one, _ = begun(tmp_path / folder)
        with one:
            found.add(told(one, question).words.tobytes())
    assert len(found) == 3



SCHEMA = """\
# Drafted from /home/owner/north.csv
[columns.label]
kind = "label"
classes = ["no", "yes"]  # Mrs Smith is the only yes of May
""" + "".join(f"[columns.{name}]\nkind = 'numeric'\nlo = 0.0\nhi = 1.0  # observed\n" for name in "abc")


@pytest.mark.parametrize("text", [SCHEMA, re.sub(" *#.*", "", SCHEMA), SCHEMA.replace("\n", "\n\n")])
def test_of_a_schema_a_site_tells_what_it_declares_and_no_comment(tmp_path, text):
    path = make(tmp_path)
    (tmp_path / "schema.toml").write_text(text)
    plain = path.read_text().replace('class_names = "no,yes"\nlow = 0.0\nhigh = 1.0', 'schema = "schema.toml"')
    path.write_text(plain)
    with Service(read_site(path)) as one:
        declared = json.loads(one.public)["schema"]
        assert declared.splitlines() == [
            '"columns" = {"label" = {"kind" = "label", "classes" = ["no", "yes"]}, '
            + ", ".join(f'"{name}" = {{"kind" = "numeric", "lo" = 0.0, "hi" = 1.0}}' for name in "abc") + "}"
        ]
        assert parse(declared).columns == parse(text).columns
        assert told(one, join(one)).joined == ("north",)
