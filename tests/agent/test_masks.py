"""Masks cancel over exactly one set of agents, look like nothing else, and are given once."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tacit.agent.masks import primitives
from tacit.agent.masks.keys import RunKey, SigningKey, Statement, roster
from tacit.agent.masks.masker import Masker, Question, Terms, unmasked
from tacit.errors import MissingDependency, QuestionChanged, SpecError, Unfit
from tacit.types import Array

NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "Zoë")
ASKED = "the fingerprint of what is asked"
PRIME = 2**255 - 19
ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL = (0, 1, PRIME - 1, PRIME, PRIME + 1, *ORDER_8)  # points whose order divides 8, on the curve or its twist


def secret(*of: object) -> bytes:
    """The same 32 bytes in each test: what must look random is not drawn anew."""
    return hashlib.sha256(repr(of).encode()).digest()


SIGNING = {name: SigningKey(secret("sign", name)) for name in NAMES}
PINNED = {name: key.public for name, key in SIGNING.items()}
TERMS = Terms("run-1", bits=64, threshold=2, colluding=0)


def run_key(name: str, run: str = "run-1") -> RunKey:
    return RunKey(secret(run, name))


def stated(name: str, run: str = "run-1") -> Statement:
    return SIGNING[name].state(run, name, run_key(name, run).public)


def masker(name: str, terms: Terms = TERMS, among: tuple[str, ...] = NAMES) -> Masker:
    statements = [stated(one, terms.run) for one in among]
    return Masker.meet(terms, name, run_key(name, terms.run), PINNED, statements)


EVERYBODY = {name: masker(name) for name in NAMES}
NOTHING = np.zeros(4096, np.int64)


def forgetful() -> Callable[[str, str], str]:
    return dict[str, str]().setdefault


def mask_of(one: Masker, question: Question, length: int = len(NOTHING)) -> Array:
    """The mask alone: of a vector of zeros."""
    return one.mask(question, np.zeros(length, np.int64), forgetful())


def uniform(words: Array, shift: int) -> bool:
    """Whether bytes of the words pass chi-square at a level that a fair draw misses once in a million."""
    counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(np.int64), minlength=256)
    expected = len(words) / 256
    return bool(((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 255))


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.sampled_from(NAMES), min_size=2), st.integers(1, 64), st.integers(1, 40),
    st.integers(0, 2**63 - 1), st.integers(0, 3), st.randoms(use_true_random=False),
)  # fmt: skip
def test_masks_cancel_over_exactly_the_set(
    names: set[str], bits: int, length: int, at: int, attempt: int, random: object
) -> None:
    half = 1 << (bits - 1)
    rows = {name: [random.randrange(-half, half) for _ in range(length)] for name in names}  # type: ignore[attr-defined]
    question = Question(at, attempt, tuple(names), ASKED)
    sent = []
    for name in names:
        own = replace(EVERYBODY[name], terms=replace(TERMS, bits=bits))
        words = own.mask(question, np.array(rows[name], np.int64), forgetful())
        assert words.dtype == np.uint64
        assert all(int(word) < 1 << bits for word in words)
        sent.append(words)
    exact = [(sum(column) + half) % (1 << bits) - half for column in zip(*rows.values(), strict=True)]
    total = unmasked(sent, bits)
    assert total.dtype == np.int64
    assert total.tolist() == exact


def test_one_agent_short_or_one_too_many_leaves_uniform_words() -> None:
    question = Question(0, 0, NAMES[:5], ASKED)
    sent = [mask_of(EVERYBODY[name], question) for name in NAMES[:5]]
    for words in [np.sum(sent[:-1], axis=0, dtype=np.uint64), sent[0] + np.sum(sent, axis=0, dtype=np.uint64)]:
        assert all(uniform(words, shift) for shift in (0, 8, 28, 48, 56))


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_single_masked_vector_looks_uniform_whatever_it_hides(name: str) -> None:
    hidden = np.full(1 << 16, -3, np.int64)
    words = EVERYBODY[name].mask(Question(7, 1, NAMES[:3], ASKED), hidden, forgetful())
    assert all(uniform(words, shift) for shift in range(0, 64, 8))
    assert not uniform(hidden.view(np.uint64), 0)
    assert abs(np.corrcoef(words[:-1].astype(float), words[1:].astype(float))[0, 1]) < 0.02


def test_anything_that_changes_changes_the_whole_mask() -> None:
    usual = Question(3, 1, NAMES[:4], ASKED)
    own = EVERYBODY["ada"]
    other_key = SIGNING["bob"].state("run-1", "bob", RunKey(secret("another")).public)
    rekeyed = [other_key if name == "bob" else stated(name) for name in NAMES]
    masks = [
        mask_of(own, usual),
        mask_of(own, replace(usual, round=4)),
        mask_of(own, replace(usual, round=1, attempt=3)),
        mask_of(own, replace(usual, attempt=2)),
        mask_of(own, replace(usual, peers=NAMES[:5])),
        mask_of(own, replace(usual, peers=NAMES[:3])),
        mask_of(own, replace(usual, fingerprint="another question")),
        mask_of(masker("ada", replace(TERMS, run="run-2")), usual),
        mask_of(Masker.meet(TERMS, "ada", run_key("ada"), PINNED, rekeyed), usual),
        mask_of(replace(own, terms=replace(TERMS, bits=63)), usual),
        mask_of(replace(own, terms=replace(TERMS, colluding=1, threshold=3)), usual),
        mask_of(own, usual, len(NOTHING) + 1)[:-1],
    ]
    for i, one in enumerate(masks):
        for other in masks[:i]:
            assert (one != other).mean() > 0.99
            assert uniform(one - other, 0)
    assert (mask_of(own, replace(usual, peers=NAMES[3::-1])) == masks[0]).all()  # a set has no order


@pytest.mark.parametrize(
    "told",
    [
        {"ada": NAMES[:3], "bob": NAMES[:3], "cyd": NAMES[:4], "dan": NAMES[:4]},
        # a ring: each pair agrees on sharing a mask or not, so that masks would cancel if they did not know the set
        {"ada": ("dan", "ada", "bob"), "bob": NAMES[:3], "cyd": NAMES[1:4], "dan": ("cyd", "dan", "ada")},
    ],
)
def test_a_server_that_tells_agents_different_sets_holds_random_words(told: dict[str, tuple[str, ...]]) -> None:
    sent = {name: mask_of(EVERYBODY[name], Question(0, 0, peers, ASKED)) for name, peers in told.items()}
    for some in [("ada", "bob"), ("ada", "bob", "cyd"), ("cyd", "dan"), tuple(told)]:
        words = np.sum([sent[name] for name in some], axis=0, dtype=np.uint64)
        assert uniform(words, 0)
        assert uniform(words, 56)


def test_a_coalition_that_takes_its_own_masks_away_holds_random_words_of_two_honest_agents() -> None:
    question, own = Question(0, 0, NAMES[:5], ASKED), EVERYBODY["ada"]
    known = replace(own, secrets={**own.secrets, "bob": bytes(32)})  # all but what ada and bob share
    left = mask_of(own, question) - mask_of(known, question)
    assert uniform(left, 0)
    assert uniform(left, 56)


class TestGivenOnce:
    def test_the_same_answer_may_go_out_again(self) -> None:
        kept: dict[str, str] = {}
        question, vector = Question(1, 0, NAMES[:3], ASKED), np.arange(5)
        first = EVERYBODY["ada"].mask(question, vector, kept.setdefault)
        assert (EVERYBODY["ada"].mask(question, vector, kept.setdefault) == first).all()
        assert len(kept) == 1

    @pytest.mark.parametrize(("peers", "add"), [(NAMES[:4], 0), (NAMES[:3], 1)])
    def test_another_set_or_another_vector_is_refused_after_a_restart_too(
        self, peers: tuple[str, ...], add: int
    ) -> None:
        kept: dict[str, str] = {}
        EVERYBODY["ada"].mask(Question(1, 0, NAMES[:3], ASKED), np.arange(5), kept.setdefault)
        with pytest.raises(QuestionChanged, match="answered before"):
            masker("ada").mask(Question(1, 0, peers, ASKED), np.arange(5) + add, kept.setdefault)
        masker("ada").mask(Question(1, 1, peers, ASKED), np.arange(5) + add, kept.setdefault)
        assert len(kept) == 2

    def test_a_fresh_key_does_not_open_the_slot_again(self) -> None:
        kept: dict[str, str] = {}
        question = Question(1, 0, NAMES[:3], ASKED)
        EVERYBODY["ada"].mask(question, np.arange(5), kept.setdefault)
        fresh = RunKey.new()
        statements = [SIGNING["ada"].state("run-1", "ada", fresh.public), stated("bob"), stated("cyd")]
        with pytest.raises(QuestionChanged):
            Masker.meet(TERMS, "ada", fresh, PINNED, statements).mask(question, np.arange(5), kept.setdefault)

    def test_slots_and_questions_are_apart(self) -> None:
        own, question = EVERYBODY["ada"], Question(1, 2, NAMES[:3], ASKED)
        same_slot = replace(question, peers=NAMES[:4])
        assert own.slot(question) == own.slot(same_slot)
        assert own.asked(question, 5) != own.asked(same_slot, 5)
        assert own.asked(question, 5) == EVERYBODY["bob"].asked(question, 5)  # both sides of a ledger can compare
        others = Question(2, 1, NAMES[:3], ASKED), Question(1, 3, NAMES[:3], ASKED)
        slots = {one.slot(asked) for one in (own, EVERYBODY["bob"], masker("ada", replace(TERMS, run="run-2")))
                 for asked in (question, *others)}  # fmt: skip
        assert len(slots) == 9

    def test_what_the_ledger_keeps_is_not_a_hash_of_the_vector(self) -> None:
        kept: dict[str, str] = {}
        question = Question(1, 0, NAMES[:3], ASKED)
        answers = [EVERYBODY[name].mask(question, np.arange(5), kept.setdefault) for name in NAMES[:2]]
        assert len(set(kept.values())) == 2  # two agents with the same numbers
        assert (answers[0] != answers[1]).any()


@pytest.mark.parametrize(
    ("peers", "why"),
    [
        (("bob", "cyd", "dan"), "none of its business"),
        (("ada", "bob", "mallory"), "no signed key"),
        (("ada", "bob", "gus"), "no signed key"),  # pinned, but silent in this run
        (("ada", "bob"), "threshold of 3"),
        (("ada",), "threshold of 3"),
        ((), "none of its business"),
    ],
)
def test_a_set_that_is_not_fit_is_refused_and_claims_nothing(peers: tuple[str, ...], why: str) -> None:
    own = masker("ada", replace(TERMS, threshold=3), NAMES[:5])
    kept: dict[str, str] = {}
    with pytest.raises(Unfit, match=why) as refused:
        own.mask(Question(0, 0, peers, ASKED), np.arange(5), kept.setdefault)
    assert refused.value.public == "this agent does not answer."
    assert not kept


@pytest.mark.parametrize(
    ("at", "attempt", "peers"),
    [(0, 0, ("ada", "bob", "bob")), (-1, 0, NAMES), (0, 2**63, NAMES), (True, 0, NAMES), (0.0, 0, NAMES),
     (0, 0, list(NAMES)), (0, 0, ("ada", b"bob"))],
)  # fmt: skip
def test_a_question_that_is_none_is_refused(at: object, attempt: object, peers: object) -> None:
    with pytest.raises(Unfit):
        Question(at, attempt, peers, ASKED)  # type: ignore[arg-type]


@pytest.mark.parametrize("fingerprint", ["", None, b"asked", 3])
def test_masks_are_of_one_question_and_not_without_its_fingerprint(fingerprint: object) -> None:
    with pytest.raises(Unfit, match="fingerprint"):
        Question(0, 0, NAMES, fingerprint)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [{"threshold": 1}, {"colluding": 1}, {"colluding": -1}, {"bits": 0}, {"bits": 65}, {"run": ""}],
)
def test_terms_that_hide_nothing_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        replace(TERMS, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "vector", [np.zeros(3), np.zeros((1, 3), np.int64), np.zeros(0, np.int64), np.zeros(3, np.uint64)]
)
def test_a_vector_of_another_form_is_refused(vector: Array) -> None:
    with pytest.raises(SpecError, match="int64"):
        EVERYBODY["ada"].mask(Question(0, 0, NAMES, ASKED), vector, forgetful())


def test_no_number_in_a_vector_is_refused() -> None:
    extremes = np.array([-(2**63), 2**63 - 1, 0])
    own = replace(EVERYBODY["ada"], terms=replace(TERMS, bits=3))
    assert own.mask(Question(0, 0, NAMES, ASKED), extremes, forgetful()).max() < 8


@pytest.mark.parametrize("odd", [np.zeros(4, np.uint64), np.zeros((1, 5), np.uint64), np.zeros(5)])
def test_a_sum_takes_rows_of_one_form(odd: Array) -> None:
    with pytest.raises(Unfit, match="another form"):
        unmasked([np.zeros(5, np.uint64), odd], 20)


class TestStatements:
    def refused(self, one: Statement, why: str) -> None:
        with pytest.raises(Unfit, match=why):
            roster("run-1", PINNED, [stated("ada"), one])

    def test_a_server_cannot_substitute_a_key(self) -> None:
        self.refused(replace(stated("bob"), key=RunKey.new().public), "signature")

    def test_a_server_cannot_sign_for_an_agent(self) -> None:
        own = SigningKey.new()
        self.refused(own.state("run-1", "bob", run_key("bob").public), "signature")

    def test_an_agent_cannot_speak_for_another(self) -> None:
        self.refused(SIGNING["eve"].state("run-1", "bob", RunKey.new().public), "signature")
        self.refused(replace(stated("eve"), agent="bob"), "signature")

    def test_nobody_is_invented(self) -> None:
        self.refused(SigningKey.new().state("run-1", "mallory", RunKey.new().public), "not pinned")

    def test_a_statement_of_another_run_is_not_replayed(self) -> None:
        self.refused(stated("bob", "run-0"), "another run")
        self.refused(replace(stated("bob", "run-0"), run="run-1"), "signature")

    def test_fields_do_not_flow_into_each_other(self) -> None:
        key = run_key("bob").public
        moved = SIGNING["bob"].state("run-", "1bob", key)
        self.refused(replace(moved, run="run-1", agent="bob"), "signature")

    @pytest.mark.parametrize("signature", [b"", bytes(64), bytes(63)])
    def test_what_is_no_signature_is_refused(self, signature: bytes) -> None:
        self.refused(replace(stated("bob"), signature=signature), "signature")

    def test_one_statement_an_agent(self) -> None:
        self.refused(SIGNING["ada"].state("run-1", "ada", RunKey.new().public), "two statements")

    def test_one_key_an_agent(self) -> None:
        self.refused(SIGNING["eve"].state("run-1", "eve", run_key("ada").public), "key of another")
        with pytest.raises(SpecError, match="pinned to one key"):
            roster("run-1", {**PINNED, "bob": PINNED["eve"]}, [stated("ada")])

    @pytest.mark.parametrize("changes", [{"run": b"run-1"}, {"agent": ["bob"]}, {"key": "k"}, {"signature": None}])
    def test_fields_of_other_types_are_refused(self, changes: dict[str, object]) -> None:
        with pytest.raises(Unfit):
            replace(stated("bob"), **changes)  # type: ignore[arg-type]

    @pytest.mark.parametrize("point", [p + high for p in SMALL for high in (0, 2**255)])
    def test_points_of_small_order_are_refused_though_signed(self, point: int) -> None:
        weak = SIGNING["eve"].state("run-1", "eve", point.to_bytes(32, "little"))
        with pytest.raises(Unfit, match="shares no secret"):
            Masker.meet(TERMS, "ada", run_key("ada"), PINNED, [stated("ada"), stated("bob"), weak])

    @pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
    def test_keys_of_another_length_are_refused_though_signed(self, key: bytes) -> None:
        with pytest.raises(Unfit, match="shares no secret"):
            Masker.meet(
                TERMS, "ada", run_key("ada"), PINNED, [stated("ada"), SIGNING["eve"].state("run-1", "eve", key)]
            )

    @pytest.mark.parametrize("name", ["ada", "bob"])
    def test_an_agent_must_have_announced_the_key_that_it_holds(self, name: str) -> None:
        with pytest.raises(Unfit, match="itself"):
            Masker.meet(TERMS, "ada", RunKey.new(), PINNED, [stated(name), stated("cyd")])


def test_a_peer_that_copies_a_key_cannot_make_two_masks_cancel() -> None:
    # Zoë < ada < eve: were the streams of both pairs the same, ada would add one and take the other away
    copied = bytearray(run_key("Zoë").public)
    copied[-1] ^= 0x80  # the same point to X25519, and other bytes
    statements = [stated("ada"), stated("Zoë"), SIGNING["eve"].state("run-1", "eve", bytes(copied))]
    own = Masker.meet(TERMS, "ada", run_key("ada"), PINNED, statements)
    assert primitives.agreed(run_key("ada").secret, bytes(copied)) == primitives.agreed(
        run_key("ada").secret, run_key("Zoë").public
    )
    words = mask_of(own, Question(0, 0, ("Zoë", "ada", "eve"), ASKED))
    assert uniform(words, 0)
    assert uniform(words, 56)
    same = Masker.meet(TERMS, "ada", run_key("ada"), PINNED, statements[:2]).secrets["Zoë"]
    assert own.secrets["Zoë"] == same != own.secrets["eve"]


def flipped(of: bytes) -> list[bytes]:
    """The bytes with one bit changed, for every bit."""
    whole = int.from_bytes(of, "big")
    return [(whole ^ 1 << bit).to_bytes(len(of), "big") for bit in range(8 * len(of))]


@pytest.mark.parametrize("step", ["extracted", "expanded", "stream"])
def test_every_bit_of_a_secret_counts_so_that_there_is_no_seed_to_search(step: str) -> None:
    def last(key: bytes) -> bytes:
        if step == "extracted":
            return primitives.extracted(key, b"salt", b"info")
        if step == "expanded":
            return primitives.expanded(key, b"info")
        words = np.empty(4, np.uint64)
        primitives.stream(key, np.zeros(4, np.uint64), words)
        return words.tobytes()

    keys = [last(one) for one in [secret("pair"), *flipped(secret("pair"))]]
    assert {len(one) for one in keys} == {primitives.KEY}
    assert len(set(keys)) == 257
    for part in range(0, 32, 4):  # no 32 bits of it are a function of fewer
        assert len({one[part : part + 4] for one in keys}) == 257
    ones = np.unpackbits(np.frombuffer(b"".join(keys), np.uint8).reshape(257, 32), axis=1).mean(0)
    assert abs(ones - 0.5).max() < 6 * 0.5 / 257**0.5  # every bit varies


def test_every_bit_of_a_pair_secret_reaches_the_masks() -> None:
    own, question = EVERYBODY["ada"], Question(0, 0, NAMES[:2], ASKED)
    masks = {mask_of(replace(own, secrets={"bob": one}), question, 4).tobytes() for one in flipped(own.secrets["bob"])}
    assert len(masks) == 256


def test_the_stream_is_that_of_rfc_8439() -> None:
    words = np.empty(8, np.uint64)
    primitives.stream(bytes(32), np.zeros(8, np.uint64), words)
    assert words.tobytes()[:16].hex() == "76b8e0ada0f13d90405d6ae55386bd28"  # A.1, test vector 1


def test_a_restart_from_bytes_gives_the_same_masks_and_the_same_statement() -> None:
    key, signing = RunKey.new(), SigningKey.new()
    pinned = {**PINNED, "ada": signing.public}
    statements = [signing.state("run-1", "ada", key.public), stated("bob")]
    before = Masker.meet(TERMS, "ada", key, pinned, statements)
    again = Masker.meet(TERMS, "ada", RunKey(bytes(key.secret)), pinned, statements)
    question = Question(0, 0, ("ada", "bob"), ASKED)
    assert (mask_of(before, question) == mask_of(again, question)).all()
    assert SigningKey(signing.secret).state("run-1", "ada", key.public) == statements[0]
    assert RunKey.new() != RunKey.new()
    assert SigningKey.new() != SigningKey.new()


@pytest.mark.parametrize("damaged", [b"", bytes(31), "x" * 32])
@pytest.mark.parametrize("kind", [RunKey, SigningKey])
def test_a_damaged_file_is_no_key(kind: type[RunKey], damaged: bytes) -> None:
    with pytest.raises(SpecError, match="32 bytes"):
        kind(damaged)


def test_secrets_are_not_printed() -> None:
    own = EVERYBODY["ada"]
    hidden = [run_key("ada").secret, SIGNING["ada"].secret, *own.secrets.values()]
    shown = repr(own) + repr(run_key("ada")) + repr(SIGNING["ada"])
    assert not any(repr(one) in shown for one in hidden)


_FIELD = st.one_of(st.text(max_size=3), st.integers(0, 300), st.binary(max_size=3))


@settings(max_examples=50, deadline=None)
@given(st.lists(_FIELD, max_size=4), st.lists(_FIELD, max_size=4))
def test_no_two_lists_of_fields_are_the_same_bytes(one: list[str | int], other: list[str | int]) -> None:
    assert (primitives.encoded(*one) == primitives.encoded(*other)) == (one == other)


def test_without_cryptography_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location("without", primitives.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(MissingDependency, match="the extra 'secure'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
