"""The search of seeds that breaks masks of MT19937 has nothing to search here.

Flower 1.42 folds secrets of 256 bits into a seed of 32 bits (flower#7522). The straw man does so with SEEDS seeds, and
loses its vector to whoever tries all of them. Here the key of a stream is 32 bytes of HKDF over an X25519 secret, and
every bit of that secret counts.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("cryptography")

from tacit.agent.masks import masker as masks
from tacit.agent.masks import primitives
from tacit.agent.masks.keys import RunKey, SigningKey
from tacit.agent.masks.masker import Masker, Question, Terms
from tacit.types import Array

ASKED = "the fingerprint of what is asked"
NAMES = ("ada", "bob", "cyd", "dan")
SEEDS = 1 << 13
TERMS = Terms("run-1", bits=64, threshold=2, colluding=0)
SMALL = 1 << 20  # values of a vector, which are far from 2^64
LENGTH = 16
VECTOR = np.random.default_rng(0).integers(-SMALL, SMALL, LENGTH)
Stream = Callable[[int], Array]


def twister(seed: int) -> Array:
    """The mask of the straw man."""
    return np.random.RandomState(seed).randint(0, 1 << 64, LENGTH, np.uint64)


def search(masked: Array, streams: Iterable[Stream]) -> list[Array]:
    """All vectors of small values that are `masked` less a mask of a stream, of either sign, for any seed."""
    found = []
    for stream in streams:
        for seed in range(SEEDS):
            mask = stream(seed)
            for vector in ((masked - mask).view(np.int64), (masked + mask).view(np.int64)):
                if (np.abs(vector) <= SMALL).all():
                    found.append(vector)
    return found


def keyed(key: bytes) -> Array:
    words = np.empty(LENGTH, "<u8")
    primitives.stream(key, np.zeros(LENGTH, "<u8"), words)
    return words


def agents(names: tuple[str, ...] = NAMES, run: str = "run-1") -> dict[str, Masker]:
    """Agents that have met, with keys of the operating system."""
    keys, signing = {name: RunKey.new() for name in names}, {name: SigningKey.new() for name in names}
    pinned = {name: one.public for name, one in signing.items()}
    statements = [signing[name].state(run, name, keys[name].public) for name in names]
    terms = Terms(run, TERMS.bits, TERMS.threshold, TERMS.colluding)
    return {name: Masker.meet(terms, name, keys[name], pinned, statements) for name in names}


def test_masks_of_a_small_seed_are_found_and_the_vector_with_them() -> None:
    """The straw man, with two honest agents left: the search works."""
    seed = int.from_bytes(hashlib.sha256(b"a secret of 256 bits").digest(), "big") % SEEDS
    found = search(VECTOR.view(np.uint64) + twister(seed), [twister])
    assert len(found) == 1
    assert (found[0] == VECTOR).all()


def test_the_same_search_finds_nothing_in_masks_from_agreed_keys() -> None:
    """Not with seeds of MT19937, not with small keys of ChaCha20, and not with small secrets of a pair."""
    pair = agents(NAMES[:2])
    question = Question(1, 0, NAMES[:2], ASKED)
    one = pair[NAMES[0]]
    masked = one.mask(question, VECTOR, dict[str, str]().setdefault)
    asked = bytes.fromhex(one.asked(question, LENGTH))
    secret = primitives.KEY

    def derived(seed: int) -> Array:
        return keyed(primitives.expanded(seed.to_bytes(secret, "little"), asked))

    assert not search(masked, [twister, lambda seed: keyed(seed.to_bytes(secret, "little")), derived])
    offset = keyed(primitives.expanded(one.secrets[NAMES[1]], asked))
    assert ((masked - offset).view(np.int64) == VECTOR).all()  # whoever has the whole secret has the vector


def hkdf(key: bytes, info: bytes) -> bytes:
    """The second half of HKDF-SHA256 for one block (RFC 5869, 2.3)."""
    return hmac.digest(key, info + b"\x01", "sha256")


def test_the_key_of_every_stream_is_32_bytes_of_hkdf_and_no_two_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any pair, round, attempt, set and run; both agents of a pair have the same one."""
    used: list[bytes] = []
    whole = primitives.stream

    def recorded(key: bytes, zeros: Array, words: Array) -> None:
        used.append(key)
        whole(key, zeros, words)

    monkeypatch.setattr(masks, "stream", recorded)
    keys, streams = [], 0
    for run in ("run-1", "run-2"):
        everybody = agents(run=run)
        for t, attempt in ((1, 0), (1, 1), (2, 0)):
            for peers in (NAMES, NAMES[:3], NAMES[1:]):
                question = Question(t, attempt, peers, ASKED)
                for one, other in combinations(peers, 2):
                    digest = bytes.fromhex(everybody[one].asked(question, LENGTH))
                    keys.append(hkdf(everybody[one].secrets[other], digest))
                    streams += 1
                for name in peers:
                    everybody[name].mask(question, VECTOR, dict[str, str]().setdefault)
    assert {len(key) for key in used} == {primitives.KEY}
    assert len(set(keys)) == streams
    assert sorted(used) == sorted(2 * keys)


def test_every_bit_of_a_secret_counts() -> None:
    """No fold: the 256 secrets that differ from one in a bit give 256 other keys, half of whose bits differ."""
    secret, asked = RunKey.new().secret, bytes(32)
    flipped = [
        (int.from_bytes(secret, "big") ^ (1 << bit)).to_bytes(primitives.KEY, "big")
        for bit in range(8 * primitives.KEY)
    ]
    keys = [int.from_bytes(primitives.expanded(one, asked), "big") for one in (secret, *flipped)]
    assert len(set(keys)) == len(keys)
    apart = [(keys[0] ^ key).bit_count() for key in keys[1:]]
    assert min(apart) > 64  # 128 of 256 on average, 8 standard deviations
    assert max(apart) < 192


def test_secrets_are_of_the_operating_system_and_of_full_length() -> None:
    """A run's keys and the secrets of its pairs: none comes twice, however often a federation meets."""
    found = [secret for _ in range(4) for one in agents().values() for secret in one.secrets.values()]
    assert {len(secret) for secret in found} == {primitives.KEY}
    assert len(set(found)) == len(found) / 2  # two agents have each
