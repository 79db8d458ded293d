"""The door's log: who came, at once; how often, once a period; and no more lines than a disk can hold."""

from __future__ import annotations

import json

import pytest

from tacit.federation.access_log import (
    KINDS,
    KINDS_OF_PEER,
    LONGEST_PATH,
    OTHERS,
    PERIOD,
    AccessLog,
    neighbourhood,
    printable,
)

POLL = b"/v1/fleet/pull-messages"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def kept():
    lines, clock = [], Clock()
    return AccessLog(lines.append, clock), lines, clock


def test_the_first_of_a_kind_is_written_at_once_with_peer_path_status_and_bytes(kept):
    log, lines, _ = kept
    log.note("connected", "192.0.2.7")
    log.note("request", "192.0.2.7", POLL, 200, 12, 34)
    first, second = map(json.loads, lines)
    assert first.keys() == {"at", "event", "peer", "times"}
    assert first["event"] == "connected"
    assert second["at"].endswith("+00:00")
    del second["at"]
    wanted = {"event": "request", "peer": "192.0.2.7", "times": 1, "path": POLL.decode(), "status": 200}
    assert second == wanted | {"received": 12, "sent": 34}


def test_polls_of_days_are_a_line_a_period_with_their_number(kept):
    log, lines, clock = kept
    for second in range(0, int(3 * PERIOD) + 30, 3):
        clock.now = float(second)
        log.note("request", "192.0.2.7", POLL, 200, 12)
        log.tick()
    assert len(lines) == 4
    assert json.loads(lines[1])["times"] == PERIOD / 3
    assert json.loads(lines[1])["received"] == 12 * PERIOD / 3


def test_a_peer_that_comes_back_after_a_period_is_news_again(kept):
    log, lines, clock = kept
    log.note("connected", "192.0.2.7")
    clock.now = PERIOD + 1
    log.tick()
    assert len(lines) == 1  # nothing more came
    log.note("connected", "192.0.2.7")
    assert len(lines) == 2


def test_what_is_counted_and_not_yet_written_is_written_at_the_end(kept):
    log, lines, _ = kept
    for _ in range(5):
        log.note("turned away", "192.0.2.7")
    log.flush()
    log.flush()
    assert [json.loads(line)["times"] for line in lines] == [1, 4]


def test_whoever_asks_for_a_new_path_each_time_writes_few_lines_and_hides_nobody(kept):
    log, lines, clock = kept
    for n in range(10_000):
        log.note("request", "192.0.2.7", f"/{n}".encode(), 404 + n % 10)
    assert len(lines) == KINDS_OF_PEER + 1
    assert json.loads(lines[-1])["path"] == ""
    log.note("request", "192.0.2.8", POLL, 200)
    assert json.loads(lines[-1])["peer"] == "192.0.2.8"
    log.flush()
    assert sum(json.loads(line)["times"] for line in lines) == 10_001
    clock.now = PERIOD + 1
    log.tick()
    assert not log._counts
    assert not log._of_peer


def test_peers_without_end_are_counted_together_and_take_no_memory(kept):
    log, lines, _ = kept
    for n in range(2 * KINDS):
        log.note("request", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", b"/x", 400 + n % 50)
    assert len(lines) == KINDS + 1
    assert json.loads(lines[-1])["peer"] == OTHERS
    assert len(log._counts) == KINDS + 1
    assert len(log._of_peer) <= KINDS + 1


def test_the_addresses_of_one_ipv6_subscriber_are_one_peer(kept):
    log, lines, _ = kept
    for n in range(1000):
        log.note("connected", f"2001:db8:1:2::{n:x}")
    assert len(lines) == 1
    assert json.loads(lines[0])["peer"] == "2001:db8:1:2::/64"
    assert neighbourhood("::ffff:192.0.2.7") == neighbourhood("192.0.2.7") == "192.0.2.7"
    assert neighbourhood("fe80::1%eth0") == "fe80::/64"
    assert neighbourhood("a name") == "a name"


@pytest.mark.parametrize("path", [
    b'/x\n{"event": "request", "peer": "10.0.0.1"}', b"/\x1b[2J\x07", b"/" + b"a" * 100_000, b"/\xff\xe2\x80\xae",
    b'/"\\',
])  # fmt: skip
def test_no_path_makes_a_second_line_moves_a_cursor_or_fills_a_disk(kept, path):
    log, lines, _ = kept
    log.note("request", "192.0.2.7", path, 404)
    (line,) = lines
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 400
    assert json.loads(line)["peer"] == "192.0.2.7"
    assert len(printable(path)) <= LONGEST_PATH + 3
