"""What the page is told: lists that follow the folder, histories that grow, budgets as ledgers hold them."""

import json
import os
import shutil
import threading
import time
import zipfile
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import record, toml
from tacit.privacy.chain import Chain
from tacit.privacy.guarantee import FIELDS
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.privacy.terms import Key, Terms
from tacit.report.privacy_text import NOT_STATED
from tacit.run import deployment
from tacit.run.directory import RunDirectory
from tacit.run.presets import PRESETS, preset
from tacit.run.train import train
from tacit.ui import details, gauges, index, prices, rows
from tacit.ui.history import POINTS, thinned
from tacit.ui.index import Index
from tacit.ui.place import Place
from tacit.ui.said import quick_spec
from tacit.ui.views import Missing, Views
from tests.privacy.guarantees import guarantee, result
from tests.report import made
from tests.ui.serving import SPEC, write_run

SMALL = {"data.source": "synthetic", "data.records": 200, "data.agents": 3, "run.rounds": 6}


@pytest.fixture
def views(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "FRESH", 0.0)
    monkeypatch.setattr(gauges, "PAUSE", 0.0)
    root = tmp_path / "root"
    root.mkdir()
    found = Views(Place(root))
    yield found
    found.place.close()


def listed(views, words="", state="", order="name"):
    return views.listing(words, state, order, 0)["rows"]


def id_of(views, name):
    return next(row["id"] for row in listed(views) if row["name"] == name)


@pytest.mark.parametrize("name", PRESETS)
def test_specs_are_read_quickly_and_as_toml_reads_them(name):
    written = preset(name, "objt").with_values(SMALL | {"data.label_column": 'a "b" \\ = [c]\u2028é'}).toml()
    assert quick_spec(written) == toml.parsed(written, "a spec")
    assert quick_spec("[a]\nb = 0x10\n") is quick_spec("[a]\nb = 'c'\n") is quick_spec("nothing") is None
    assert quick_spec("[a]\nb = " + "[" * 100_000) is None


def test_the_list_follows_the_folder(views):
    root = views.place.root
    assert listed(views) == []
    write_run(root / "b" / "two", done=3)
    write_run(root / "one", test_error=0.25, epsilon=1.0, dp_delta=1e-6, guarantee="fine", dataset="synthetic")
    rows_now = listed(views)
    assert [(row["folder"], row["name"], row["state"], row["round"], row["shown"]) for row in rows_now] == [
        ("", "one", "finished", 10, "25.00%"), ("b", "two", "stopped", 3, "25.00%")
    ]  # fmt: skip
    with (root / "b" / "two" / "rounds.jsonl").open("a") as file:
        file.write('{"t": 4, "test_error": 0.125}\n')
    assert listed(views)[1]["shown"] == "12.50%"
    (root / "one").rename(root / "gone-elsewhere")
    assert {row["name"] for row in listed(views)} == {"gone-elsewhere", "two"}


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({}, NOT_STATED),
        ({"simulated_noise": True}, "simulated noise"),
        ({"guarantee": "not private: no noise"}, NOT_STATED),
        ({"guarantee": "(1, 1e-06)-DP; trusts nobody", "trust": "nobody"}, NOT_STATED),
        ({"epsilon": None}, "not private"),
        ({"epsilon": -5}, "unreadable"),
        ({"epsilon": "1"}, "unreadable"),
        ({"epsilon": True}, "unreadable"),
        ({"epsilon": float("inf")}, "unreadable"),
        ({"guarantee": 5}, "unreadable"),
        ({"guarantee": None}, "unreadable"),
        ({"guarantee": " "}, "unreadable"),
        ({"guarantee": ["not private"]}, "unreadable"),
        ({"dp_delta": -1e-6}, "unreadable"),
        ({"dp_delta": 1}, "unreadable"),
        ({"dp_delta": "0"}, "unreadable"),
        ({"simulated_noise": "no"}, "unreadable"),
        ({"best_guess": 0.55}, NOT_STATED),
        ({"best_guess": 0.4}, "unreadable"),
        ({"best_guess": "<b>"}, "unreadable"),
        ({"dp_delta": 0.1, "records": 10}, NOT_STATED),
        ({"dp_delta": 0.1, "records": 10, "simulated_noise": True}, "simulated noise"),
    ],
)
def test_a_result_without_the_fields_of_a_guarantee_is_never_private(views, changed, label):
    said = {"test_error": 0.25, "epsilon": 1.0, "dp_delta": 1e-6, "guarantee": "(1, 1e-06)-DP"}
    write_run(views.place.root / "run", spec=SPEC.replace("simulated", "exact"), **said | changed)
    (row,) = listed(views)
    assert row["label"] == label
    assert (row["epsilon"] is None) == (label == "unreadable" or "epsilon" in changed)


