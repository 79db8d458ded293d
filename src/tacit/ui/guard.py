"""Who may ask: the host a browser was told, the page that asks, and a token that only the owner was shown.

* A name that points to this machine for an attacker's page (DNS rebinding) is no host of ours: the Host header must be
  an address of this machine or a name that was allowed.
* Another page (CSRF) has another Origin. No answer carries a header that would let it read one, and the token travels
  in a header of its own, which no form and no link can set. There is no cookie.
* Other accounts of this machine reach a loopback port too: whatever tells of runs needs the token, on loopback as well.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

Headers = Iterable[tuple[bytes, bytes]]

TOKEN = b"x-tacit-token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SECURITY = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
     b"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
     b"require-trusted-types-for 'script'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)  # fmt: skip


class Guard:
    """Decides on a request from its headers alone."""

    def __init__(self, host: str, allowed: Collection[str] = (), token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._any_address = is_any(host)
        self._hosts = {name.lower() for name in allowed} | {host.lower()}
        if self._any_address or is_loopback(host):
            self._hosts |= set(LOOPBACK)
        if self._any_address:
            self._hosts.add(socket.gethostname().lower())

    def refused(self, headers: Headers, needs_token: bool) -> tuple[int, str] | None:
        """Return a status and a sentence where the request is refused, else None."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name.lower(), []).append(value)
        host = found.get(b"host", [])
        if len(host) != 1 or not self._knows(_name(host[0])):
            return 421, "this host name is not served: open the address that tacit ui printed, or give --allow-host."
        for origin in found.get(b"origin", []):
            if origin.lower() not in (b"http://" + host[0].lower(), b"https://" + host[0].lower()):
                return 403, "another page asks: refused."
        if any(site not in (b"same-origin", b"none") for site in found.get(b"sec-fetch-site", [])) and needs_token:
            return 403, "another page asks: refused."
        given = found.get(TOKEN, [])
        if needs_token and not (len(given) == 1 and secrets.compare_digest(given[0], self.token.encode())):
            return 401, "the token is missing or wrong: open the link that tacit ui printed."
        return None

    def _knows(self, name: str | None) -> bool:
        if name is None:
            return False
        return name in self._hosts or (self._any_address and _is_address(name))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_any(host: str) -> bool:
    """Tell whether an address stands for all addresses of this machine."""
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _name(header: bytes) -> str | None:
    """Return the name in a Host header, without its port (a tunnel may have another); None where it is no host."""
    try:
        found = urlsplit(f"//{header.decode('ascii')}")
        if found.username is not None or found.path or found.query or found.fragment:
            return None
        _ = found.port
        return found.hostname
    except ValueError:
        return None
