"""The live page in a real Chromium: a run appears, updates and finishes; compare; keyboard; narrow screen; XSS."""

import json
import threading

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

from tacit import record
from tacit.cli import main
from tacit.errors import Interrupted
from tacit.run.presets import preset
from tacit.run.train import train
from tacit.ui import serve
from tests.privacy.guarantees import guarantee, result
from tests.ui.browser import CHROMIUM, chromium
from tests.ui.serving import SPEC, serving, write_run

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")

SMALL = {"data.source": "synthetic", "data.records": 200, "data.agents": 3, "run.seed": 0, "run.record_every": 1}
RUN = preset("sound", "objt").with_values(SMALL | {"run.rounds": 12})
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"&lt;"
ERRORS = "Refused to|Uncaught|Content Security"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    train(RUN, out=root / "grid" / "first")
    train(RUN.with_values({"privacy.epsilon": 3.0}), out=root / "grid" / "second")
    return root


@pytest.fixture(scope="module")
def server(root):
    with serving(root) as found:
        yield found


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def page(tab, server):
    tab.size(1280)
    tab.said.clear()
    tab.open(server.link)
    tab.wait("document.querySelectorAll('tbody tr').length >= 2")
    yield tab
    assert tab.said == []  # no error, no refusal of the policy, nothing that an attacker wrote


class Held:
    """A run in a thread of its own, which waits after each round until it is let go on."""

    def __init__(self, out, spec=RUN):
        self.reached, self._until, self._moved = 0, 0, threading.Condition()
        self.ended = None
        self._thread = threading.Thread(target=self._train, args=(spec, out))
        self._thread.start()

    def _train(self, spec, out):
        try:
            train(spec, out=out, listener=self._listen)
            self.ended = "finished"
        except Interrupted as stop:
            self.ended = str(stop)

    def _listen(self, done, _row):
        with self._moved:
            self.reached = done
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._until >= done + 1, timeout=20)

    def go_to(self, rounds):
        """Let rounds pass, and wait until so many are done."""
        with self._moved:
            self._until = rounds
            self._moved.notify_all()
            self._moved.wait_for(lambda: self.reached >= rounds, timeout=20)

    def go_on(self):
        with self._moved:
            self._until = 10**9
            self._moved.notify_all()
        self._thread.join(timeout=20)


def test_a_run_in_progress_appears_updates_and_finishes(page, root):
    run = Held(root / "live")
    run.go_to(3)
    try:
        row = "[...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes('live'))"
        page.wait(f"{row}?.textContent.includes('3 of 12')")
        page.run(f"{row}.querySelector('a').click()")
        page.wait("document.querySelector('.head')?.textContent.includes('round 3 of 12')")
        label = "document.querySelector('figure[data-key=test-error] svg')?.getAttribute('aria-label') ?? ''"
        page.wait(f"/ at 3\\.$/.test({label})")
        run.go_to(7)
        page.wait("document.querySelector('.head').textContent.includes('round 7 of 12')")
        page.wait(f"/ at 7\\.$/.test({label})")
        assert page.run("document.querySelector('progress').value") == 7
    finally:
        run.go_on()
    assert run.ended == "finished"
    page.wait("document.querySelector('.pill').textContent === 'finished'")
    page.wait(f"/ at 12\\.$/.test({label})")
    page.wait("document.querySelector('figure[data-key=budget] svg')")
    assert "for the whole run" in page.text()
    assert "would be right at most 54.8% of the time if the noise were exact" in page.text()
    assert page.run("document.querySelector('.stop')") is None


def test_weak_protection_is_said_in_red_as_on_the_report(page, root):
    told = {"test_error": 0.5, "best_guess": 0.628} | result(guarantee(epsilon=3.01))
    write_run(root / "loud", spec=SPEC.replace("simulated", "exact"), **told)
    row = "[...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes('loud'))"
    page.wait(f"{row}?.querySelector('.badge.bare')?.textContent === 'weak'")
    page.run(f"{row}.querySelector('a').click()")
    page.wait("document.querySelector('.promise .badge.bare')?.textContent === 'weak'")
    assert "is right at most 62.8% of the time; a coin is right 50%. Protection is weak" in page.text()


def test_a_run_is_stopped_from_the_page_and_can_go_on(page, root, server):
    run = Held(root / "stopped-here", RUN.with_values({"run.rounds": 4000}))
    run.go_to(2)
    try:
        page.run(f"location.hash = '#/item/{server.id_of('stopped-here')}'")
        page.click(".stop")
        page.wait("document.querySelector('dialog[open]')")
        page.press("Escape")  # not yet
        page.wait("!document.querySelector('dialog')")
        assert not (root / "stopped-here" / "stop").exists()
        page.click(".stop")
        page.click("dialog .danger")
        page.wait("document.querySelector('.pill').textContent === 'stopping'")
        assert (root / "stopped-here" / "stop").exists()
    finally:
        run.go_on()
    assert "stopped after" in run.ended
    page.wait("document.querySelector('.pill').textContent === 'stopped'")
    assert "tacit train --resume stopped-here" in page.text()
    assert not (root / "stopped-here" / "stop").exists()