@pytest.mark.parametrize(("fields", "rest", "label"), [
    ({}, {}, "private"),
    ({}, {"guarantee": "not private: no noise"}, "private"),  # a sentence is shown, and not read
    ({}, {"dp_delta": 0.1, "records": 10}, "unreadable"),
    ({"dp_delta": 0.1, "allowed_delta": 0.1}, {"dp_delta": 0.1, "records": 10}, "weak"),
    ({"private": False}, {}, "unreadable"),
    ({"epsilon": 0.5}, {}, "unreadable"),
    ({"epsilon": 10**400}, {"epsilon": 10**400}, "unreadable"),
    ({"epsilon": float("nan")}, {"epsilon": float("nan")}, "unreadable"),
    ({"trusted": None}, {}, "unreadable"),
    ({"trusted": "<b>"}, {}, "unreadable"),
    ({"noise": "simulated"}, {}, "unreadable"),
    ({"more": 1}, {}, "unreadable"),
    ({}, {FIELDS: {}}, NOT_STATED),
    ({"reasons": ["no noise"]}, {}, "unreadable"),
    ({}, {"epsilon": None}, "unreadable"),
    ({}, {"releases": json.loads("[" * 500 + "]" * 500)}, "unreadable"),
    ({}, {FIELDS: None}, "unreadable"),
    ({}, {FIELDS: "private"}, "unreadable"),
])  # fmt: skip
def test_a_result_is_private_only_if_its_fields_say_so_and_nothing_contradicts_them(views, fields, rest, label):
    said = {"test_error": 0.25} | result(guarantee())
    said[FIELDS] |= fields
    write_run(views.place.root / "run", spec=SPEC.replace("simulated", "exact"), **said | rest)
    (row,) = listed(views)
    assert row["label"] == label
    told = views.shown(row["id"])
    assert ("Nobody" in json.dumps(told)) == (label in ("private", "weak"))
    assert (told["promise"] == "Its result makes no sense, and no guarantee is shown.") == (label == "unreadable")


def test_who_is_trusted_of_an_earlier_result_is_not_stated(views):
    sentence = "(1, 1e-06)-DP; trusts nobody <b>"
    write_run(views.place.root / "run", spec=SPEC.replace("simulated", "exact"), epsilon=1.0, guarantee=sentence)
    told = views.shown(listed(views)[0]["id"])
    assert dict(told["result"])["trusted"].startswith("Not stated. An earlier version of tacit made this result")
    assert "Nobody" not in json.dumps(told)
    assert told["guarantee"] == sentence
    assert "An earlier version of tacit made this result" in told["promise"]


def test_a_result_does_not_hide_that_its_spec_draws_simulated_noise(views):
    write_run(views.place.root / "run", epsilon=1.0, guarantee="fine")
    assert listed(views)[0]["label"] == "simulated noise"


def test_words_states_and_orders_choose(views):
    for name, error in (("ape", 0.3), ("bee", 0.1), ("cow", 0.2)):
        write_run(views.place.root / "grid" / name, test_error=error, epsilon=error, guarantee="fine")
    write_run(views.place.root / "other")
    assert [row["name"] for row in listed(views, order="error")] == ["bee", "other", "cow", "ape"]
    assert [row["name"] for row in listed(views, "GRID ape objt")] == ["ape"]
    assert [row["name"] for row in listed(views, state="stopped")] == ["other"]
    assert views.listing("", "", "name", 0)["counts"] == {"": 4, "running": 0, "finished": 3, "stopped": 1}


def test_a_folder_that_did_not_change_is_not_listed_again(views, monkeypatch):
    folder = write_run(views.place.root / "old")
    past = time.time() - 60
    os.utime(folder, (past, past))
    os.utime(views.place.root, (past, past))
    found = Index(views.place)
    assert len(found.items()) == 1
    monkeypatch.setattr(os, "scandir", lambda _: pytest.fail("listed again"))
    assert len(found.items()) == 1


