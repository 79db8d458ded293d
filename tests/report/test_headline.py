"""The page of one run: what a board reads first, pictures of test records, and names that stay text."""

import json
import math
import re

import numpy as np
import pytest

from tacit import record
from tacit.cli import main
from tacit.errors import RecordError
from tacit.measures import ERROR
from tacit.methods.promise import Trusted, Unit
from tacit.privacy import risk
from tacit.report import headline, matrix, output, words
from tacit.report import tested as module  # a function called tested would be taken for a test
from tacit.report.runs import Recorded
from tacit.report.source import read
from tacit.report.tested import Confusion, agents_chart, auc_interval, wilson
from tests.report import made
from tests.report.test_browser import CHROMIUM, probed

EVIL = "</script><b>\"'&"
TEST = {
    "records": 10,
    "confusion": {"classes": ["well", EVIL], "counts": [[4, 1], [2, 3]]},
    "agents": [{"agent": EVIL, "records": 4, "test_error": 0.5}, {"agent": "south", "records": 6, "test_error": 1 / 6}],
}


def single(tmp_path, **more):
    """A directory with one record of a private run."""
    told = made.one(0.3, made.spec(), "only", agents=2, records=40, adjacency="zero_out", **more)
    return made.write(tmp_path / "only", [told])


def page(source, tmp_path):
    return output.write([source], tmp_path / "page.html").read_text()


def test_a_report_of_one_run_begins_with_a_headline_and_compares_nothing(tmp_path):
    text = page(single(tmp_path, test=TEST, simulated_noise=False), tmp_path)
    assert "<h1>A private model on mnist</h1>" in text
    assert "<h2>Comparison</h2>" not in text
    for said in ("30.0%", "3 of 10 test records", "10.8% and 60.3%", "wrong on 50.0%", "The model may be released",
                 "Nobody", "right at most 73.2% of the time", "A model trained by objt on mnist"):  # fmt: skip
        assert said in text
    places = [text.index(part) for part in ('class="tiles"', 'class="matrix"', "How it was trained", "in full")]
    assert places == sorted(places)


def test_several_runs_are_compared(tmp_path):
    text = page(made.write(tmp_path / "sweep"), tmp_path)
    assert "<h2>Comparison</h2>" in text
    assert 'class="tiles"' not in text


def test_a_result_of_an_earlier_version_is_shown_without_what_it_lacks(tmp_path):
    text = page(single(tmp_path), tmp_path)
    assert "Share of test records that got the wrong class." in text
    assert 'class="matrix"' not in text
    assert "The record does not say where the noise came from." in text


@pytest.mark.parametrize(("more", "says"), [
    ({"simulated_noise": True}, "A simulation"),
    ({"guarantee": "not private: no noise is added. For reproduction only.", "epsilon": None}, "Not for release"),
])  # fmt: skip
def test_what_is_not_for_release_is_said_to_be_so(tmp_path, more, says):
    text = page(single(tmp_path, **more), tmp_path)
    assert says in text
    assert "may be released" not in text


def test_what_simulated_noise_would_promise_is_not_stated_as_a_fact(tmp_path):
    text = page(single(tmp_path, simulated_noise=True), tmp_path)
    assert "would be right at most 73.2% of the time if the noise were exact" in text
    assert "is right at most" not in text
    assert "<h3>Privacy if the noise were exact</h3>" in text
    assert "<h3>Privacy</h3>" not in text
    assert "Protection would be weak" in words.promise({"epsilon": 9.0, "simulated_noise": True})


@pytest.mark.parametrize(("more", "says"), [
    ({"epsilon": 12.0}, "a total epsilon of 12 is above 3"),
    ({"epsilon": 3.01, "best_guess": 0.63}, "a total epsilon of 3.01 is above 3"),
    ({"dp_delta": 0.2}, "allows one of the 40 training records to be published in full"),
    ({"dp_delta": 1 / 40}, "well below 1/40"),
    ({"dp_delta": 0.5, "adjacency": "client"}, "allows one of the 2 agents to be published in full"),
])  # fmt: skip
@pytest.mark.parametrize("noise", [{"simulated_noise": False}, {}])
def test_a_weak_guarantee_is_no_green_light(tmp_path, more, says, noise):
    told = made.one(0.3, made.spec(), "only", **{"agents": 2, "records": 40, "adjacency": "zero_out"} | noise | more)
    text = page(made.write(tmp_path / "only", [told]), tmp_path)
    assert '<div class="tile weak"><h3>Status</h3><p class="big words">Weak protection</p>' in text
    assert says in text
    assert "Protection is weak: " in text
    assert "may be released" not in text
    assert 'class="tile private"' not in text


def test_an_epsilon_of_3_is_not_weak_whatever_the_guess(tmp_path):
    for more in ({}, {"best_guess": 0.627}):  # 95.3% by the bound of any mechanism
        told = made.one(0.3, made.spec(), "only", epsilon=3.0, simulated_noise=False, **more)
        text = page(made.write(tmp_path / f"only{len(more)}", [told]), tmp_path)
        assert "The model may be released" in text
        assert "eak" not in re.sub("<style>.*?</style>|<script.*?</script>", "", text, flags=re.S)


