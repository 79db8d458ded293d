"""Messages pass through bytes unchanged, and nothing that is not a message passes at all."""

import json
import socket
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import Unfit
from tacit.federation import wire
from tacit.federation.messages import (
    LONGEST_NAME,
    MOST_PARAMETERS,
    REPLIES,
    REQUESTS,
    VERSION,
    Ask,
    Close,
    Closed,
    Hello,
    Introduction,
    Join,
    Joined,
    Meet,
    Met,
    Receipt,
    Refusal,
    Signed,
    SiteAnswer,
    Unjoined,
    read,
    written,
)

NAMES = st.text(st.characters(codec="utf-8").filter(str.isprintable), min_size=1, max_size=12)
HASHES = st.integers(0, 2**256 - 1).map("{:064x}".format)
ROUNDS = st.integers(1, 2**53 - 1)
COUNTS = st.dictionaries(NAMES, ROUNDS, max_size=4).map(lambda found: tuple(found.items()))
AGENTS = st.lists(NAMES, unique=True, max_size=4).map(tuple)
ATTEMPTS = st.integers(0, 2**53 - 1)


def arrays(*shape):
    n = int(np.prod(shape))
    return st.lists(st.floats(), min_size=n, max_size=n).map(lambda some: np.array(some, float).reshape(shape))


PARAMETERS = st.dictionaries(NAMES, arrays(2, 3) | arrays(1, 2, 2) | arrays(0) | arrays(), max_size=4)
WORDS = st.integers(0, 2**64 - 1)
KEYS = st.builds(Signed, NAMES, HASHES, st.tuples(HASHES, HASHES).map("".join))
RECEIPTS = st.builds(Receipt, NAMES, HASHES, ROUNDS, HASHES, HASHES)
SHOWN = st.lists(RECEIPTS, unique_by=lambda one: one.agent, max_size=4).map(tuple)
SIGNED = st.lists(KEYS, unique_by=lambda one: one.agent, max_size=4).map(tuple)


@st.composite
def answers(draw):
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    half = len(names) // 2
    given = tuple(replace(draw(RECEIPTS), agent=who) for who in names[:half])
    words = np.array(draw(st.lists(WORDS, min_size=5 * half, max_size=5 * half)), np.uint64).reshape(half, 5)
    return SiteAnswer(draw(NAMES), draw(ROUNDS), draw(ATTEMPTS), given, tuple(names[half:]), words)


MESSAGES = st.one_of(
    st.just(Hello()),
    st.builds(Introduction, NAMES, COUNTS, st.text(st.characters(codec="utf-8"))),
    st.builds(Join, NAMES, st.text(st.characters(codec="utf-8")), HASHES, COUNTS, SHOWN),
    st.builds(Joined, NAMES, AGENTS, SIGNED),
    st.builds(Meet, NAMES, HASHES, SIGNED),
    st.builds(Met, NAMES),
    st.builds(Close, NAMES, HASHES),
    st.builds(Closed, NAMES),
    st.builds(Ask, NAMES, HASHES, ROUNDS, ATTEMPTS, AGENTS, AGENTS, PARAMETERS),
    answers(),
    st.builds(Unjoined, NAMES),
    st.builds(Refusal, NAMES | st.just("")),
)  # fmt: skip
ALL = (*REQUESTS, *REPLIES)


def same(a, b):
    assert type(a) is type(b)
    for name, value in vars(a).items():
        other = getattr(b, name)
        if isinstance(value, dict):
            assert list(value) == list(other)
            for part, array in value.items():
                same_array(array, other[part])
        elif isinstance(value, np.ndarray):
            same_array(value, other)
        else:
            assert value == other


def same_array(a, b):
    assert a.tobytes() == b.tobytes()
    assert (a.shape, a.dtype) == (b.shape, b.dtype)


@settings(max_examples=200, deadline=None)
@given(MESSAGES)
def test_every_message_passes_through_json_and_bytes_unchanged(message):
    header, body = written(message)
    same(read(header, body, ALL), message)  # as it is, without a wire
    same(read(wire.parsed(json.dumps(header)), body, ALL), message)


@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_a_request_is_not_taken_for_a_reply_nor_the_other_way_round(message):
    header, body = written(message)
    wrong = REPLIES if type(message) in REQUESTS else REQUESTS
    with pytest.raises(Unfit):
        read(header, body, wrong)


