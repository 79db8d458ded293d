"""The model card: all that a board asks for, of every kind of run, and no name that becomes markup."""

import json
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tacit import record
from tacit.audit import finding
from tacit.card import audited, content, drawing, markdown
from tacit.card.blocks import Card, Code, Notice, Section, Table, Text
from tacit.card.content import Filled
from tacit.errors import RecordError
from tacit.privacy.guarantee import FIELDS
from tacit.report.chart import Chart, Line
from tests.report.test_browser import CHROMIUM, FLAGS
from tests.run.test_numbers import command

EVIL = "a|b <img src=x onerror=alert(1)> [x](http://e.vil) `c` **d** </script> & www.e.vil"
SECTIONS = (
    "In short", "What the model is for", "Data", "Agents", "Privacy", "Audit", "How good the model is",
    "What the model has learnt", "Limits", "Signatures", "Appendix: how to reproduce",
)  # fmt: skip
FINDING = {
    "attack": "mechanism", "name": EVIL, "claimed": 1.0, "dp_delta": 1e-6, "note": "", "measured": 0.4, "by": "mu",
    "samples": 800, "confidence": 0.95, "checks": {}, "detects": None, "verdict": "consistent",
}  # fmt: skip
AUDIT = {"passed": True, "findings": [FINDING], "controls": [], "reconstruction": [], "picture": None}


GONE = object()  # of a key that an edited result lacks


def text_of(directory: Path, **filled: object) -> tuple[str, str]:
    """The card of a run in both forms."""
    written = content.write(directory, directory / "card", Filled(**filled))  # type: ignore[arg-type]
    return written["markdown"].read_text(), written["html"].read_text()


def edited(directory: Path, to: Path, **changes: object) -> Path:
    """A copy of a run whose result says something else, under a seal."""
    to.mkdir()
    for file in ("spec.toml", "rounds.jsonl", "model.npz"):
        (to / file).write_bytes((directory / file).read_bytes())
    told = {key: value for key, value in (json.loads((directory / "result.json").read_text()) | changes).items()
            if value is not GONE}  # fmt: skip
    (to / "result.json").write_text(json.dumps(record.with_seal(told)))
    return to


@pytest.fixture(scope="module")
def heart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("card") / "run"
    words = ("--data", "heart", "--rounds", 3, "--features", "columns", "--set", "data.row_mode=clip")
    assert command("train", *words, "--out", out, "-qq") == 0
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a number to predict, whose columns, levels and agents have hostile names."""
    place = tmp_path_factory.mktemp("hostile")
    quoted = json.dumps(EVIL)
    (place / "schema.toml").write_text(
        f"[columns.{quoted}]\nkind = 'categorical'\nvalues = [{quoted}, 'no']\n[columns.who]\nkind = 'agent'\n"
        "[columns.days]\nkind = 'target'\nlo = 0\nhi = 40\n"
    )
    cell = '"' + EVIL.replace('"', '""') + '"'
    rows = [f"{cell if n % 2 else 'no'},{cell if n % 3 else 'b'},{n % 40}" for n in range(120)]
    (place / "t.csv").write_text(f"{cell},who,days\n" + "\n".join(rows) + "\n")
    words = ("--data", place / "t.csv", "--schema", place / "schema.toml", "--rounds", 3, "--seed", 0)
    assert command("train", *words, "--out", place / "run", "-qq") == 0
    return place / "run"


class Tags(HTMLParser):
    """The names of all tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_card_has_all_that_a_board_asks_for(heart: Path) -> None:
    text, page = text_of(heart, purpose="Plans beds.")
    assert re.findall(r"^## (.*)$", text, re.M) == list(SECTIONS)
    assert re.findall(r"<h2>(.*?)</h2>", page) == list(SECTIONS)
    told = json.loads((heart / "result.json").read_text())
    for said in ("Plans beds.", "healthy, diseased", "trestbps", "lo 80; hi 220", "cleveland", "right at most 54.8%",
                 told["ledger_heads"]["va"], told["spec_hash"], told["model_hash"], told["version"], "Not audited",
                 "95% interval", "effect on log-odds", "Approved by", "hyper-parameters chosen by looking",
                 "tacit train --config spec.toml"):  # fmt: skip
        assert said in page
        assert said in text.replace("\\_", "_")
    assert "Contact" in text  # with a line to write on
    assert text.count("\\_" * 40) == 1 + 2
    assert "class='blank'" in page.replace('"', "'")