def test_two_runs_are_compared(page):
    for name in ("first", "second"):
        page.click(f"input[aria-label='compare {name}']")
    page.click(".chosen .primary")
    page.wait("document.querySelector('figure[data-key=test-error] svg')")
    legend = (
        "[...document.querySelectorAll('figure[data-key=test-error] .legend li')].map((one) => one.innerText.trim())"
    )
    assert sorted(page.run(legend)) == ["first", "second"]
    apart = page.run("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split(/\\s+/))")
    assert ["epsilon", "1", "3"] in apart or ["epsilon", "3", "1"] in apart
    page.click("button[data-sets=iterate]")
    assert "averaged" in page.run("document.querySelector('figure[data-key=test-error] small').textContent")


def test_everything_can_be_done_with_the_keyboard(page):
    page.run("document.activeElement.blur()")
    page.press("/")
    for letter in "grid":
        page.press(letter)
    page.wait("document.querySelectorAll('tbody tr').length === 2")
    focused = "document.activeElement.textContent"
    for _ in range(12):  # states, order, the table, the box of the first row, its link
        page.press("Tab")
        if page.run("document.activeElement.matches('a[data-row]')"):
            break
    first = page.run(focused)
    page.press(" ")
    page.press("ArrowDown")
    second = page.run(focused)
    assert {first, second} == {"first", "second"}
    page.press(" ")
    page.wait("document.querySelector('.chosen').textContent.includes('Compare 2 runs')")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none"  # one sees where one is
    page.press("Enter")
    page.wait(f"document.querySelector('h1')?.textContent === {second!r}")
    page.wait("document.querySelector('figure[data-key=test-error] svg')")
    page.run("document.querySelector('figure[data-key=test-error] svg').focus()")
    page.press("ArrowRight")
    assert "round 2" in page.run("document.querySelector('.tip:not([hidden])').innerText")
    page.press("Escape")  # the tip goes, the page stays
    assert page.run("document.querySelector('h1').textContent") == second
    page.run("document.activeElement.blur()")
    page.press("Escape")
    page.wait("document.querySelector('input[type=search]')")


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_screen_shows_all_without_scrolling_sideways(page, server, dark):
    page.size(390, dark=dark)
    for hash in (
        "#/",
        f"#/item/{server.id_of('first')}",
        f"#/compare/{server.id_of('first')},{server.id_of('second')}",
    ):
        page.run(f"location.hash = '{hash}'")
        page.wait("document.querySelector('tbody tr, figure svg')")
        assert page.run("document.documentElement.scrollWidth") <= 390
        pressed = "[...document.querySelectorAll('main button, main .button, main input')]"
        small = f"{pressed}.filter((one) => one.offsetHeight && one.offsetHeight < 24).length"
        assert page.run(small) == 0  # a finger finds them
    bright = page.run("getComputedStyle(document.body).backgroundColor")
    assert bright == ("rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)")


def test_markup_in_names_and_files_is_text(page, root, server):
    spec = SPEC.replace('"objt"', "'''" + EVIL + "'''").replace('"synthetic"', "'''" + EVIL + "'''")
    folder = write_run(root / EVIL.replace("/", "\N{DIVISION SLASH}"), spec=spec, test_error=0.5, epsilon=1.0,
                       dp_delta=1e-6, guarantee=EVIL, dataset=EVIL, algorithm=EVIL, **{EVIL: EVIL})  # fmt: skip
    finding = dict.fromkeys(("attack", "name", "verdict", "note"), "<img src=x onerror=alert(3)>") | dict.fromkeys(
        ("claimed", "measured", "dp_delta", "samples"), 1)  # fmt: skip
    said = {"passed": False, "findings": [finding | {"verdict": "consistent"}], "controls": [finding]}
    (folder / "audit.json").write_text(json.dumps(said))
    page.wait("document.querySelector('tbody').textContent.includes('onerror')")
    evil = page.run(
        "[...document.querySelectorAll('a[data-row]')].find((one) => one.textContent.includes('onerror')).dataset.row"
    )
    for hash in (f"#/item/{evil}", f"#/compare/{evil},{server.id_of('first')}", "#/item/<img src=x onerror=alert(4)>",
                 "#/compare/<script>alert(5)</script>,x", "#token=<script>alert(6)</script>"):  # fmt: skip
        page.run(f"location.hash = {hash!r}")
        page.wait("document.querySelector('main').textContent.length > 5")
        page.run("new Promise((done) => setTimeout(done, 150))")
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
    page.run(f"location.hash = '#/item/{evil}'")
    page.wait("document.querySelector('.badge.bare')")
    assert EVIL in page.text()
    # ids that name nothing are said to be gone; the browser notes these answers, and nothing else
    assert [one for one in page.said if "404" not in one] == []
    page.said.clear()