ASK = Ask("r", "0" * 64, 3, 0, ("a",), (), {"point": np.zeros((1, 2, 3))})
THINGS = [None, True, 0, -1, 1.5, 2**53, 10**30, "", "x" * (LONGEST_NAME + 1), "\ud800", "\x1b[2J", [], {}, [[]],
          [["a"]], [["a", 0]], [["a", 1], ["a", 1]], {"a": -1}, {"a": 1.0}, {"": 1}, {"a": True}, "NaN", "0" * 63,
          "G" * 64]  # fmt: skip


def test_a_field_of_another_type_is_refused_whatever_it_is():
    for message in (ASK, Join("r", "", "0" * 64, (("a", 1),)), Unjoined("r")):
        header, body = written(message)
        for field in [name for name in header if name not in ("kind", "arrays", "version")]:
            for thing in THINGS:
                text_is_fine = field == "spec" and isinstance(thing, str) and thing != "\ud800"
                if text_is_fine or fine(field, thing):
                    continue
                if field == "agents" and thing == []:
                    continue  # an empty list is a list; a run without agents is refused by the site
                with pytest.raises(Unfit):
                    read({**header, field: thing}, body, ALL)


RECEIPT = Receipt("a", "0" * 64, 1, "1" * 64, "2" * 64)
SHOWS = {"agent": "a", "first": "0" * 64, "entries": 1, "head": "1" * 64, "tag": "2" * 64}
SIGN = Signed("a", "0" * 64, "1" * 128)
SUMS = [
    Joined("r", ("a",), (SIGN,)), Meet("r", "0" * 64, (SIGN,)), Met("r"),
    replace(ASK, peers=("a", "b")),
    SiteAnswer("r", 3, 1, (RECEIPT,), ("b",), np.zeros((1, 6), np.uint64)), Close("r", "0" * 64), Closed("r"),
]  # fmt: skip
ROWS = [
    [{"agent": "a"}], [{"agent": "a", "key": "0" * 64, "signature": "1" * 128, "more": 1}], [None],
    [SHOWS | {"head": "1" * 63}], [SHOWS | {"agent": ""}], [SHOWS | {"agent": 1}], [SHOWS] * 2, SHOWS,
    [SHOWS | {"head": b"1" * 64}], [SHOWS | {"tag": "2" * 65}], [SHOWS | {"tag": "G" * 64}], [SHOWS | {"first": ""}],
    [SHOWS | {"entries": 0}], [SHOWS | {"entries": 1.0}], [SHOWS | {"entries": True}], [SHOWS | {"entries": 2**53}],
    [SHOWS | {"more": 1}], [{"agent": "a", "head": "1" * 64}],
    [{"agent": "a", "key": "0" * 64, "signature": "1" * 127}],
    [{"agent": "a", "key": "0" * 62, "signature": "1" * 128}],
    [{"agent": "a", "key": "A" * 64, "signature": "1" * 128}], [{"agent": "a", "key": "0" * 64, "signature": None}],
    [{"agent": "a", "key": "0" * 64, "signature": "1" * 128}] * 2, [["a", "0" * 64, "1" * 128]],
    {"agent": "a", "key": "0" * 64, "signature": "1" * 128}, ["a", "a"], [""], ["a", 3], ["a", None], "a", "ab",
]  # fmt: skip


def fine(field: str, thing: object) -> bool:
    """An empty list is a list, 0 the first attempt; the name of a run is any text that can be printed, or none."""
    if field in ("joined", "signed", "asked", "peers", "given", "refused", "receipts"):
        return thing == []
    if field == "run":
        return type(thing) is str and len(thing) <= LONGEST_NAME and thing.isprintable()
    return field == "attempt" and type(thing) is int and thing == 0