@pytest.mark.parametrize("wrong", [
    {"best_guess": "<b>"}, {"best_guess": 0.1}, {"best_guess": True}, {"epsilon": 10**400}, {"epsilon": "1"},
    {"dp_delta": 2.0}, {"epsilon": -1.0},
])  # fmt: skip
def test_a_risk_that_makes_no_sense_is_refused_though_sealed(tmp_path, capsys, wrong):
    assert main(["report", str(single(tmp_path, **wrong)), "--out", str(tmp_path / "page.html")]) == 2
    assert "makes no sense" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [
    3, {}, {"records": 0, "confusion": None, "agents": None}, TEST | {"agents": [{"agent": 1}]},
    TEST | {"confusion": {"classes": ["a"], "counts": [[1, 2]]}},
    TEST | {"confusion": {"classes": ["a"], "counts": [[-1]]}},
    TEST | {"confusion": {"classes": [["a"]], "counts": [[1]]}}, TEST | {"agents": [{"agent": "a", "records": 1}]},
    TEST | {"confusion": {"classes": ["a"], "counts": [["<b>"]]}},
    TEST | {"agents": [{"agent": "a", "records": 1, "test_error": "0"}]},
])  # fmt: skip
def test_what_makes_no_sense_is_refused_though_sealed(tmp_path, capsys, wrong):
    assert main(["report", str(single(tmp_path, test=wrong)), "--out", str(tmp_path / "page.html")]) == 2
    assert "makes no sense" in capsys.readouterr().err


def test_a_page_that_holds_several_runs_gives_each_its_headline(tmp_path):
    one = made.write(tmp_path / "one", [made.one(0.3, made.spec(), "only")])
    two = made.write(tmp_path / "two", [made.one(0.2, made.spec(seed=1), "other")])
    text = output.write([one, two], tmp_path / "page.html").read_text()
    assert text.count('class="tiles"') == 2
    assert "<h2>Comparison</h2>" in text


def test_the_guess_of_the_run_is_shown_and_not_that_of_any_mechanism(tmp_path):
    text = page(single(tmp_path, simulated_noise=False, best_guess=0.5471), tmp_path)
    assert "right at most 54.8% of the time" in text
    assert "73.2%" not in text


def test_of_a_client_the_guess_is_whether_an_agent_took_part():
    assert "one given agent" in words.promise({"epsilon": 1.0, "dp_delta": 1e-6, "adjacency": "client"})


def test_who_is_trusted_is_read_off_the_guarantee():
    assert words.trusted({"guarantee": "(1, 1e-06)-DP"})[0] == "Nobody"
    whom, means = words.trusted({"guarantee": "x; trusts a secure sum: it holds against the server and any 1 of the 4 "
                                              "agents together, if the other 3 follow the protocol"})  # fmt: skip
    assert whom == "A secure sum"
    assert means.endswith("It holds against the server and any 1 of the 4 agents together, if the other 3 follow the "
                          "protocol.")  # fmt: skip
    assert words.trusted({"guarantee": "x; trusts the server, which adds the noise"})[0] == "The server"
    alone = {"guarantee": "(1, 1e-06)-DP", "trust": "one process holds all records, and no ledger outlives it"}
    assert words.trusted(alone)[0] == "Whoever ran this"
    assert words.trusted({"guarantee": "x; trusts the moon"}) == ("Somebody", "The method trusts the moon.")


def test_intervals_hold_what_they_should():
    low, high = wilson(0.3, 10)
    z = 1.959964
    for end in (low, high):  # where the share seen is z standard deviations away
        assert abs(0.3 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 10), rel=1e-4)
    assert wilson(0.0, 5)[0] == pytest.approx(0, abs=1e-12)
    assert wilson(1.0, 5)[1] == pytest.approx(1)
    rng = np.random.default_rng(0)
    scores = [(rng.normal(1, 1, 30), rng.normal(0, 1, 40)) for _ in range(400)]
    found = np.array([(a[:, None] > b).mean() for a, b in scores])
    low, high = auc_interval(float(found.mean()), 30, 40)
    assert 0.9 < ((found > low) & (found < high)).mean() < 0.99


def test_many_agents_are_drawn_in_order_and_few_by_name():
    few = module.tested({"test": TEST, "test_error": 0.3})
    assert few is not None
    chart = agents_chart(few, 0.3)
    assert chart is not None
    assert chart.levels == ("all agents", EVIL, "south")
    assert chart.lines[0].y == pytest.approx((30, 50, 100 / 6))
    assert chart.lines[0].low[0] == pytest.approx(10.8, abs=0.05)
    many = [{"agent": str(n), "records": 1, "test_error": float(n % 2)} for n in range(30)]
    found = module.tested({"test": TEST | {"agents": many}, "test_error": 0.3})
    assert found is not None
    chart = agents_chart(found, 0.3)
    assert chart is not None
    assert (chart.levels, chart.lines[0].y) == ((), (0.0,) * 15 + (100.0,) * 15)
    assert agents_chart(module.Tested(10, None, (), ERROR), 0.3) is None