@pytest.mark.parametrize("name", ["heart", "hostile"])
def test_a_page_runs_nothing_and_asks_for_nothing(name: str, request: pytest.FixtureRequest) -> None:
    _, page = text_of(request.getfixturevalue(name), purpose=EVIL, contact=EVIL)
    assert "default-src 'none'" in page
    found = Tags(page)
    assert not found.tags & {"script", "img", "a", "iframe", "object", "form", "link", "base"}
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "href", "srcdoc")}
    assert "url(" not in page


def test_every_colour_that_a_page_names_is_given(heart: Path) -> None:
    _, page = text_of(heart)
    style = page.partition("<style>")[2].partition("</style>")[0]
    used, given = set(re.findall(r"var\((--[\w-]+)\)", style)), set(re.findall(r"(--[\w-]+):", style))
    assert "--ink" in used
    assert used - {"--columns"} <= given  # the number of columns is given where charts are


def test_hostile_names_stay_text(hostile: Path) -> None:
    text, page = text_of(hostile, purpose=EVIL, contact=f"line\n# heading\n{EVIL}")
    outside = re.sub(r"^(`{3,})text$.*?^\1$", "", text, flags=re.M | re.S)  # code is shown as it is
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert not re.search(r"(?<!\\)\*\*d", outside)
    assert "http://" not in outside
    assert "www.e" not in outside
    assert "\n# heading" not in outside
    for line in outside.splitlines():  # no cell of a table has more columns than its head
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) <= 12
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "a simulated private model" in text
    assert "Nothing of this run is for release" in text
    assert "effect on days" in page


def test_a_simulation_promises_nothing_as_a_fact(hostile: Path) -> None:
    for form in text_of(hostile):
        assert form.count("would be right at most") == 2
        assert "is right at most" not in form
        assert "privacy if the noise were exact" in form
        assert content.SIMULATED in form


@pytest.mark.parametrize("weak", [{"epsilon": 12.0}, {"dp_delta": 0.2, "allowed_delta": 0.2}])
def test_the_first_line_of_a_weak_guarantee_says_so(heart: Path, tmp_path: Path, weak: dict[str, float]) -> None:
    text, page = text_of(edited(heart, tmp_path / "run", **weak, **{FIELDS: fields_of(heart) | weak}))
    assert "**Weak protection. " in text
    assert '<p class="bad">Weak protection. ' in page
    assert "may be released" not in text
    assert "may be released" in text_of(heart)[0]


def test_a_card_names_no_place_of_the_machine_of_its_owner(tmp_path: Path) -> None:
    words = ("--data", "heart", "--rounds", 2, "--ledger", tmp_path / "mine" / "books")
    assert command("train", *words, "--out", tmp_path / "run", "-qq") == 0
    assert "mine/books" in (tmp_path / "run" / "spec.toml").read_text()
    for form in text_of(tmp_path / "run"):
        assert "mine" not in form
        assert "books" in form
        assert str(tmp_path) not in form


@pytest.mark.parametrize(("line", "shown"), [
    ('ledger = "/home/a/books"', 'ledger = "books"'), ('ledger = "../a/books/"', 'ledger = "books"'),
    ('ledger = "C:\\\\a\\\\books"', 'ledger = "books"'), ('source = "/srv/x.csv"', 'source = "x.csv"'),
    ('source = "x/y.csv"', 'source = "x/y.csv"'), ("epsilon = 1.0", "epsilon = 1.0"), ("[privacy]", "[privacy]"),
])  # fmt: skip
def test_a_path_is_its_last_part(line: str, shown: str) -> None:
    assert content._without_paths(f"{line}\na = [1, 2]") == f"{shown}\na = [1, 2]"


