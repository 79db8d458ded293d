"""Signatures, key agreement, derivation and streams, bytes in and bytes out: all of `cryptography` that masks use.

Keys are raw: 32 bytes, secret or public. What comes from others has any length and content: it is used, or `Unfit`.
"""

from __future__ import annotations

import numpy as np

from tacit.errors import Unfit, missing_extra
from tacit.types import Array

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
except ImportError:
    raise missing_extra("a secure sum needs cryptography", "secure") from None

KEY = 32  # bytes of every key and secret
_NONCE = bytes(16)  # counter and nonce: each key makes one stream


def encoded(*fields: str | int | bytes) -> bytes:
    """The fields as bytes; no two lists of fields have the same."""
    parts = []
    for field in fields:
        if isinstance(field, str):
            kind, body = b"s", field.encode()
        elif isinstance(field, int):
            kind, body = b"i", field.to_bytes(8, "big")
        else:
            kind, body = b"b", field
        parts += [kind, len(body).to_bytes(8, "big"), body]
    return b"".join(parts)


def new_signing_key() -> bytes:
    """The secret half of a fresh Ed25519 key."""
    return bytes(Ed25519PrivateKey.generate().private_bytes_raw())


def verifying_key(secret: bytes) -> bytes:
    """The public half of an Ed25519 key."""
    return bytes(Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw())


def signed(secret: bytes, message: bytes) -> bytes:
    """The Ed25519 signature of a message."""
    return bytes(Ed25519PrivateKey.from_private_bytes(secret).sign(message))


def check_signature(public: bytes, signature: bytes, message: bytes) -> None:
    """Refuse a message that the owner of the key did not sign."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Unfit("a signature is not of the pinned key: look for the peer's key where its owner shows it.") from None


def new_agreement_key() -> bytes:
    """The secret half of a fresh X25519 key."""
    return bytes(X25519PrivateKey.generate().private_bytes_raw())


def agreement_key(secret: bytes) -> bytes:
    """The public half of an X25519 key."""
    return bytes(X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw())


def agreed(secret: bytes, public: bytes) -> bytes:
    """The X25519 secret shared with the owner of a public key. Small orders, which share zeros, are refused."""
    try:
        return bytes(X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public)))
    except ValueError:  # RFC 7748, 6.1: the library looks for zeros
        raise Unfit("a key of the run shares no secret: its owner must draw another one.") from None


def extracted(shared: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 of a shared point, which is no uniform key yet."""
    return bytes(HKDF(SHA256(), KEY, salt, info).derive(shared))


def expanded(key: bytes, info: bytes) -> bytes:
    """The second half of HKDF-SHA256: a key for one use, of a uniform key."""
    return bytes(HKDFExpand(SHA256(), KEY, info).derive(key))


def stream(key: bytes, zeros: Array, words: Array) -> None:
    """Fill `words` (uint64, little-endian) with the ChaCha20 stream of a key; `zeros` has as many bytes."""
    Cipher(ChaCha20(key, _NONCE), None).encryptor().update_into(zeros.view(np.uint8).data, words.view(np.uint8).data)