@pytest.mark.parametrize("message", SUMS, ids=lambda one: one.kind)
def test_a_field_of_a_secure_sum_has_one_type_and_no_other(message):
    header, body = written(message)
    same(read(header, body, ALL), message)
    whole = {"attempt": 0, "t": 1}
    for field in [name for name in header if name not in ("kind", "arrays", "version")]:
        for thing in [*THINGS, *ROWS]:
            if fine(field, thing):
                continue
            with pytest.raises(Unfit):
                read({**header, field: thing}, body, ALL)
        if field in whole:
            assert getattr(read({**header, field: whole[field]}, body, ALL), field) == whole[field]
            for thing in (whole[field] - 1, float(whole[field]), str(whole[field]), True, 2**53):
                with pytest.raises(Unfit):
                    read({**header, field: thing}, body, ALL)
        with pytest.raises(Unfit):
            read({key: value for key, value in header.items() if key != field}, body, ALL)


@pytest.mark.parametrize("thing", [*THINGS, *ROWS], ids=str)
def test_receipts_of_a_join_have_one_type_and_no_other(thing):
    join = Join("r", "", "0" * 64, (("a", 1),), (RECEIPT,))
    header, body = written(join)
    same(read(header, body, ALL), join)
    if fine("receipts", thing):
        return
    with pytest.raises(Unfit):
        read({**header, "receipts": thing}, body, ALL)


def test_words_pass_bit_for_bit_also_those_that_would_be_no_numbers():
    """A masked word is any of 2^64: also what a float64 would call NaN, signalling or not, or an infinity."""
    some = [0, 1, 2**63, 2**64 - 1, 0x7FF0000000000001, 0xFFF8000000000000, 0x7FF0000000000000, 0x8000000000000000]
    words = np.array([some, some[::-1]], np.uint64)
    sent = SiteAnswer("r", 1, 0, (RECEIPT, replace(RECEIPT, agent="b")), (), words)
    header, body = written(sent)
    assert body == b"".join(word.to_bytes(8, "little") for row in words.tolist() for word in row)
    found = read(wire.parsed(json.dumps(header)), body, REPLIES)
    assert found.words.dtype == np.uint64
    assert found.words.tolist() == words.tolist()
    turned = written(SiteAnswer("r", 1, 0, sent.given, (), np.asfortranarray(words)))
    assert turned == (header, body)  # whatever the order in memory


def test_a_model_that_holds_nan_is_read_as_it_is_and_left_to_the_gate():
    w = np.array([[0x7FF0000000000001, 0xFFF8000000000001]], np.uint64).view(np.float64)
    header, body = written(replace(ASK, parameters={"point": w}))
    assert read(header, body, REQUESTS).parameters["point"].tobytes() == w.tobytes() == body


@pytest.mark.parametrize("change", [
    {"arrays": {}}, {"arrays": {"w": [1, 6]}}, {"arrays": {"words": [2, 6]}}, {"arrays": {"words": [1, 6], "w": [0]}},
    {"arrays": {"words": [1, 5]}}, {"kind": "ask"}, {"kind": "closed"}, {"words": [1]},
])  # fmt: skip
def test_words_are_one_array_of_that_name(change):
    header, body = written(SUMS[4])
    with pytest.raises(Unfit):
        read(header | change, body, ALL)


@pytest.mark.parametrize("change", [
    {"version": 1}, {"version": 2.0}, {"version": True}, {"kind": "ASK"}, {"kind": None}, {"kind": ["ask"]},
    {"more": 1}, {"arrays": {}}, {"arrays": {"w": [3, 2]}, "z": 1}, {"arrays": {"w": [2, 3], "": [0]}},
    {"arrays": {"w": [-2, -3]}},
    {"arrays": {"w": [2, 4]}}, {"arrays": {"w": [2.0, 3]}}, {"arrays": {"w": [2**31, 2**31]}}, {"arrays": []},
    {"arrays": {"w": [1] * 5 + [6]}}, {"arrays": None},
])  # fmt: skip
def test_a_header_that_is_not_of_its_kind_is_refused(change):
    header, body = written(ASK)
    with pytest.raises(Unfit):
        read(header | change, body, ALL)


EARLIER = [
    ({"version": 1, "kind": "hello", "arrays": {}}, b""),
    ({"version": 1, "kind": "ask", "arrays": {"w": [2, 3]}, "run": "r", "agreed": "0" * 64, "t": 3, "rho": 1.0,
      "accepted": {"a": 2}}, b"\0" * 48),
    ({"version": 1, "kind": "ask sum", "arrays": {"w": [2, 3]}, "run": "r", "agreed": "0" * 64, "t": 3, "attempt": 0,
      "peers": ["a", "b"]}, b"\0" * 48),
    ({"version": 1, "kind": "shares", "arrays": {"words": [1, 6]}, "run": "r", "t": 3, "attempt": 1,
      "given": [{"agent": "a", "head": "0" * 64}], "refused": []}, b"\0" * 48),
    ({"version": 1, "kind": "answer", "arrays": {"z": [1, 2, 3]}, "run": "r", "t": 3,
      "released": [{"agent": "a", "dual": "0" * 64, "head": "0" * 64}], "refused": []}, b"\0" * 48),
]  # fmt: skip