def test_a_hundred_classes_stay_small_and_are_named_where_there_is_room():
    rng = np.random.default_rng(0)
    counts = tuple(tuple(map(int, row)) for row in rng.integers(0, 50, (100, 100)))
    drawn = matrix.drawing(Confusion(tuple(f"class {n}" for n in range(100)), counts))
    assert len(drawn) < 300_000
    named = re.findall(r"<title>class (\d+)</title>", drawn)
    assert 2 * 20 <= len(named) <= 2 * 50
    assert 'class="count' not in drawn


def test_the_page_of_a_run_holds_what_result_json_says(tmp_path):
    out = tmp_path / "run"
    arguments = ["train", "--data", "heart", "--rounds", "2", "--seed", "0", "--out", str(out), "-qq"]
    assert main(arguments) == 0
    text, told = (out / "report.html").read_text(), json.loads((out / "result.json").read_text())
    found = [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', text)]
    assert {"classes": ["healthy", "diseased"], "counts": told["test"]["confusion"]["counts"]} in found
    (agents,) = [one for one in found if one.get("key") == "agents"]
    assert agents["levels"][1:] == ["cleveland", "hungarian", "switzerland", "va"]
    run = read(out).single
    assert isinstance(run, Recorded)
    assert headline.agents(run) is not None


# points at a cell, steps with the keys, leaves; the names of classes and agents are text
READING = """
const box = document.querySelector(".matrix"), drawn = box.querySelector("svg"), tip = box.querySelector(".tip");
const read = () => (tip.hidden ? null : [...tip.children].map((node) => node.textContent));
const press = (key) => { drawn.dispatchEvent(new KeyboardEvent("keydown", { key })); return read(); };
found.before = read();
const cell = drawn.querySelectorAll(".count")[3].getBoundingClientRect();
drawn.dispatchEvent(new PointerEvent("pointermove", { clientX: cell.x + 2, clientY: cell.y + 2 }));
found.pointed = read();
found.up = press("ArrowUp");
found.stays = press("ArrowUp");
found.left = press("ArrowLeft");
found.escaped = press("Escape");
drawn.dispatchEvent(new PointerEvent("pointermove", { clientX: 0, clientY: 0 }));
found.outside = read();
found.bold = document.querySelectorAll(".matrix text b, figure text b, td b").length;
found.names = [...drawn.querySelectorAll("text > title")].map((node) => node.textContent);
found.agents = [...document.querySelectorAll("#only-agents title")].map((node) => node.textContent);
found.tiles = document.querySelectorAll(".tile").length;
found.width = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
"""


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_cells_are_read_by_pointer_and_keys_on_a_narrow_screen(tmp_path):
    found = probed(single(tmp_path, test=TEST, simulated_noise=False), tmp_path, READING)
    assert found["before"] is None
    assert found["pointed"] == ["3 (60.0% of 5)", f"true: {EVIL}", f"predicted: {EVIL}"]
    assert found["up"] == found["stays"] == ["1 (20.0% of 5)", "true: well", f"predicted: {EVIL}"]
    assert found["left"] == ["4 (80.0% of 5)", "true: well", "predicted: well"]
    assert found["escaped"] is None
    assert found["outside"] is None
    assert found["bold"] == 0
    assert found["names"] == ["well", "well", EVIL, EVIL]
    assert found["agents"] == ["all agents", EVIL, "south"]
    assert found["tiles"] == 4
    assert found["width"][0] <= found["width"][1] <= 360


def test_the_words_are_those_that_guarantees_use():
    starts = [whom.value for whom in (Trusted.SUM, Trusted.SERVER, Trusted.CURATOR)]
    assert all(start.startswith(word) for start, word in zip(starts, words.TRUSTED, strict=True))
    assert {*risk.GUESSED} == {unit.adjacency for unit in Unit}


def test_the_most_frequent_mistakes_are_named_as_text():
    found = Confusion(("a", EVIL, "c"), ((5, 1, 0), (9, 2, 3), (0, 0, 4)))
    told = matrix.mistakes(found)
    assert told.index("taken for a") < told.index("taken for c") < told.index("a, taken for")
    assert "<b>" not in told
    assert matrix.mistakes(Confusion(("a", "b"), ((1, 0), (0, 1)))) == ""


def test_a_run_that_diverged_says_so(tmp_path):
    lost = record.sealed({"name": "lost", "diverged": "diverged in round 3", "spec": made.spec()})
    text = page(made.write(tmp_path / "lost", [lost]), tmp_path)
    assert "The run diverged: diverged in round 3" in text


def test_a_count_is_no_number_of_another_kind():
    with pytest.raises(RecordError, match="no count"):
        module.tested({"test": TEST | {"records": True}})
