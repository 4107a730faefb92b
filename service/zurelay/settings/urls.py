"""URLs and hosts, taken apart strictly: what Envoy would read otherwise than we do is refused here."""

from __future__ import annotations

import ipaddress
import re

from zurelay.model import Url
from zurelay.settings.places import At
from zurelay.settings.scalars import text

_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>.*))?")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")  # container names have underscores
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")  # RFC 3986, 3.3
_ENDPOINTS = ("/chat/completions", "/messages")
_LONGEST_NAME = 253  # RFC 1035, 2.3.4, without the last dot


def url(at: At) -> Url:
    """Take a base URL apart: http or https, a host, perhaps a port and a path, nothing else."""
    written = text(at)
    scheme, separator, rest = written.partition("://")
    if not separator or scheme.lower() not in _PORTS:
        raise at.wrong("expected a URL that begins with https:// or http://")
    for mark, where in (("#", "a fragment has no place here"), ("?", "a provider's query goes into query: {}")):
        if mark in rest:
            raise at.wrong(f"holds a {mark}; {where}")
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        raise at.wrong("holds a user or password; a provider's credential goes into api_key")
    path = f"{slash}{path}".rstrip("/")
    if not _PATH.fullmatch(path):
        raise at.wrong("its path holds a character that a URL can't; write it percent-encoded")
    if path.endswith(_ENDPOINTS):
        raise at.wrong("names an endpoint; end it before /chat/completions or /messages")
    host, port = host_and_port(at, authority)
    return Url(scheme=scheme.lower(), host=host, port=port or _PORTS[scheme.lower()], path=path)


def host_and_port(at: At, authority: str) -> tuple[str, int | None]:
    """Take a host and its port apart; no message says any of it again."""
    parts = _AUTHORITY.fullmatch(authority)
    if not parts:
        raise at.wrong("its host is no name and no address; an IPv6 address stands in brackets")
    port = parts["port"]
    if port is not None and not (re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 1 << 16):
        raise at.wrong("its port isn't a number from 1 to 65535")
    found = _name(parts["name"]) if parts["six"] is None else _ipv6(parts["six"])
    if found is None:
        raise at.wrong("its host is no name and no address; names are of ASCII letters, digits, dots and hyphens")
    return found, int(port) if port else None


def host(written: str) -> str | None:
    """Give a name or an address, without brackets, as it is used; None for what is neither."""
    return _ipv6(written) if ":" in written else _name(written)


def _ipv6(written: str) -> str | None:
    try:
        return str(ipaddress.IPv6Address(written)) if "%" not in written else None
    except ValueError:
        return None


def _name(written: str) -> str | None:
    labels = written.split(".")
    if len(written) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        return None
    if labels[-1].isdigit():  # only an address may end in a number (WHATWG URL, "ends in a number")
        try:
            return str(ipaddress.IPv4Address(written))
        except ValueError:
            return None
    return written.lower()