def test_the_policy_stops_a_script_that_got_into_the_page(page):
    tried = """window.ran = 0; window.caught = [];
      const made = document.createElement("button"), script = document.createElement("script");
      document.body.append(made);
      for (const attack of [
        () => { made.innerHTML = '<img src=x onerror="window.ran = 1">'; },
        () => { made.setAttribute("onclick", "window.ran = 2"); made.click(); },
        () => { script.textContent = "window.ran = 3"; document.body.append(script); },
        () => { eval("window.ran = 4"); },
      ]) {
        try { attack(); } catch (error) { window.caught.push(error.name); }
      }"""
    page.run(f"{{ {tried} }}")
    page.run("new Promise((done) => setTimeout(done, 100))")
    assert page.run("window.ran") == 0
    assert len(page.run("window.caught")) == 4
    assert page.said  # the browser says what it refused
    page.said.clear()


def test_the_token_leaves_the_address_and_without_it_the_page_asks_for_it(page, server):
    assert page.run("location.hash") == "#/"
    page.run("sessionStorage.clear()")
    page.open(f"http://127.0.0.1:{server.port}/")
    page.wait("document.querySelector('#token')")
    assert page.run("document.querySelectorAll('tbody').length") == 0
    page.run(f"document.querySelector('#token').value = {server.link!r}")
    page.press("Enter")
    page.wait("document.querySelectorAll('tbody tr').length >= 2")
    assert [one for one in page.said if "401" not in one] == []
    page.said.clear()


def test_another_page_in_the_browser_learns_nothing_and_stops_nothing(tab, server, root):
    tab.open("data:text/html,<title>evil</title>")
    tab.wait("document.title === 'evil'")
    name = server.id_of("first")
    ask = "fetch('http://127.0.0.1:%d/api/%s', %s).then((answer) => answer.type + answer.status, (error) => error.name)"
    assert tab.run(ask % (server.port, "list", f"{{headers: {{'X-Tacit-Token': '{server.token}'}}}}")) == "TypeError"
    assert tab.run(ask % (server.port, f"stop?id={name}", "{method: 'POST', mode: 'no-cors'}")) in (
        "opaque0",
        "TypeError",
    )
    assert not (root / "grid" / "first" / "stop").exists()
    tab.said.clear()


def test_a_name_that_is_bound_to_this_machine_shows_nothing(tab, server):
    tab.open(f"http://evil.example:{server.port}/#token={server.token}")  # the browser believes it
    tab.wait("document.body?.innerText.includes('not served')")
    ask = f"fetch('/api/list', {{headers: {{'X-Tacit-Token': '{server.token}'}}}}).then((answer) => answer.status)"
    assert tab.run(ask) == 421
    tab.said.clear()


def test_the_file_of_open_leads_to_the_page(page, server, monkeypatch):
    asked = []
    monkeypatch.setattr(serve.webbrowser, "open", asked.append)
    with serve.opener() as show:
        show(server.link)
        assert asked[0].startswith("file:///")
        page.open("about:blank")
        page.open(asked[0])
        page.wait("location.protocol === 'http:' && document.querySelectorAll('tbody tr').length >= 2")


@pytest.mark.parametrize("dark", [False, True])
def test_a_comparison_is_a_leaderboard_and_markup_in_it_is_text(page, root, server, dark):
    if not (root / "compared").exists():
        words = "compare --data synthetic --set data.records=240 --methods objt,fedavg --seeds 2 -q --out"
        assert main([*words.split(), str(root / "compared")]) == 0
        records = [one | {"guarantee": EVIL} for one in record.read(root / "compared" / "records.jsonl")]
        (root / "compared" / "records.jsonl").write_text(record.lines(map(record.sealed, records)))
    page.size(390, dark=dark)
    page.run(f"location.hash = '#/item/{server.id_of('compared')}'")
    page.wait("document.querySelector('tbody tr') && document.querySelector('figure svg')")
    assert page.run("document.querySelector('h2').textContent") == "Comparison of methods on synthetic"
    assert sorted(page.run("[...document.querySelectorAll('tbody th')].map((one) => one.textContent)")) == [
        "fedavg", "objt",
    ]  # fmt: skip
    assert EVIL in page.text()
    assert page.run("document.documentElement.scrollWidth") <= 390