def test_a_change_that_left_the_time_of_its_folder_as_it_was_is_seen(views):
    root = views.place.root
    write_run(root / "first")
    lately = time.time() - 0.5
    os.utime(root, (lately, lately))
    assert len(listed(views)) == 1
    write_run(root / "second")
    os.utime(root, (lately, lately))  # as if both fell into one tick of the clock
    assert len(listed(views)) == 2


def test_a_run_that_is_written_is_running_and_can_be_asked_to_stop(views):
    folder = write_run(views.place.root / "run")
    (item,) = views.index.items().values()
    assert views.rows.state(item.parts) == rows.STOPPED
    with RunDirectory(folder).alone():
        assert views.rows.state(item.parts) == rows.RUNNING
        assert views.stop(item.id) == {"state": rows.STOPPING}
        assert (folder / "stop").exists()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinning_keeps_the_ends_the_extremes_and_the_order(y):
    x = [float(n) for n in range(len(y))]
    xs, ys = thinned(x, y, 50)
    assert len(xs) <= 50
    assert (xs[0], xs[-1]) == (x[0], x[-1])
    assert (min(ys), max(ys)) == (min(y), max(y))
    assert xs == sorted(set(xs))
    assert all(y[int(n)] == value for n, value in zip(xs, ys, strict=True))


