"""One truth about risk: report, card, live page, terminal and notes_ give a run one number and one verdict."""

import json
import re
from html import unescape

import numpy as np
import pytest

import tacit
from tacit import record
from tacit.card import content
from tacit.card.content import Filled
from tacit.cli import main
from tacit.privacy import risk
from tacit.ui.place import Place
from tacit.ui.views import Views

# epsilon, further words of `tacit train`, the share shown, and the verdict: a total epsilon above 3 is weak
RUNS = {
    "default": (["--epsilon", "1"], "54.8%", "private"),
    "three": (["--epsilon", "3"], "62.7%", "private"),
    "more": (["--epsilon", "3.01"], "62.8%", "weak"),
    "sum": (["--epsilon", "3", "--trust", "sum", "--adjacency", "replace_one"], "62.7%", "private"),
    "large delta": (["--epsilon", "1", "--dp-delta", "0.01"], "60.5%", "weak"),
    "simulated": (["--epsilon", "5", "--seed", "0"], "69.6%", "simulated noise"),
}


def plain(page):
    """The words of a page: without markup, and without the scripts and styles that it carries."""
    return unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", "", page, flags=re.S))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("ignore::tacit.errors.LargeDeltaWarning")
def test_every_face_of_a_run_has_the_same_number_and_the_same_verdict(name, tmp_path, capsys):
    if name == "sum":
        pytest.importorskip("cryptography")
    words, share, verdict = RUNS[name]
    out = tmp_path / "runs" / "one"
    assert main(["train", "--data", "heart", "--rounds", "5", *words, "--out", str(out), "-q"]) == 0
    terminal = capsys.readouterr().out
    found = risk.stated(json.loads((out / "result.json").read_text()))
    assert risk.percent(found.guess) == share
    files = content.write(out, tmp_path / "card", Filled())
    report, card = (out / "report.html").read_text(), files["html"].read_text()
    views = Views(Place(tmp_path / "runs"))
    (row,) = views.listing("", "", "updated", 0)["rows"]
    live = views.shown(row["id"])["promise"]
    for face in (terminal, plain(report), plain(card), files["markdown"].read_text().replace("\\", ""), live):
        assert str(found) in face
        assert found.verdict.removeprefix("p") in face  # it may begin a sentence
        assert ("weak" in face) == bool(found.weak)
    assert row["label"] == verdict
    kind = {"private": "private", "weak": "weak", "simulated noise": "simulated"}[verdict]
    assert f'<div class="tile {kind}"><h3>Status</h3>' in report
    assert ('<p class="good">' in card) == (verdict == "private")


@pytest.mark.parametrize(("epsilon", "weak"), [(1.0, False), (3.0, False), (3.5, True)])
def test_notes_say_that_protection_is_weak_if_it_is(epsilon, weak):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(int(10 * epsilon))
    x = rng.random((60, 2))
    model = tacit.PrivateFederatedClassifier(epsilon=epsilon, feature_bounds=(0, 1), classes=[0, 1], rounds=5)
    model.fit(x, (x[:, 0] > 0.5).astype(int))
    said = [note for note in model.notes_ if "weak" in note]
    assert bool(said) == weak
    if weak:
        shown = risk.percent(model.privacy_spent_.best_guess)
        assert said[0].startswith("protection is weak: a total epsilon of 3.5 is above 3")
        assert f"right at most {shown} of the time" in said[0]


def test_a_directory_of_an_earlier_version_still_opens_with_the_bound_of_any_mechanism(tmp_path):
    out = tmp_path / "one"
    assert main(["train", "--data", "heart", "--rounds", "2", "--out", str(out), "-qq"]) == 0
    told = json.loads((out / "result.json").read_text())
    del told["best_guess"], told["seal"]
    (out / "result.json").write_text(json.dumps(record.with_seal(told)))
    assert main(["report", str(out), "--out", str(tmp_path / "page.html")]) == 0
    assert main(["card", str(out)]) == 0
    assert "right at most 73.2%" in (tmp_path / "page.html").read_text()
    views = Views(Place(tmp_path))
    (row,) = views.listing("", "", "updated", 0)["rows"]
    assert row["label"] == "private"
    assert "right at most 73.2%" in views.shown(row["id"])["promise"]
