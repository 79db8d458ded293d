"""The page in a real browser: charts that show what the records say, toggles and a pointer that do what they should."""

import json
import random
import re
import shutil
import subprocess

import pytest

from tacit.report import output
from tests.report import made

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
    "--virtual-time-budget=2000", "--allow-file-access-from-files",
)  # fmt: skip

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")


def probed(source, tmp_path, probe):
    """Run a probe, a script that fills `found`, in a page of the source as narrow as a phone; return what it found."""
    text = output.write([source], tmp_path / "page.html").read_text()
    ending = 'document.body.append(html("pre", { id: "found" }, JSON.stringify(found)));'
    script = f"<script>const found = {{}};\n{{{probe}}}\n{ending}</script>"
    (tmp_path / "inner.html").write_text(text.replace("</body></html>", f"{script}</body></html>"))
    # a window of chromium is at least 500 pixels wide; a frame is as narrow as a phone
    (tmp_path / "phone.html").write_text(
        '<body><iframe src="inner.html" width="360" height="800"></iframe><script>addEventListener("load", () => '
        '{ document.body.append(document.querySelector("iframe").contentDocument.getElementById("found")); });'
        "</script></body>"
    )
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'chromium'}", "--dump-dom", f"file://{tmp_path}/phone.html"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert match, done.stdout[-500:]
    return json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


# clicks every button through all of its values, and notes what is visible
TOGGLES = """
const seen = (selector) => [...document.querySelectorAll(selector)].some((node) => node.getClientRects().length > 0);
const press = (name) => document.querySelector(`button[data-sets="${name}"]`).click();
const background = () => getComputedStyle(document.body).backgroundColor;
const caption = (key) => document.querySelector(`#fig9-${key} small`).textContent;
const captions = () => [caption("test-error"), caption("noise-gradient-units")];
const ends = () => document.querySelector("#fig9-test-error svg").getAttribute("aria-label");
const cells = () => [seen("td .last"), seen("td .averaged")];
document.querySelectorAll("details").forEach((block) => { block.open = true; });
found.start = captions();
press("y");
found.linear = captions();
press("y");
found.log = captions();
found.ticks = [...document.querySelectorAll("#fig9-test-error svg text")].map((node) => node.textContent);
found.last = [...cells(), ends()];
press("iterate");
found.averaged = [...cells(), ends()];
found.caption = caption("test-error");
found.label = document.querySelector('button[data-sets="iterate"]').textContent;
press("theme");
const dark = background();
press("theme");
found.themes = [dark, background()];
document.querySelectorAll("details").forEach((block) => { block.open = false; });
dispatchEvent(new Event("beforeprint"));
found.printed = document.querySelectorAll("details:not([open])").length;
found.width = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
dispatchEvent(new Event("afterprint"));
found.folded = document.querySelectorAll("details[open]").length;
found.one = document.querySelectorAll("#fig9-test-error .plot").length;
"""


def test_toggles_work_on_a_narrow_screen_without_an_error(tmp_path):
    found = probed(made.write_artefact(tmp_path / "fig9"), tmp_path, TOGGLES)
    assert found["start"] == ["last iterate, exact (test records)", "log scale"]
    assert found["linear"] == ["last iterate, exact (test records)", ""]
    assert found["log"] == ["last iterate, log scale, exact (test records)", "log scale"]
    assert {"5", "10", "20", "50", "round", "test error (%)"} <= set(found["ticks"])
    assert found["last"][:2] == [True, False]
    assert found["averaged"][:2] == [False, True]
    assert "epsilon 1: 90 at 1, 16 at 10" in found["last"][2]
    assert "epsilon 1: 99 at 1, 17.6 at 10" in found["averaged"][2]
    assert found["caption"] == "averaged iterate, log scale, exact (test records)"
    assert found["label"] == "iterate: averaged"
    assert found["themes"] == ["rgb(21, 24, 28)", "rgb(255, 255, 255)"]
    assert (found["printed"], found["folded"], found["one"]) == (0, 0, 1)
    assert found["width"][0] <= found["width"][1] <= 360


