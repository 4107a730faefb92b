"""Providers: base URL, format, credential, headers."""

from __future__ import annotations

import re

from zurelay.model import Format, Http, Params, Provider
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Broken, Found, each, mapped, struct
from zurelay.settings.scalars import choice, matching, text
from zurelay.settings.secrets import secret
from zurelay.settings.urls import url

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")  # RFC 9110, 5.6.2
# Hop-by-hop (RFC 9110, 7.6.1), what frames and codes a body, and what zurelay and Envoy say themselves.
_OURS = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "host", "content-length", "content-type", "content-encoding", "accept-encoding"}
)
_OUR_PREFIXES = ("x-envoy-", "x-zurelay-")
_NEVER = frozenset({"model", "models", "messages", "stream"})


def provider(name: str, at: At, facts: Facts) -> Provider:
    """Read one provider."""
    found = Found(
        at,
        {
            "base_url": url,
            "format": choice(Format),
            "api_key": lambda child: secret(child, facts),
            "headers": _headers,
            "query": mapped(lambda _, child: text(child)),
            "auth_header": _auth_header,
            "ca": facts.file,
            "params": params,
            "http": choice(Http),
        },
    )
    if at.has("auth_header") and not at.has("api_key"):
        at.key("auth_header").note("names the header of a credential, but api_key is missing")
    if at.has("ca") and "base_url" in found.values and found.values["base_url"].scheme == "http":
        at.key("ca").note("is for https, but base_url is http")
    built = found.build(Provider, name=name)
    credential = built.auth_header or ("x-api-key" if built.format is Format.ANTHROPIC else "authorization")
    if built.api_key and credential in built.headers:
        at.key("headers").note(f"says {credential}, which carries the credential; leave it or api_key out")
    return built


_header_value = matching(r"[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?", "1 to 4096 printable ASCII characters")


def _header_name(name: str, at: At) -> str:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        raise at.wrong("isn't a legal header name")
    if lower in _OURS or lower.startswith(_OUR_PREFIXES):
        raise at.wrong("is set by zurelay itself; leave it out")
    return lower


def _auth_header(at: At) -> str:
    return _header_name(text(at), at)


def _headers(at: At) -> dict[str, str]:
    found: dict[str, str] = {}
    broken = False
    for name, child in at.entries():
        try:
            lower = _header_name(name, child)
            if lower in found:
                child.note("said twice; header names are the same in upper and lower case")
            found[lower] = _header_value(child)
        except Broken:
            broken = True
    if broken:
        raise Broken
    return found


def params(at: At) -> Params:
    """Read the fields to rename and to drop."""
    return struct(at, Params, {"rename": mapped(_renamed), "drop": each(_field)})


def _renamed(name: str, at: At) -> str:
    _check_field(name, at)
    return _field(at)


def _field(at: At) -> str:
    name = text(at)
    _check_field(name, at)
    return name


def _check_field(name: str, at: At) -> None:
    if name in _NEVER:
        raise at.wrong(f"{name} can't be renamed or dropped; no request works without it")