def test_a_fence_cannot_be_ended_by_what_it_holds() -> None:
    written = markdown.write(Card("t", Notice("n", True), "", [Section("s", [Code("a\n````\n# b\x1b[31m")])]))
    assert "`````text\na\n````\n# b [31m\n`````" in written


@pytest.mark.parametrize(("given", "shown"), [
    ("- a", "\\- a"), ("1. a", "1\\. a"), ("-1.5", "-1.5"), ("---", "\\---"), ("a\nb", "a b"), ("a_b|c", "a\\_b\\|c"),
    ("\u202egnp.exe", "gnp.exe"), ("=====", "\\====="),
])  # fmt: skip
def test_markdown_shows_the_text(given: str, shown: str) -> None:
    assert markdown.plain(given) == shown


def test_a_card_says_what_an_audit_found(heart: Path, tmp_path: Path) -> None:
    own = json.loads((heart / "result.json").read_text())["spec_hash"]
    broken = FINDING | {"attack": "control", "verdict": "VIOLATED"}

    def told(**changes: object) -> str:
        (tmp_path / "audit.json").write_text(json.dumps(AUDIT | changes))
        return text_of(heart, audit=audited.read(tmp_path / "audit.json"))[1]

    good = told(spec_hash=own, controls=[broken])
    assert audited.PASSED in good
    assert audited.OWN in good
    assert "1 of 1 mechanisms that were broken on purpose were caught" in good
    assert audited.OTHER in told()
    assert audited.OTHER in told(spec_hash="another")
    for failed in ({"passed": False}, {"findings": [FINDING | {"verdict": "VIOLATED"}]}, {"controls": [FINDING]}):
        page = told(**failed)
        assert audited.FAILED in page  # whatever "passed" says
        assert audited.PASSED not in page
    assert "<img" not in told()


def test_a_card_says_that_an_audit_passed_only_of_an_attack_on_the_mechanism_of_its_run(
    heart: Path, tmp_path: Path
) -> None:
    own = json.loads((heart / "result.json").read_text())["spec_hash"]
    control = FINDING | {"attack": "control", "verdict": "VIOLATED"}
    nothing = {"controls": [control], "spec_hash": own}
    for findings in ([], [FINDING | {"attack": "run"}], [FINDING | {"samples": 0}]):
        (tmp_path / "audit.json").write_text(json.dumps(AUDIT | nothing | {"findings": findings}))
        text, page = text_of(heart, audit=audited.read(tmp_path / "audit.json"))
        assert f'<p class="bad">{audited.NO_ATTACK}' in page
        for form in (text, page):
            assert audited.PASSED not in form
            assert audited.OWN not in form
    for spec_hash, bold in ((own, True), ("another", False), (None, False)):
        (tmp_path / "audit.json").write_text(json.dumps(AUDIT | {"spec_hash": spec_hash}))
        text, page = text_of(heart, audit=audited.read(tmp_path / "audit.json"))
        assert (f"**{audited.PASSED}**" in text) is bold
        assert (f'<p class="good">{audited.PASSED}' in page) is bold
        assert (f"## Audit\n\n**{audited.OTHER}**" in text) is not bold


