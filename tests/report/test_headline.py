"""The page of one run: what a board reads first, pictures of test records, and names that stay text."""

import json
import math
import re
from html import escape

import numpy as np
import pytest

from tacit import record
from tacit.cli import main
from tacit.errors import RecordError
from tacit.measures import ERROR
from tacit.privacy import risk
from tacit.privacy.exclusions import Exclusion
from tacit.privacy.guarantee import FIELDS, Unit
from tacit.report import headline, matrix, output
from tacit.report import tested as module  # a function called tested would be taken for a test
from tacit.report.privacy_text import NOT_STATED, privacy_text
from tacit.report.runs import Recorded
from tacit.report.source import read
from tacit.report.tested import Confusion, agents_chart, auc_interval, wilson
from tests.privacy.guarantees import guarantee, result
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
    text = page(single(tmp_path, fields=False), tmp_path)
    assert "Share of test records that got the wrong class." in text
    assert 'class="matrix"' not in text
    assert '<strong class="badge bare">guarantee not stated</strong>' in text


@pytest.mark.parametrize("sentence", [
    "(1, 1e-06)-DP", "(1, 1e-06)-DP; trusts the server, which adds the noise", "not private: no noise is added.",
    "x; trusts nobody", "Nobody", EVIL,
])  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"simulated_noise": False}, {"simulated_noise": False, "trust": "no server"}])
def test_a_result_without_the_fields_of_a_guarantee_is_never_private_and_does_not_say_nobody(
    tmp_path, sentence, more
):
    """Its sentence stands there as it is, and nothing is concluded from it."""
    text = page(single(tmp_path, fields=False, guarantee=sentence, **more), tmp_path)
    assert f'<div class="tile bare"><h3>Status</h3><p class="big words">{NOT_STATED.capitalize()}</p>' in text
    assert '<h3>Who must be trusted</h3><p class="big words">Not stated</p>' in text
    assert f"In full: {escape(sentence)}" in text
    assert "A model whose guarantee is not stated on mnist" in text
    for wrong in ("<b>Nobody</b>", '<p class="big words">Nobody</p>', "may be released", "badge private", "A private"):
        assert wrong not in text
    assert "epsilon&nbsp;1, delta&nbsp;1e&#8209;06" in text  # which was stated as a number


def test_why_an_earlier_result_is_not_private_is_told_in_its_own_words(tmp_path):
    told = made.one(0.3, made.spec(), "only", fields=False, guarantee="not private: <b>no noise.", epsilon=None)
    text = page(made.write(tmp_path / "only", [told]), tmp_path)
    assert "An earlier version of tacit made this result" in text
    assert "In full: not private: &lt;b&gt;no noise." in text
    assert "Not for release" in text


FORGED = [
    {"private": False}, {"epsilon": None}, {"epsilon": 0.1}, {"epsilon": 10**400}, {"epsilon": "<b>"},
    {"trusted": None}, {"trusted": "nobody at all"}, {"trusted": EVIL}, {"trusted": ["nobody"]}, {"noise": True},
    {"coalition": [1, 2]}, {"own_map": EVIL}, {"reasons": [EVIL]}, {"not_covered": []}, {"unit": "client"},
    {"ledgers": 3}, {"more": 1}, {"rounds": True}, {"each_round": EVIL}, None, [], "private",
]  # fmt: skip


def forged(change):
    """The fields of a guarantee, of which some say something else; or something else altogether."""
    told = made.one(0.3, made.spec(), "only")[FIELDS]
    return told | change if isinstance(change, dict) else change


@pytest.mark.parametrize("change", FORGED)
def test_forged_fields_of_a_guarantee_are_an_error_that_names_the_file(tmp_path, capsys, change):
    source = single(tmp_path, **{FIELDS: forged(change)})
    assert main(["report", str(source), "--out", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert str(source) in said
    assert "guarantee_fields of a result makes no sense" in said
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("told", [
    result(guarantee(own_map=EVIL, not_covered=(Exclusion.OWN_MAP,))),
    result(guarantee(reasons=(EVIL, EVIL), claim=EVIL)),
], ids=["own map", "reasons"])  # fmt: skip
def test_texts_of_a_guarantee_stay_text_on_the_page(tmp_path, told):
    text = page(made.write(tmp_path / "only", [made.one(0.3, made.spec(), "only", **told)]), tmp_path)
    assert EVIL not in text
    assert text.count(escape(EVIL)) >= 2


@pytest.mark.parametrize("field", sorted(made.one(0.3, made.spec(), "only")[FIELDS]))
def test_a_guarantee_that_lacks_a_field_is_not_stated(tmp_path, field):
    """As in results of the version before the one that adds the field."""
    left = {key: value for key, value in forged({}).items() if key != field}
    text = page(single(tmp_path, **{FIELDS: left}), tmp_path)
    assert f'<p class="big words">{NOT_STATED.capitalize()}</p>' in text
    assert '<p class="big words">Not stated</p>' in text
    assert '<p class="big words">Nobody</p>' not in text


@pytest.mark.parametrize(("more", "says"), [
    ({"simulated_noise": True}, "A simulation"),
    ({"guarantee": "not private: no noise is added. For reproduction only.", "epsilon": None,
      "accountant": None}, "Not for release"),
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
    told = {"epsilon": 9.0, "simulated_noise": True, "guarantee": "(9, 0)-DP"}
    assert "Protection would be weak" in privacy_text(told).promise


@pytest.mark.parametrize(("more", "says"), [
    ({"epsilon": 12.0}, "a total epsilon of 12 is above 3"),
    ({"epsilon": 3.01, "best_guess": 0.63}, "a total epsilon of 3.01 is above 3"),
    ({"dp_delta": 0.2}, "allows one of the 40 training records to be published in full"),
    ({"dp_delta": 1 / 40}, "well below 1/40"),
    ({"dp_delta": 0.5, "adjacency": "client"}, "allows one of the 2 agents to be published in full"),
])  # fmt: skip
@pytest.mark.parametrize("fields", [True, False])
def test_a_weak_guarantee_is_no_green_light(tmp_path, more, says, fields):
    told = made.one(0.3, made.spec(), "only", fields, **{"agents": 2, "records": 40, "adjacency": "zero_out"} | more)
    text = page(made.write(tmp_path / "only", [told]), tmp_path)
    kind, words = ("weak", "Weak protection") if fields else ("bare", "Guarantee not stated")
    assert f'<div class="tile {kind}"><h3>Status</h3><p class="big words">{words}</p>' in text
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
    told = {"epsilon": 1.0, "dp_delta": 1e-6, "adjacency": "client", "guarantee": "(1, 1e-06)-DP"}
    assert "one given agent" in privacy_text(told).promise


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


def test_a_guess_is_worded_for_every_unit_of_privacy():
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
