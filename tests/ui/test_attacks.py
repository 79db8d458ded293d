"""Attacks on the live page over real HTTP: foreign pages and names, paths, links, and files that are no records."""

import asyncio
import http.client
import json
import os
import re
import socket
import stat
import threading
import time
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("uvicorn")

import uvicorn
from uvicorn.server import ServerState

from tacit.errors import InputError, MissingDependency, RunDirectoryError
from tacit.run.directory import RunDirectory
from tacit.ui import serve
from tacit.ui.app import FILES, App
from tacit.ui.guard import Guard, is_loopback
from tacit.ui.place import Place, Unreadable, shown
from tacit.ui.views import Views
from tests.ui.serving import SPEC, serving, write_run

SECRET = "the-secret-of-another-folder"
QUESTIONS = ["/api/list", "/api/item", "/api/more", "/api/budgets", "/api/compare"]
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    base = tmp_path_factory.mktemp("hostile")
    root, outside = base / "root", base / "outside"
    outside.mkdir()
    write_run(outside / "run", spec=SPEC.replace("objt", SECRET))
    (outside / "secret").write_text(SECRET)
    write_run(root / "good")
    write_run(root / "ended", test_error=0.25, epsilon=1.0, dp_delta=1e-6, guarantee="fine", algorithm="objt")
    write_run(root / MARKUP, spec=SPEC.replace("objt", MARKUP))
    (root / "linked").symlink_to(outside / "run")
    write_run(root / "borrowed")
    (root / "borrowed" / "result.json").symlink_to(outside / "secret")
    (root / "borrowed" / "stop").symlink_to(outside / "made")
    for name in ("spec.toml", "result.json", "rounds.jsonl", "audit.json"):
        folder = write_run(root / f"pipe-{name}")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    (write_run(root / "deep") / "result.json").write_text("[" * 100_000)
    (write_run(root / "deep-rows") / "rounds.jsonl").write_text("[" * 60_000 + '\n{"t": 3, "test_error": 0.5}\n')
    with (write_run(root / "huge") / "result.json").open(
        "r+" if (root / "huge" / "result.json").exists() else "w"
    ) as file:
        file.truncate(1 << 40)
    (write_run(root / "odd") / "rounds.jsonl").write_text(
        '{"t": "1"}\nnot json\n{"t": 1, "test_error": 1e999}\n{"t": 2, "test_error": "x"}\n[1]\n'
        '{"t": 3, "test_error": 0.5}\n{"t": 1' + "0" * 400 + "}\n"
        '{"t": 4, "test_error": 1' + "0" * 400 + '}\n{"t": 5, "test'
    )
    write_run(root / os.fsdecode(b"\xff\xfe"))
    write_run(root / "right\u202eto-left\n")
    return root


@pytest.fixture(scope="module")
def server(place):
    with serving(place) as found:
        yield found


@pytest.mark.parametrize("path", [*QUESTIONS, "/api/stop", "/api/none", "/none"])
@pytest.mark.parametrize("token", ["", "wrong", "x" * 43], ids=["none", "wrong", "as long"])
def test_nothing_is_told_without_the_token(server, path, token):
    answer = server.ask(path, [("X-Tacit-Token", token)])
    assert answer.status == 401
    assert set(answer.told) == {"error"}


def test_the_token_is_not_taken_from_the_address_nor_twice(server):
    assert server.ask("/api/list", [("X-Tacit-Token", "")], token=server.token).status == 401
    both = [("X-Tacit-Token", server.token), ("X-Tacit-Token", "other")]
    assert server.ask("/api/list", both).status == 401
    assert server.ask("/api/list").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "evil@127.0.0.1",
        "127.0.0.1/evil",
        "",
        "127.0.0.1:port",
        "0.0.0.0:{port}",
        "10.1.2.3",
        "localhost.:1",
        "[::1",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/list"])
def test_a_name_that_was_bound_to_this_machine_is_refused(server, host, path):
    answer = server.ask(path, [("Host", host.format(port=server.port))])
    assert answer.status in (400, 421)


def test_two_hosts_are_refused(server):
    assert server.ask("/api/list", [("Host", "evil.example"), ("Host", "127.0.0.1")]).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9999", "[::1]:80", "LOCALHOST:1"])
def test_a_tunnel_with_another_port_is_served(server, host):
    assert server.ask("/api/list", [("Host", host)]).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "http://localhost"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_another_page_is_refused_even_with_the_token(server, origin, method):
    path = "/api/stop" if method == "POST" else "/api/list"
    answer = server.ask(path, [("Origin", origin)], method, id=server.id_of("good"))
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_another_site_asks_is_refused(server, site):
    assert server.ask("/api/list", [("Sec-Fetch-Site", site)]).status == 403
    assert server.ask("/api/list", [("Sec-Fetch-Site", "same-origin")]).status == 200


