"""The page in a real browser: no error on the console, toggles that do what they say, nothing wider than a phone."""

import json
import re
import shutil
import subprocess

import pytest

from tacit.report import artefacts
from tests.report import made

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=2000",
)  # fmt: skip

# clicks every button through all of its values, and notes what is visible
PROBE = """<script>
const seen = (selector) => [...document.querySelectorAll(selector)].some((node) => node.getClientRects().length > 0);
const press = (name) => document.querySelector(`button[data-sets="${name}"]`).click();
const background = () => getComputedStyle(document.body).backgroundColor;
const error = "#fig9-test-error ", noise = "#fig9-noise-gradient-units ";
document.querySelectorAll("details").forEach((block) => { block.open = true; });
const scales = () => [error, noise].flatMap((chart) => [seen(chart + ".linear svg"), seen(chart + ".log svg")]);
const found = {};
found.start = scales();
press("y");
found.linear = scales();
press("y");
found.log = scales();
found.last = [seen("td .last"), seen("td .averaged"), seen("div.last"), seen("div.averaged")];
press("iterate");
found.averaged = [seen("td .last"), seen("td .averaged"), seen("div.last"), seen("div.averaged")];
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
const note = document.createElement("pre");
note.id = "found";
note.textContent = JSON.stringify(found);
document.body.append(note);
</script>"""


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_toggles_work_on_a_narrow_screen_without_an_error(tmp_path):
    source = made.write_artefact(tmp_path / "fig9")
    text = artefacts.write([source], tmp_path / "page.html").read_text()
    (tmp_path / "inner.html").write_text(text.replace("</body>", f"{PROBE}</body>"))
    # a window of chromium is at least 500 pixels wide; a frame is as narrow as a phone
    (tmp_path / "phone.html").write_text(
        '<body><iframe src="inner.html" width="360" height="800"></iframe><script>addEventListener("load", () => '
        '{ document.body.append(document.querySelector("iframe").contentDocument.getElementById("found")); });'
        "</script></body>"
    )
    done = subprocess.run(
        [CHROMIUM, *FLAGS, "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'chromium'}", "--dump-dom",
         f"file://{tmp_path / 'phone.html'}"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert match, done.stdout[-500:]
    found = json.loads(match[1])
    assert found["start"] == [True, False, False, True]
    assert found["linear"] == [True, False, True, False]
    assert found["log"] == [False, True, False, True]
    assert found["last"] == [True, False, True, False]
    assert found["averaged"] == [False, True, False, True]
    assert found["label"] == "iterate: averaged"
    assert found["themes"] == ["rgb(21, 24, 28)", "rgb(255, 255, 255)"]
    assert (found["printed"], found["folded"]) == (0, 0)
    assert found["width"][0] <= found["width"][1] <= 360