def test_a_long_history_is_thinned_and_read_only_where_it_grew(views, monkeypatch):
    folder = write_run(views.place.root / "long", rounds=20_000, done=20_000)
    name = id_of(views, "long")
    chart = views.shown(name)["charts"][0]
    assert len(chart["lines"][0]["x"]) <= POINTS
    assert chart["lines"][0]["x"][-1] == 20_000
    sizes, read = [], views.place.read

    def counted(*args, **kwargs):
        sizes.append(len(read(*args, **kwargs)))
        return read(*args, **kwargs)

    monkeypatch.setattr(views.place, "read", counted)
    row = json.dumps({"t": 20_001, "test_error": 0.5})
    with (folder / "rounds.jsonl").open("a") as file:
        file.write(row + "\n" + '{"t": 20002, "te')
    assert views.histories.of(("long",)).t[-1] == 20_001
    assert sizes == [len(row) + 1 + len('{"t": 20002, "te')]
    with (folder / "rounds.jsonl").open("a") as file:
        file.write('st_error": 0.25}\n')
    assert views.histories.of(("long",)).columns["test_error"][-2:] == [0.5, 0.25]
    draft = folder / "draft"  # as a resumed run cuts it
    draft.write_text('{"t": 1, "test_error": 0.5}\n')
    draft.replace(folder / "rounds.jsonl")
    assert views.histories.of(("long",)).t == [1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = tmp_path_factory.mktemp("trained")
    train(preset("sound", "objt").with_values(SMALL), out=root / "exact")
    train(preset("sound", "objt").with_values(SMALL | {"run.seed": 0, "privacy.epsilon": 2.0}), out=root / "simulated")
    return root


def test_a_real_run_is_shown_whole_with_its_budget_and_its_agents(trained):
    views = Views(Place(trained))
    name = id_of(views, "exact")
    told, more, spent = views.shown(name), views.more(name), views.budgets(name)
    assert told["guarantee"].startswith("(1, 1e-06)-DP")
    assert (told["row"]["label"], told["agents"], more["damaged"]) == ("private", 3, "")
    assert [chart["key"] for chart in more["charts"]] == ["budget"]
    assert more["charts"][0]["lines"][0]["y"][-1] == pytest.approx(1.0, rel=1e-3)
    assert len(spent["gauges"]) == 3
    for gauge in spent["gauges"]:
        assert gauge["epsilon"] == pytest.approx(gauge["most"])
        assert (gauge["releases"], gauge["is_limit"]) == (6, False)
    assert spent["charts"][0]["lines"][0]["y"][-1] == pytest.approx(spent["gauges"][0]["epsilon"])
    views.place.close()


def test_a_result_that_was_edited_is_said_to_be_so_without_a_path(trained, tmp_path, views):
    shutil.copytree(trained / "simulated", views.place.root / "edited")
    path = views.place.root / "edited" / "result.json"
    path.write_text(path.read_text().replace('"test_error": 0.', '"test_error": 0.0', 1))
    told = views.more(id_of(views, "edited"))["damaged"]
    assert "was changed after it was written" in told
    assert "edited/result.json" in told
    assert str(tmp_path) not in told
    assert "/tmp" not in told


def test_a_model_that_unpacks_to_too_much_is_not_unpacked(trained, views, monkeypatch):
    shutil.copytree(trained / "simulated", views.place.root / "bomb")
    with zipfile.ZipFile(views.place.root / "bomb" / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", b"\0" * 10_000_000)
    monkeypatch.setattr(details, "UNPACKED", 1_000_000)
    assert "unpacks to 9 MB" in views.more(id_of(views, "bomb"))["damaged"]


def test_runs_are_compared_on_the_same_axes_with_what_sets_them_apart(trained):
    views = Views(Place(trained))
    told = views.compared([id_of(views, "exact"), id_of(views, "simulated")])
    assert told["labels"] == ["exact", "simulated"]
    assert {line["name"] for line in told["charts"][0]["lines"]} == {"exact", "simulated"}
    assert ["epsilon", "1", "2"] in told["apart"]
    with pytest.raises(Missing):
        views.compared(["none"])
    views.place.close()


def test_a_sweep_is_shown_as_its_report_would(views):
    made.write(views.place.root / "grid")
    told = views.more(id_of(views, "grid"))
    assert [row["runs"] for row in told["comparison"]] == ["epsilon 1", "epsilon 3"]
    assert told["comparison"][0]["test_error"] == pytest.approx(0.16)
    assert told["charts"][0]["lines"][0]["low"] != []
    assert told["title"] == "grid"


def finding(verdict="consistent", **changed):
    return {"attack": "mechanism", "name": "objt", "claimed": 1.0, "measured": 0.4, "dp_delta": 1e-6, "samples": 100,
            "verdict": verdict, "note": ""} | changed  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "consistent"),
        ({"findings": [finding(), finding("VIOLATED")]}, "VIOLATED"),
        ({"findings": [finding("VIOLATED")], "spec_hash": "other"}, "VIOLATED"),
        ({"controls": [finding()]}, "failed"),
        ({"passed": False}, "failed"),
        ({"spec_hash": "other"}, "of another spec"),
        ({"spec_hash": None}, "of another spec"),
        ({"findings": [finding("no guarantee")]}, "no guarantee"),
        ({"findings": []}, "nothing attacked"),
        ({"findings": [finding("violated")]}, "not readable"),
        ({"findings": [finding(), "odd"]}, "not readable"),
        ({"findings": [finding(claimed=10**400)]}, "not readable"),
        ({"passed": "yes"}, "not readable"),
        ({"findings": [], "controls": []}, "not readable"),
    ],
)
def test_the_findings_of_an_audit_of_this_spec_decide_its_verdict(views, changed, verdict):
    folder = write_run(views.place.root / "run", spec_hash="other")  # what a result says of its spec does not count
    said = {"passed": True, "findings": [finding()], "controls": [finding("VIOLATED")]}
    said["spec_hash"] = record.spec_hash((folder / "spec.toml").read_text())
    (folder / "audit.json").write_text(json.dumps(said | changed))
    told = views.more(id_of(views, "run"))["audit"]
    assert (told["verdict"], told["passed"]) == (verdict, verdict == "consistent")
    assert "/tmp" not in told["reason"]
    if verdict == "consistent":
        assert [one["measured"] for one in told["findings"]] == [0.4]


def test_an_audit_that_is_no_json_is_said_to_be_so(views):
    (write_run(views.place.root / "run") / "audit.json").write_text("{")
    told = views.more(id_of(views, "run"))["audit"]
    assert (told["verdict"], told["passed"]) == ("not readable", False)
    assert told["reason"].startswith("audit.json is no output of tacit audit --json")