@pytest.mark.parametrize("path", [*FILES, *QUESTIONS, "/none"])
def test_every_answer_tells_the_browser_to_allow_nothing_else(server, path):
    headers = server.ask(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith(("access-control", "set-cookie", "server")) for name in headers)


def test_the_page_holds_no_script_and_no_style_of_its_own(server):
    page = server.ask("/").body.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\bstyle=|<style|\bon\w+=|https?://", page) == []


@pytest.mark.parametrize(
    "path",
    [
        "/../outside/secret",
        "/%2e%2e/outside/secret",
        "/..%2foutside%2fsecret",
        "//etc/passwd",
        "/ui.css/../../outside/secret",
        "/ui.css%00",
        "/good/spec.toml",
        "/..\\outside\\secret",
        "/static/../../secret",
        "/%252e%252e/outside/secret",
        "/ui.py",
    ],
)
def test_no_path_leads_to_a_file(server, path):
    answer = server.ask(path)
    assert answer.status in (400, 404)
    assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("path", [*QUESTIONS[1:], "/api/stop"])
@pytest.mark.parametrize(
    "name", ["../outside/run", "good", "/etc", "..", "", "\0", "%2e%2e", "good/../../outside/run", "a" * 3000]
)
def test_no_id_is_a_path(server, path, name):
    answer = server.ask(path, method="POST" if path == "/api/stop" else "GET", id=name)
    assert answer.status == 404
    assert SECRET.encode() not in answer.body


def test_a_question_that_is_too_long_is_refused(server):
    assert server.ask("/api/list", words="x" * 5000).status == 414


def test_links_are_neither_listed_nor_read(server):
    listed = server.ask("/api/list").told["rows"]
    assert "linked" not in {row["name"] for row in listed}
    told = b"".join(server.ask(path, id=server.id_of("borrowed")).body for path in QUESTIONS[1:])
    assert SECRET.encode() not in told
    assert SECRET not in json.dumps(listed)


def test_a_folder_that_becomes_a_link_after_it_was_listed_is_not_followed(server, place):
    victim = write_run(place / "swapped")
    name = server.id_of("swapped")
    victim.rename(place.parent / "aside")
    victim.symlink_to(place.parent / "outside" / "run")
    try:
        for path in QUESTIONS[1:]:
            assert SECRET.encode() not in server.ask(path, id=name).body
    finally:
        victim.unlink()


@pytest.mark.parametrize(
    "name",
    ["pipe-spec.toml", "pipe-result.json", "pipe-rounds.jsonl", "pipe-audit.json", "deep", "huge", "odd", "deep-rows"],
)
def test_files_that_cannot_be_read_are_said_to_be_so_and_nothing_waits_for_them(server, name):
    rows = {row["name"]: row for row in server.ask("/api/list").told["rows"]}
    if name == "pipe-spec.toml":
        assert name not in rows  # no spec, no run
        return
    for path in QUESTIONS[1:]:
        assert server.ask(path, id=rows[name]["id"]).status == 200
    assert rows[name]["state"] == ("unreadable" if name in ("deep", "huge") else "stopped")


def test_lines_that_are_no_rounds_are_left_out(server):
    told = server.ask("/api/item", id=server.id_of("odd")).told
    (chart,) = told["charts"]
    assert (chart["lines"][0]["x"], chart["lines"][0]["y"]) == ([3.0], [50.0])


def test_names_are_told_as_text_that_can_be_shown(server):
    names = {row["name"] for row in server.ask("/api/list").told["rows"]}
    assert {MARKUP, "\\xff\\xfe", "right\\u202eto-left\\n"} <= names


def test_no_stop_is_written_without_the_token_or_where_nothing_runs(server, place):
    good = server.id_of("good")
    for answer in (
        server.ask("/api/stop", [("X-Tacit-Token", "")], "POST", id=good),
        server.ask("/api/stop", id=good),  # a GET
        server.ask("/api/stop", method="POST", id=good),
        server.ask("/api/stop", method="POST", id=server.id_of("borrowed")),
    ):
        assert answer.status in (401, 404, 409)
    assert not (place / "good" / "stop").exists()
    assert not (place.parent / "outside" / "made").exists()


def test_a_link_named_stop_leads_the_request_nowhere(place):
    found = Place(place)
    with pytest.raises(Unreadable, match="nothing is stopped: stop in the run's folder is no plain file"):
        found.ask_to_stop(("borrowed",))
    assert not (place.parent / "outside" / "made").exists()
    found.close()


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("spec.toml")])
def test_what_stands_in_the_way_of_a_request_is_told(server, place, make, request):
    folder = write_run(place / f"blocked{request.node.name[-2]}")
    make(folder / "stop")
    name = server.id_of(folder.name)
    with RunDirectory(folder).alone():
        answer = server.ask("/api/stop", method="POST", id=name)
    assert answer.status == 409
    assert "remove it and try again" in answer.told["error"]


