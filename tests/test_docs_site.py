"""The documentation site: it builds without a warning, loads nothing from elsewhere, and no link of it is dead."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import tacit
from tests.docs_blocks import ROOT

zensical = pytest.importorskip("zensical", reason="the site needs the extra docs")
LOADS = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "embed": "src",
    "object": "data",
}
LAZY = ("mermaid", "glightbox", "pyodide", "termynal")  # what the theme would fetch from a CDN where a page has it


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors it has."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors, self.classes = [], [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        self.anchors.add(own.get("id"))
        self.classes |= set((own.get("class") or "").split())
        if tag in LOADS and own.get(LOADS[tag]) and own.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(own[LOADS[tag]])
        if tag == "a" and own.get("href"):
            self.links.append(own["href"])


def foreign(page):
    """What a page loads that the site does not have."""
    urls = [urlsplit(url) for url in page.loads]
    return [url.geturl() for url in urls if url.netloc or url.scheme not in ("", "data")]


def test_a_page_that_loads_from_elsewhere_is_found():
    own = '<script src="a.js"></script><img src="data:image/png;base64,"><a href="https://flower.ai">x</a>'
    assert foreign(Page(own)) == []
    font = '<link rel="stylesheet" href="https://fonts.googleapis.com/css"><script src="//cdn.example/x.js"></script>'
    assert len(foreign(Page(font))) == 2


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in a copy: nothing is written into the checkout."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    data = shutil.ignore_patterns("_mnist", "_heart", "_axes", "*.so", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=data)
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_no_page_and_no_style_loads_anything_from_another_host(site, pages):
    assert len(pages) > 40
    for path, page in pages.items():
        assert foreign(page) == [], path
        assert page.classes.isdisjoint(LAZY), path
    for style in site.rglob("*.css"):
        fetched = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)", style.read_text(encoding="utf-8"))
        assert fetched == [], style


def test_whatever_a_page_loads_is_there(pages):
    for path, page in pages.items():
        local = [unquote(urlsplit(url).path) for url in page.loads if not urlsplit(url).scheme]
        assert path.name == "404.html" or [url for url in local if not (path.parent / url).is_file()] == [], path


def test_every_link_within_the_site_leads_somewhere(site, pages):
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # served for any address, so its links are absolute
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].anchors if target in pages else None
            if not target.exists() or (url.fragment and known is not None and unquote(url.fragment) not in known):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_every_page_of_docs_is_in_the_navigation_or_in_the_index_of_methods():
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"([\w/-]+\.md)$", told, re.MULTILINE))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in there - named if not page.startswith("methods/")} == set()
    assert named <= there


def test_the_reference_has_every_promised_name(site):
    text = (site / "api.html").read_text(encoding="utf-8")
    assert [name for name in tacit.__all__ if f'id="tacit.{name}"' not in text and name != "__version__"] == []


def test_no_mark_of_a_block_is_shown(pages):
    for path in pages:
        assert "&lt;!-- " not in Path(path).read_text(encoding="utf-8")