@pytest.mark.parametrize("wrong", [
    "", "[]", "{}", "nonsense", json.dumps(AUDIT | {"findings": []}), json.dumps(AUDIT | {"findings": [{}]}),
    json.dumps(AUDIT | {"findings": [FINDING | {"claimed": "1"}]}), json.dumps(AUDIT | {"passed": "yes"}),
    json.dumps(AUDIT | {"findings": [FINDING | {"name": ["x"]}]}), "[" * 100_000,
])  # fmt: skip
def test_a_file_that_is_no_audit_is_refused(
    heart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    (tmp_path / "audit.json").write_text(wrong)
    assert command("card", heart, "--audit", tmp_path / "audit.json", "--out", tmp_path / "out") == 2
    assert "is no output of tacit audit --json" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_output_of_an_audit_is_understood(
    heart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # exact noise is new in every run of the tests: a false alarm must be no event
    monkeypatch.setattr(finding, "CONFIDENCE_DEPLOYED", 1 - 1e-9)
    capsys.readouterr()
    audit = ("audit", "--config", heart / "spec.toml", "--what", "mechanism", "--draws", 200, "--json")
    assert command(*audit) == 0
    (tmp_path / "audit.json").write_text(capsys.readouterr().out)
    assert audited.OWN in text_of(heart, audit=audited.read(tmp_path / "audit.json"))[0]


def test_a_federation_and_a_secure_sum_are_told(heart: Path, tmp_path: Path) -> None:
    took = {"va": {"site": EVIL, "released": 3, "epsilon": 0.5, "epsilon_at_most": 1.0}, "cleveland": "?"}
    fields = fields_of(heart) | {"trusted": "sum", "coalition": [1, 4]}
    text, page = text_of(edited(heart, tmp_path / "run", took_part=took, ledger_heads=None, **{FIELDS: fields}))
    assert "| va | 160 |" in text
    assert "| 3 | 0.5 | 1 |" in text
    assert "A secure sum." in page
    assert "against the server and any 1 of the 4 agents together" in page
    assert "No ledger was kept." in page


def fields_of(directory: Path) -> dict[str, Any]:
    """The fields of the guarantee of a run."""
    return dict(json.loads((directory / "result.json").read_text())[FIELDS])


@pytest.mark.parametrize("sentence", ["(1, 1e-06)-DP", "(1, 1e-06)-DP; trusts nobody", "not private: no noise.", EVIL])
def test_a_card_of_an_earlier_version_says_that_its_guarantee_is_not_stated(
    heart: Path, tmp_path: Path, sentence: str
) -> None:
    for form in text_of(edited(heart, tmp_path / "run", guarantee=sentence, **{FIELDS: GONE})):
        assert "Guarantee not stated" in form
        assert "Not stated. An earlier version" in form.replace("\\", "")
        assert "Nobody" not in form
        assert "may be released" not in form
        assert "epsilon 1, delta" in form  # which was stated as a number


@pytest.mark.parametrize("change", [
    {"private": False}, {"trusted": None}, {"trusted": EVIL}, {"epsilon": 10**400}, {"epsilon": 0.5}, {"more": 1},
    {"noise": "simulated"}, {"not_covered": [EVIL]}, {"ledgers": True},
])  # fmt: skip
def test_forged_fields_of_a_guarantee_make_no_card(
    heart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any]
) -> None:
    run = edited(heart, tmp_path / "run", **{FIELDS: fields_of(heart) | change})
    assert command("card", run) == 2
    said = capsys.readouterr().err
    assert f"{run}: guarantee_fields of a result makes no sense" in said
    assert not list(tmp_path.rglob("*card*"))


def test_a_result_of_an_earlier_version_has_a_card(heart: Path, tmp_path: Path) -> None:
    text, page = text_of(edited(heart, tmp_path / "run", test=None, agent_records=None))
    assert "the result does not list them" in text
    assert "does not say how many test records" in page


def test_a_run_without_test_records_has_a_card_and_a_report(tmp_path: Path) -> None:
    words = ("--data", "heart", "--set", "data.test_fraction=0", "--rounds", 2, "--epsilon", "inf", "--seed", 0)
    assert command("train", *words, "--out", tmp_path / "run", "-qq") == 0
    text, _ = text_of(tmp_path / "run")
    assert text.count("Not measured: there were no test records.") == 2
    assert "a model without a guarantee" in text
    assert "There is no guarantee that could cover anything." in text
    assert "There were no test records." in (tmp_path / "run" / "report.html").read_text()


def test_many_agents_and_classes_stay_short(heart: Path, tmp_path: Path) -> None:
    names = [f"class {n}" for n in range(60)]
    counts = [[int(i == j) + 5 * (j == i + 1) for j in range(60)] for i in range(60)]
    agents = [{"agent": str(n), "records": 5, "test_error": 0.2} for n in range(900)]
    told = {"records": 300, "confusion": {"classes": names, "counts": counts}, "agents": agents}
    text, page = text_of(edited(heart, tmp_path / "run", test=told, agent_records=[[str(n), n] for n in range(900)]))
    assert "The smallest has 0, the one in the middle 450, the largest 899." in text
    assert "the first 12 of 900" in text
    assert "| class 0 | class 1 | 5 |" in text
    assert len(page) < 200_000
    assert len(text) < 20_000


@pytest.mark.parametrize(("where", "says"), [("nothing", "does not exist"), ("records.jsonl", "no finished run")])
def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, says: str) -> None:
    from tests.report import made

    made.write(tmp_path, [made.one(0.1, made.spec(), "one")])
    assert command("card", tmp_path / where) == 2
    assert says in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_refused(
    heart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert command("card", heart, "--out", tmp_path / "file" / "in") == 2
    assert "Give another --out" in capsys.readouterr().err


def test_the_command_names_what_it_wrote_the_same_bytes_each_time(
    heart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    written = []
    for name in "ab":
        assert command("card", heart, "--out", tmp_path / name, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        written.append([Path(told[kind]).read_bytes() for kind in ("markdown", "html")])
    assert written[0] == written[1]


def test_drawings_hold_their_points() -> None:
    line = Line("a", (0.0, 50.0, 100.0), (-1.0, 0.0, 1.0), (-2.0, -1.0, 0.0), (0.0, 1.0, 2.0), missing=(0.5, 0.0, 1.0))
    drawn = drawing.draw(Chart("1", "t", "x", "y", (line,), y_ends=(-2.0, 2.0)))
    ((points,),) = [re.findall(r'<polyline class="line" points="([^"]*)"', drawn)]
    places = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert places == sorted(places)  # to the right
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)  # and up
    numbers = [float(n) for n in re.findall(r'(?:[xy]|c[xy])="(-?[\d.]+)"', drawn)]
    assert all(0 <= number <= drawing.WIDTH for number in numbers)
    marks = replace(line, x=(0.0, 1.0, 2.0), missing=())
    levels = drawing.draw(Chart("1", EVIL, "x", "y", (marks,), levels=(EVIL, "b", "c"), y_ends=(-2.0, 2.0)))
    assert "<img" not in levels
    flat = Line("a", (1.0,), (0.0,))
    assert "NaN" not in drawing.draw(Chart("1", "t", "x", "y", (flat,)))
    assert drawing.legend(Chart("1", "t", "x", "y", (flat, flat))).count("<li>") == 2


def test_a_text_that_is_empty_is_nothing() -> None:
    assert markdown.write(Card("t", Notice("n", True), "", [Section("s", [Text(""), Table("", ["a"], [["b"]])])])) == (
        "# t\n\n**n**\n\n## s\n\n| a |\n| --- |\n| b |\n")  # fmt: skip


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_a_browser_shows_the_card_without_a_complaint_and_prints_it(hostile: Path, tmp_path: Path) -> None:
    written = content.write(hostile, tmp_path, Filled(EVIL))["html"]
    profile = f"--user-data-dir={tmp_path / 'chromium'}"
    done = subprocess.run([CHROMIUM, *FLAGS, profile, "--dump-dom", written.as_uri()], capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    assert "CONSOLE" not in done.stderr  # the policy refused nothing
    assert "&lt;img src=x" in done.stdout
    assert not Tags(done.stdout).tags & {"img", "script"}
    subprocess.run([CHROMIUM, *FLAGS, profile, f"--print-to-pdf={tmp_path / 'card.pdf'}", written.as_uri()],
                   capture_output=True, check=True, timeout=60)  # fmt: skip
    assert (tmp_path / "card.pdf").read_bytes().startswith(b"%PDF")


def test_a_missing_audit_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot read"):
        audited.read(tmp_path / "none.json")