def test_a_federation_is_shown_with_its_sites_and_agents(views):
    folder = views.place.root / "coordinator"
    write_run(folder / "runs" / "hearts-1")
    (folder / "federation.toml").write_text("")
    agent = {"answered": 3, "missed": 1, "released": 3, "epsilon": 0.4, "epsilon_at_most": 0.5}
    site = {"last_seen": 90.0, "late": True, "agents": {"ward": agent | {"reason": "<b>slow</b>"}, "odd": 3}}
    said = {
        "at": 100.0,
        "federation": "hearts",
        "state": "running",
        "run": "hearts-1",
        "round": 3,
        "of": 10,
        "dp_delta": 1e-6,
    }
    (folder / "status.json").write_text(json.dumps(said | {"sites": {"north": site, "odd": 1}}))
    told = views.shown(id_of(views, "coordinator"))
    assert (told["row"]["round"], told["row"]["rounds"], told["row"]["note"]) == (3, 10, "running")
    (gauge,) = told["gauges"]["gauges"]
    assert (gauge["agent"], gauge["epsilon"], gauge["at_most"], gauge["most"]) == ("ward", 0.4, 0.5, 1.0)
    assert ("site north", "last seen 10 s before this was written, late") in told["result"]
    assert [row["name"] for row in told["runs"]] == ["hearts-1"]


# ---- ledgers

RELEASE = GaussianRelease(15.0)


def filled(path, rounds=4):
    ledger = Ledger.open(path, deployment.price, Limit(2.0, 1e-6))
    ledger.join("records", Terms("first", "hash", 10, RELEASE, "zero_out", 1.0, 1e-6, 1.0))
    for t in range(1, rounds + 1):
        ledger.release(Key("records", "first", t), "asked", RELEASE, lambda: np.zeros(3))
    return ledger


def state_of(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in folder.iterdir()}


def test_gauges_are_what_the_ledger_says_and_the_ledger_stays_as_it_is(views):
    folder = views.place.root / "ledgers"
    folder.mkdir()
    with filled(folder / "ward%2F7.ledger") as ledger:
        before = state_of(folder)  # its log is not in the file yet
        assert any(name.endswith("-wal") for name in before)
        (gauge,) = views.budgets(id_of(views, "ledgers"))["gauges"]
        assert state_of(folder) == before
        (account,) = ledger.show()
    assert gauge["agent"] == "ward/7"
    assert gauge["epsilon"] == account.epsilon
    assert (gauge["most"], gauge["is_limit"], gauge["releases"]) == (2.0, True, 4)
    assert list(gauge["runs"]) == [asdict(run) for run in account.runs]


def test_a_ledger_that_is_locked_is_read_and_one_that_is_read_is_not_locked(views):
    folder = views.place.root / "ledgers"
    folder.mkdir()
    filled(folder / "a.ledger").close()
    other = Chain(folder / "a.ledger", None)
    with other.transaction():  # an agent that is about to answer
        assert views.budgets(id_of(views, "ledgers"))["gauges"][0]["releases"] == 4
    other.close()


