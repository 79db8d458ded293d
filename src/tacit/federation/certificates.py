"""Keys and certificates of a federation: one CA, the server's certificate, and a key for each node.

Private keys are files that their owner alone can read. The CA's key stays with the coordinator and is needed again only
to renew the server's certificate.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import ipaddress
import os
from pathlib import Path
from typing import Any

from tacit.errors import SpecError, missing_extra

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:  # tacit runs without it; `needed` says so where a key is asked for
    x509 = None

DAYS = 3650  # of the CA
SERVER_DAYS = 825  # the longest that common TLS libraries take of a server
_CURVES = {"secp192r1", "secp224r1", "secp256r1", "secp384r1", "secp521r1"}  # that Flower takes of nodes
_LATE = datetime.timedelta(hours=1)  # clocks of sites may be behind ours


def needed() -> None:
    """Refuse to go on without the package that makes keys."""
    if x509 is None:
        raise missing_extra("keys and certificates need cryptography", "flower")


def authority(folder: Path, name: str) -> None:
    """Write a new CA: ca.key and ca.pem."""
    needed()
    key = ec.generate_private_key(ec.SECP384R1())
    subject = _named(f"{name} CA")
    built = _certificate(subject, subject, key.public_key(), DAYS)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    built = built.add_extension(_usage(signs=True), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    built = built.add_extension(identifier, critical=False)
    _write_key(folder / "ca.key", key)
    _write(folder / "ca.pem", built.sign(key, hashes.SHA384()))


def server(folder: Path, addresses: list[str]) -> None:
    """Write server.key and server.pem, signed by the CA: for these hosts, and for this machine by its own names."""
    needed()
    try:
        ca = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        ca_key: Any = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise SpecError(f"cannot read ca.pem and ca.key in {folder}: {error}.") from None
    key = ec.generate_private_key(ec.SECP384R1())
    names = [_alternative(one) for one in dict.fromkeys([*addresses, "localhost", "127.0.0.1", "::1"])]
    built = _certificate(_named(addresses[0] if addresses else "localhost"), ca.subject, key.public_key(), SERVER_DAYS)
    built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    built = built.add_extension(_usage(signs=False), critical=True)
    built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    built = built.add_extension(above, critical=False)
    _write_key(folder / "server.key", key)
    _write(folder / "server.pem", built.sign(ca_key, hashes.SHA384()))


def node(path: Path) -> None:
    """Write the key of a node and its public half (.pub), as `ssh-keygen -t ecdsa -b 384` does."""
    needed()
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    _write_secret(path, private)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    _write_public(path.with_name(path.name + ".pub"), public + b"\n")


def check_node(path: Path) -> bytes:
    """The public key of a node, as its file spells it; refuse a file that holds none that Flower takes."""
    needed()
    try:
        text = path.read_bytes()
        key = serialization.load_ssh_public_key(text)
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise SpecError(f"{path} is not the public key of a node: ask the site for its node.pub (ssh-keygen -t ecdsa).")
    return text


def sign(path: Path, message: bytes) -> tuple[str, str]:
    """Sign with the key of a node, as Flower does: return its public half as Flower writes it, and the signature."""
    key = _private(path)
    return _public(key.public_key()).decode(), base64.b64encode(key.sign(message, ec.ECDSA(hashes.SHA256()))).decode()


def signer(public: str, signature: str, message: bytes) -> bytes | None:
    """Return the public key as Flower writes it, if the signature over a message is by it; None otherwise."""
    needed()
    try:
        key = serialization.load_pem_public_key(public.encode())
        if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _CURVES:
            return None
        key.verify(base64.b64decode(signature, validate=True), message, ec.ECDSA(hashes.SHA256()))
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm, InvalidSignature):
        return None
    return _public(key)


def fingerprint(path: Path) -> str:
    """Return the fingerprint of the key of a node, as `ssh-keygen -l` writes it."""
    public = _private(path).public_key()
    blob = public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).split()[1]
    digest = hashlib.sha256(base64.b64decode(blob)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _private(path: Path) -> Any:
    """The private key of a node, in the form that Flower reads."""
    needed()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SpecError(f"cannot read {path} ({error.strerror}): it is of the account that runs the node.") from None
    try:
        key: Any = serialization.load_ssh_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key
    raise SpecError(f'{path} is not the key of a node: make one with ssh-keygen -t ecdsa -b 384 -N "" -f node.key.')


def _public(key: Any) -> bytes:
    found: bytes = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return found


def check_host(address: str) -> str:
    """Return the address, if a certificate can name it."""
    needed()
    _alternative(address)
    return address


def _named(name: str) -> Any:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _certificate(subject: Any, issuer: Any, public: Any, days: int) -> Any:
    start = datetime.datetime.now(datetime.timezone.utc) - _LATE
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    built = built.serial_number(x509.random_serial_number()).not_valid_before(start)
    return built.not_valid_after(start + datetime.timedelta(days=days))


def _usage(signs: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _alternative(address: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        labels = address.split(".")
        fit = all(one and one.replace("-", "").isalnum() and one.isascii() and len(one) < 64 for one in labels)
        if not fit or len(address) > 253:
            raise SpecError(f"{address!r} is no host: give a name such as fl.example.org, or an IP address.") from None
        return x509.DNSName(address)


def _write_key(path: Path, key: Any) -> None:
    _write_secret(
        path,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file that nobody else could read, not even while it is written; an older one is replaced."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _write_public(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _write(path: Path, certificate: Any) -> None:
    _write_public(path, certificate.public_bytes(serialization.Encoding.PEM))