def test_a_request_that_was_there_is_renewed_or_said_to_be_in_the_way(tmp_path, monkeypatch):
    stop = write_run(tmp_path / "run") / "stop"
    stop.touch()
    os.utime(stop, (1, 1))
    found = Place(tmp_path)
    found.ask_to_stop(("run",))
    assert stop.stat().st_mtime > 1

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    with pytest.raises(Unreadable, match="cannot be renewed"):
        found.ask_to_stop(("run",))
    found.close()


def test_a_run_that_goes_on_is_stopped_with_the_token_alone(server, place):
    folder = write_run(place / "going")
    name = server.id_of("going")
    with RunDirectory(folder).alone():
        assert server.ask("/api/stop", [("X-Tacit-Token", "")], "POST", id=name).status == 401
        assert server.ask("/api/stop", [("Origin", "http://evil.example")], "POST", id=name).status == 403
        assert server.ask("/api/stop", [("Sec-Fetch-Site", "cross-site")], "POST", id=name).status == 403
        for method in ("GET", "PUT", "HEAD", "DELETE"):
            assert server.ask("/api/stop", method=method, id=name).status == 404
        assert not (folder / "stop").exists()
        assert server.ask("/api/stop", method="POST", id=name).told == {"state": "stopping"}
        assert (folder / "stop").exists()


def test_a_place_reads_no_link_no_pipe_and_no_folder(place):
    found = Place(place)
    for parts, name in ((("borrowed",), "result.json"), (("pipe-result.json",), "result.json"), ((), "good")):
        assert found.stamp(parts, name) is None
        with pytest.raises(Unreadable):
            found.read(parts, name)
        with pytest.raises(Unreadable):
            found.tail(parts, name, 10)
    with pytest.raises(Unreadable), found.folder(("linked",)):
        pass
    found.close()


def test_all_that_is_written_is_an_empty_file_of_the_owner(tmp_path):
    write_run(tmp_path / "run")
    found = Place(tmp_path)
    found.ask_to_stop(("run",))
    found.ask_to_stop(("run",))  # again: it was asked before
    found.close()
    made = (tmp_path / "run" / "stop").stat()
    assert (stat.S_IMODE(made.st_mode), made.st_size) == (0o600, 0)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc/passwd", "spec.toml\0", "\0"])
def test_a_place_opens_no_name_that_is_a_path(place, name):
    found = Place(place)
    with pytest.raises(Unreadable):
        found.read(("good",), name)
    with pytest.raises(Unreadable):
        found.read((name,), "spec.toml")
    found.close()


def test_a_place_that_is_no_directory_is_refused_in_a_sentence(tmp_path):
    for path in (tmp_path / "none", tmp_path / "\0"):
        with pytest.raises(RunDirectoryError, match="give a directory of runs"):
            Place(path)


def test_an_address_that_others_reach_warns_and_knows_its_hosts():
    assert serve.HOST == "127.0.0.1"
    assert serve.warning("127.0.0.1") == ""
    assert "unencrypted" in serve.warning("0.0.0.0")
    assert not is_loopback("192.168.1.2")
    guard = Guard("0.0.0.0", ["runs.example"])

    def status(host, token=guard.token):
        refused = guard.refused([(b"host", host), (b"x-tacit-token", token.encode())], True)
        return 200 if refused is None else refused[0]

    assert [status(host) for host in (b"192.168.1.2:80", b"runs.example", b"localhost", b"evil.example")] == [
        200,
        200,
        200,
        421,
    ]
    assert status(b"192.168.1.2:80", "") == 401
    own = Guard("192.168.1.2")
    assert own.refused([(b"host", b"192.168.1.3")], False)[0] == 421
    assert own.refused([(b"host", b"192.168.1.2:8000")], False) is None


def test_tokens_are_new_each_time_and_long():
    tokens = {Guard("127.0.0.1").token for _ in range(10)}
    assert len(tokens) == 10
    assert min(map(len, tokens)) >= 43


def test_no_error_names_a_path_of_this_machine(server, place):
    for row in server.ask("/api/list").told["rows"]:
        for path in QUESTIONS[1:]:
            assert str(place.parent) not in server.ask(path, id=row["id"]).body.decode()
            assert "/tmp/" not in server.ask(path, id=row["id"]).body.decode()


def test_shown_spells_out_what_cannot_be_printed():
    assert shown("a\u202eb\x1b[0m\u2028") == "a\\u202eb\\x1b[0m\\u2028"
    assert shown("é 日本") == "é 日本"