def test_an_agent_answers_while_its_ledger_is_watched(views):
    folder = views.place.root / "ledgers"
    folder.mkdir()
    ledger = filled(folder / "a.ledger", rounds=1)
    name, seen, done = id_of(views, "ledgers"), [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(views.budgets(name))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for t in range(2, 11):
            ledger.release(Key("records", "first", t), "asked", RELEASE, lambda: np.zeros(3))
    finally:
        done.set()
        watcher.join()
    assert ledger.verify().releases == 10
    ledger.close()
    found = [gauge["releases"] for told in seen for gauge in told["gauges"]]
    assert found == sorted(found)
    assert all("altered" not in one["reason"] for told in seen for one in told["unread"])
    assert views.budgets(name)["gauges"][0]["releases"] == 10


def test_ledgers_that_cannot_be_trusted_are_named_with_the_reason(views, tmp_path):
    folder = views.place.root / "ledgers"
    folder.mkdir()
    filled(folder / "a.ledger").close()
    (folder / "b.ledger").write_bytes(b"nothing of the kind")
    os.mkfifo(folder / "c.ledger")
    (folder / "d.ledger").symlink_to(folder / "a.ledger")
    content = (folder / "a.ledger").read_bytes()
    (folder / "e.ledger").write_bytes(content.replace(b'"round":3', b'"round":4'))
    told = views.budgets(id_of(views, "ledgers"))
    assert [gauge["agent"] for gauge in told["gauges"]] == ["a"]
    reasons = {one["ledger"]: one["reason"] for one in told["unread"]}
    assert set(reasons) == {"b.ledger", "c.ledger", "d.ledger", "e.ledger"}
    assert "altered" in reasons["e.ledger"]
    assert str(tmp_path) not in json.dumps(told)
    assert "/tmp" not in json.dumps(told)


def test_ledgers_outside_the_served_directory_are_not_read(views, tmp_path):
    outside = tmp_path / "ledgers"
    outside.mkdir()
    filled(outside / "a.ledger").close()
    for n, place in enumerate((outside, views.place.root / ".." / "ledgers")):
        spec = SPEC.replace('noise = "simulated"', f'noise = "exact"\nledger = "{place}"')
        write_run(views.place.root / f"run{n}", spec=spec)
        told = views.budgets(id_of(views, f"run{n}"))
        assert told["gauges"] == []
    inside = views.place.root / "kept"
    inside.mkdir()
    filled(inside / "a.ledger").close()
    write_run(
        views.place.root / "near", spec=SPEC.replace('noise = "simulated"', f'noise = "exact"\nledger = "{inside}"')
    )
    assert len(views.budgets(id_of(views, "near"))["gauges"]) == 1


def forged(path, releases):
    """Write a ledger that holds one release of each kind."""
    with Ledger.open(path, lambda *_: 0.0, None) as ledger:
        for t, release in enumerate(releases, 1):
            ledger.release(Key("records", "first", t), "asked", release, lambda: np.zeros(3))


@pytest.mark.parametrize(
    "releases",
    [
        [GaussianRelease(1 + n / 10, 0.01) for n in range(6)],
        [GaussianRelease(1e-3, 0.01)],
        [LaplaceRelease(0.1), GaussianRelease(1e-3)],
        [LaplaceRelease(0.1), *[GaussianRelease(0.5)] * 40],
    ],
    ids=["many sampled", "little noise", "little beside", "little together"],
)
def test_laws_that_would_take_long_are_not_composed_and_the_bound_holds(views, monkeypatch, releases):
    monkeypatch.setattr(prices.deployment, "price", None)  # the slow bound
    (views.place.root / "ledgers").mkdir()
    forged(views.place.root / "ledgers" / "a.ledger", releases)
    (gauge,) = views.budgets(id_of(views, "ledgers"))["gauges"]
    assert gauge["epsilon"] == prices.quick(tuple(Counter(releases).items()), gauge["dp_delta"]) > 0


def test_a_quick_line_ends_at_the_price_that_the_ledger_names_and_never_above_it(views):
    (views.place.root / "ledgers").mkdir()
    forged(views.place.root / "ledgers" / "a.ledger", [GaussianRelease(1.0, 0.05)] * 20)
    told = views.budgets(id_of(views, "ledgers"))
    (gauge,), line = told["gauges"], told["charts"][0]["lines"][0]["y"]
    named = deployment.price([(GaussianRelease(1.0, 0.05), 20)], gauge["dp_delta"])
    assert gauge["epsilon"] == gauge["runs"][0]["epsilon"] == named
    assert line[-1] == max(line) == pytest.approx(named)
    assert line == sorted(line)


def test_too_many_kinds_of_releases_are_not_priced(views):
    (views.place.root / "ledgers").mkdir()
    for name, n in (("few", 0), ("many", 1)):
        path = views.place.root / "ledgers" / f"{name}.ledger"
        forged(path, [GaussianRelease(1.0 + k) for k in range(prices.KINDS + n)])
    told = views.budgets(id_of(views, "ledgers"))
    assert [gauge["agent"] for gauge in told["gauges"]] == ["few"]
    assert told["unread"] == [{"ledger": "many.ledger", "reason": prices.TOO_MANY}]


def test_a_look_that_lasts_is_continued_by_the_next_one(views, monkeypatch):
    (views.place.root / "ledgers").mkdir()
    filled(views.place.root / "ledgers" / "a.ledger").close()
    name = id_of(views, "ledgers")
    monkeypatch.setattr(gauges, "LASTS", -1.0)
    assert views.budgets(name)["unread"] == [{"ledger": "a.ledger", "reason": gauges.WAITS}]
    monkeypatch.setattr(gauges, "LASTS", 5.0)
    assert len(views.budgets(name)["gauges"]) == 1