@pytest.mark.parametrize(("header", "body"), EARLIER, ids=[header["kind"] for header, _ in EARLIER])
def test_a_message_of_an_earlier_version_is_refused_by_the_name_of_its_version(header, body):
    """Whatever its kind: kinds that are gone are named by their version too."""
    with pytest.raises(Unfit, match=f"version 1 of the wire format, and this is version {VERSION}: install the same"):
        read(header, body, ALL)


def test_a_question_has_a_bounded_number_of_parameters_each_with_a_name():
    """Which they are, and of what shape, is for the query of the agreement: the gate of an agent looks at them."""
    some = {f"part {n}": np.zeros(2) for n in range(MOST_PARAMETERS)}
    same(read(*written(replace(ASK, parameters=some)), REQUESTS), replace(ASK, parameters=some))
    named = [{name: np.zeros(2)} for name in ("", "\x1b[2J", "x" * 201)]
    for others in ({**some, "more": np.zeros(0)}, *named):
        with pytest.raises(Unfit, match="at most 16 parameters, each with a name"):
            read(*written(replace(ASK, parameters=others)), REQUESTS)


@pytest.mark.parametrize("body", [b"", b"\0" * 47, b"\0" * 49, b"\0" * 96])
def test_a_body_has_the_bytes_of_its_arrays(body):
    header, _ = written(ASK)
    with pytest.raises(Unfit):
        read(header, body, ALL)


def frame(header: bytes, mark: bytes = wire.MARK, length: int | None = None, body: int = 0) -> bytes:
    """A frame, and the lengths that it says it has."""
    return wire.PREFIX.pack(mark, len(header) if length is None else length, body) + header


@pytest.mark.parametrize(("sent", "says"), [
    (b"", "ended"), (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "not a message"),
    (frame(b"{}", mark=b"tacit\0\0\2"), "version"),
    (frame(b"[]"), "not an object"), (frame(b"{"), "not JSON"), (frame(b'{"a": NaN}'), "not JSON"),
    (frame(b'{"a": 1, "a": 2}'), "not JSON"), (frame(b"\xff\xfe"), "not JSON"), (frame(b"[" * 100_000), "not JSON"),
    (frame(b'{"a": ' + b"9" * 5000 + b"}"), "not JSON"), (frame(b"{}", length=2**32 - 1), "too long"),
    (frame(b"{}", body=101), "too long"), (frame(b"{}", body=2**64 - 1), "too long"), (frame(b"{}", length=3), "ended"),
])  # fmt: skip
def test_what_is_no_frame_is_refused_before_it_is_read(sent, says):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=lambda: (theirs.sendall(sent), theirs.shutdown(socket.SHUT_WR)))
        writer.start()
        with pytest.raises(wire.Malformed, match=says):
            wire.receive(ours, largest_body=100)
        ours.close()
        writer.join()


def test_a_sender_of_one_byte_now_and_then_does_not_hold_the_reader():
    ours, theirs = socket.socketpair()
    end = threading.Event()

    def drip():
        for byte in frame(b'{"kind": "hello"}' + b" " * 2000):
            if end.wait(0.02):
                return
            theirs.sendall(bytes([byte]))

    with ours, theirs:
        slow = threading.Thread(target=drip)
        slow.start()
        with pytest.raises((wire.Malformed, TimeoutError)):
            wire.receive(ours, 0, seconds=0.2)
        end.set()
        slow.join()


def test_a_message_sent_is_the_message_received():
    ours, theirs = socket.socketpair()
    message = replace(ASK, parameters={"point": np.arange(6.0).reshape(1, 2, 3)})
    with ours, theirs:
        wire.send(theirs, *written(message))
        same(read(*wire.receive(ours, 48, seconds=5.0), REQUESTS), message)