# points at the last dot of the first line, steps with the arrow keys, and leaves
POINTER = """
const plotted = document.querySelector("#sweep-test-error .plot"), drawn = plotted.querySelector("svg");
const tip = plotted.querySelector(".tip");
const read = () => (tip.hidden ? null : [...tip.children].map((node) => node.textContent));
const press = (key) => { drawn.dispatchEvent(new KeyboardEvent("keydown", { key })); return read(); };
found.before = read();
const box = drawn.querySelectorAll("circle")[2].getBoundingClientRect();
drawn.dispatchEvent(new PointerEvent("pointermove", { clientX: box.x, clientY: box.y }));
found.pointed = read();
const held = tip.getBoundingClientRect(), around = drawn.getBoundingClientRect();
found.inside = held.left >= around.left && held.right <= around.right;
found.left = press("ArrowLeft");
found.down = press("ArrowDown");
found.escaped = press("Escape");
found.order = [drawn, ...document.querySelectorAll("button")].map((node) => node.tabIndex);
found.legend = [...document.querySelectorAll("#sweep-test-error .legend li")].map((node) => node.textContent.trim());
found.bands = drawn.querySelectorAll("polygon").length;
found.dashes = [...drawn.querySelectorAll("polyline")].map((node) => node.getAttribute("stroke-dasharray"));
"""


def test_the_pointer_and_the_arrow_keys_read_values(tmp_path):
    found = probed(made.write(tmp_path / "sweep"), tmp_path, POINTER)
    assert found["before"] is None
    assert found["pointed"] == ["epsilon 1", "round 10", "test error (%) 16 (11.6 to 18.4)"]
    assert found["inside"]
    assert found["left"] == ["epsilon 1", "round 5", "test error (%) 32 (23.2 to 36.8)"]
    assert found["down"][:2] == ["epsilon 3", "round 5"]
    assert found["escaped"] is None
    assert found["order"] == [0, 0, 0, 0]
    assert found["legend"] == ["epsilon 1", "epsilon 3", "band: 20 to 80 % of seeds"]
    assert (found["bands"], found["dashes"]) == (2, ["none", "7 3"])


def test_a_hostile_name_is_drawn_as_text(tmp_path):
    evil = "</script><!--<script><b>\"'&\u2028"
    panels = [panel | {"title": evil, "x_label": evil} for panel in made.ARTEFACT["panels"]]
    series = [{"panel": 0, "name": evil, "x": [1, 10], "y": [0.5, 0.2]}]
    source = made.write(tmp_path / "fig9", None, made.ARTEFACT | {"panels": panels, "series": series})
    probe = """
    found.figures = document.querySelectorAll("figure .plot svg").length;
    found.bold = document.querySelectorAll("figure b").length;
    found.names = [...document.querySelectorAll("#fig9-panel-1 .legend li")].map((node) => node.textContent.trim());
    found.labels = [...document.querySelectorAll("#fig9-panel-1 .plot text")].map((node) => node.textContent);
    """
    found = probed(source, tmp_path, probe)
    assert found["figures"] > 2
    assert found["bold"] == 0
    assert evil.strip() in found["names"]
    assert evil in found["labels"]


# an axis holds its values, its numbers are in order and can be told apart, and a constant looks like one
AXES = """
const wrong = ({ values, log }) => {
  const { ticks, share } = axis(values, log);
  const held = [...values, ...ticks].every((value) => share(value) >= -1e-6 && share(value) <= 1 + 1e-6);
  const told = new Set(ticks.map(number)).size === ticks.length;
  const rising = ticks.every((tick, n) => n === 0 || tick > ticks[n - 1]);
  return !(held && told && rising && ticks.length >= 2 && ticks.length <= 8);
};
found.wrong = CASES.filter(wrong);
found.constant = [true, false].map((log) => axis([3.41e-4, 3.42e-4], log).share(3.42e-4)
  - axis([3.41e-4, 3.42e-4], log).share(3.41e-4));
found.numbers = [0, 0.3, 12345, 20000, 1e5, 2.5e-7, -3].map(number);
"""


def test_an_axis_holds_its_values_and_its_numbers_can_be_told_apart(tmp_path):
    draw = random.Random(0)
    cases = []
    for _ in range(500):
        center, width = 10 ** draw.uniform(-9, 9), 10 ** draw.uniform(-6, 3)
        values = [center * (1 + width * draw.random()) for _ in range(draw.randint(1, 5))]
        cases += [{"values": values, "log": True}, {"values": values, "log": False}]
        cases.append({"values": [value - center * draw.choice([0, 1, 2]) for value in values], "log": False})
    found = probed(made.write(tmp_path / "sweep"), tmp_path, AXES.replace("CASES", json.dumps(cases)))
    assert found["wrong"] == []
    assert max(found["constant"]) < 0.35
    assert found["numbers"] == ["0", "0.3", "12345", "20000", "1e5", "2.5e-7", "-3"]