def test_an_error_that_nobody_thought_of_tells_the_page_nothing_and_the_terminal_no_words(
    tmp_path, caplog, monkeypatch
):
    headers = [(b"host", b"127.0.0.1"), (b"x-tacit-token", b"t")]
    asked = {"type": "http", "method": "GET", "path": "/api/list", "query_string": b"", "headers": headers}
    sent = []

    async def send(event):
        sent.append(event)

    monkeypatch.setattr(Views, "listing", lambda *_: {}["\x1b[31m" + SECRET])
    app = App(Views(Place(tmp_path)), Guard("127.0.0.1", token="t"))
    asyncio.run(app(asked, None, send))
    assert sent[0]["status"] == 500
    assert SECRET.encode() not in sent[1]["body"]
    assert "KeyError" in caplog.text
    assert SECRET not in caplog.text


def test_what_is_missing_or_taken_is_said_in_a_sentence(tmp_path, monkeypatch):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InputError, match="give another --host or --port"),
    ):
        serve.serve(tmp_path, print, port=taken.getsockname()[1])
    with pytest.raises(InputError, match="give another --host or --port"):
        serve.serve(tmp_path, print, port=99999)
    monkeypatch.setattr(serve, "uvicorn", None)
    with pytest.raises(MissingDependency, match="the extra 'ui'"):
        serve.serve(tmp_path, print)


def test_the_browser_is_opened_without_the_token_in_its_arguments(tmp_path):
    told, browser = tmp_path / "told", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {told}.new; mv {told}.new {told}; exec sleep 1 > /dev/null 2>&1\n')
    browser.chmod(0o700)
    write_run(tmp_path / "root" / "run")
    with serving(tmp_path / "root", "--open", BROWSER=f"{browser} %s &", TMPDIR=str(tmp_path)) as found:
        end = time.monotonic() + 10
        while not told.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        given = told.read_text().strip()
        assert given.startswith("file:///")
        assert found.token not in given
        page = Path(unquote(urlsplit(given).path))
        assert (stat.S_IMODE(page.stat().st_mode), stat.S_IMODE(page.parent.stat().st_mode)) == (0o600, 0o700)
        (led,) = re.findall('content="0;url=([^"]*)"', page.read_text())
        assert unescape(led) == found.link
    assert not page.parent.exists()  # though the process was ended by SIGTERM


def test_budgets_that_take_long_keep_no_other_question_waiting(tmp_path, monkeypatch):
    headers = [(b"host", b"127.0.0.1"), (b"x-tacit-token", b"t")]
    freed = threading.Event()
    monkeypatch.setattr(Views, "budgets", lambda *_: {"waited": freed.wait(10)})
    app = App(Views(Place(tmp_path)), Guard("127.0.0.1", token="t"))

    async def ask(path):
        sent = []

        async def send(event):
            sent.append(event)

        await app({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}, None, send)
        return json.loads(sent[1]["body"])

    async def asked():
        slow = [asyncio.create_task(ask("/api/budgets")) for _ in range(8)]
        await asyncio.sleep(0)
        listed = await asyncio.wait_for(ask("/api/list"), 5)
        freed.set()
        return listed, await asyncio.gather(*slow)

    listed, slow = asyncio.run(asked())
    assert listed["rows"] == []
    assert slow == [{"waited": True}] * 8


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_connections_without_the_token_do_not_keep_the_owner_out(server, said):
    with ExitStack() as opened:
        for _ in range(2 * serve.CONNECTIONS + 5):
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port))).sendall(said)
        for _ in range(5):
            assert server.ask("/api/list").status == 200


def test_a_connection_of_the_owner_stays_while_strangers_come(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with ExitStack() as opened:
        opened.callback(connection.close)
        connection.connect()
        kept = connection.sock
        for _ in range(2):
            connection.request("GET", "/api/list", headers={"X-Tacit-Token": server.token})
            assert connection.getresponse().read()
            for _ in range(2 * serve.CONNECTIONS):
                opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        assert kept is connection.sock  # it was not opened again


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_connection_without_a_whole_request_is_closed(tmp_path, monkeypatch, said):
    monkeypatch.setattr(serve, "PATIENCE", 0.2)
    guard = Guard("127.0.0.1", token="t")
    config = uvicorn.Config(App(Views(Place(tmp_path)), guard), log_level="warning", ws="none", lifespan="off")
    protocol = serve.patient(serve.H11Protocol, guard, 8)

    async def ended(words, seconds):
        listening = await asyncio.get_running_loop().create_server(
            lambda: protocol(config, ServerState(), {}), "127.0.0.1", 0
        )
        async with listening:
            heard, spoken = await asyncio.open_connection(*listening.sockets[0].getsockname())
            spoken.write(words)
            try:
                await asyncio.wait_for(heard.read(), seconds)
            except ConnectionResetError:
                return True
            except TimeoutError:
                return False
            finally:
                spoken.close()
        return True

    assert asyncio.run(ended(said, seconds=20))
    assert not asyncio.run(ended(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", seconds=1))  # whole: an answer comes
