"""Who gets in, and where: listeners, keys, identity (SPEC 12 and 13)."""

from __future__ import annotations

import ipaddress
from typing import Any

from zurelay.model import Auth, Identity, IdentityMode, Listen, Require, Tls
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Found, Reader, each, struct
from zurelay.settings.scalars import choice, flag, integer, matching, text

PUBLIC_PORT = 8080
STATUS_PORT = 8081
_PORT = integer(1, 65535)
_NEEDED = {
    IdentityMode.NONE: (),
    IdentityMode.MTLS: ("ca", "cert", "key", "trust_domain"),
    IdentityMode.FORWARDED: ("trusted", "trust_domain"),
}
_IDENTITY_KEYS = ("ca", "cert", "key", "trusted", "trust_domain")
_trust_domain = matching(  # SPIFFE-ID 2.1
    r"[a-z0-9._-]{1,255}", "a SPIFFE trust domain such as cluster.local: a-z 0-9 . _ -, no spiffe://"
)


def listen(at: At, facts: Facts) -> Listen:
    """Read the public listener."""
    readers: dict[str, Reader[Any]] = {"port": _PORT, "host": _host, "tls": lambda child: _tls(child, facts)}
    return struct(at, Listen, readers, port=PUBLIC_PORT)


def status(at: At) -> Listen:
    """Read the status listener, which has no TLS."""
    readers: dict[str, Reader[Any]] = {"port": _PORT, "host": _host}
    return struct(at, Listen, readers, port=STATUS_PORT)


def _tls(at: At, facts: Facts) -> Tls:
    return struct(at, Tls, {"cert": facts.file, "key": facts.file})


def _host(at: At) -> str:
    """Read an address; Envoy takes no names here."""
    written = text(at)
    if written == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(written.replace("%", " ")))  # Envoy takes no zone (%eth0) either
    except ValueError:
        raise at.wrong("expected an IP address such as 127.0.0.1 or 0.0.0.0, or localhost") from None


def auth(at: At, facts: Facts) -> Auth:
    """Read who may call."""
    return struct(at, Auth, {"require": choice(Require), "keys": facts.file, "allow_open": flag})


def identity(at: At, facts: Facts) -> Identity:
    """Read how a workload proves who it is; each mode has its own keys."""
    files = dict.fromkeys(("ca", "cert", "key"), facts.file)
    found = Found(at, {"mode": choice(IdentityMode), **files, "trust_domain": _trust_domain, "trusted": each(_network)})
    if "mode" in found.values or not at.has("mode"):
        _check_mode(at, found.values.get("mode", IdentityMode.NONE))
    if "trusted" in found.values and not found.values["trusted"]:
        at.key("trusted").note("trusts no one; name the networks of the proxies that may say who calls")
    return found.build(Identity)


def _check_mode(at: At, mode: IdentityMode) -> None:
    needed = _NEEDED[mode]
    for key in _IDENTITY_KEYS:
        if at.has(key) and key not in needed:
            at.key(key).note(f"has no use with mode {mode.value}; leave it out")
        if not at.has(key) and key in needed:
            at.key(key).note(f"missing; mode {mode.value} needs {', '.join(needed)}")


def _network(at: At) -> str:
    written = text(at)
    try:
        network = ipaddress.ip_network(written)
    except ValueError:
        raise at.wrong("expected a network such as 10.0.0.0/8, its bits after the prefix all 0") from None
    if network.prefixlen == 0:
        raise at.wrong("trusts every address, so that anyone could claim any identity; name the proxy's network")
    return str(network)


def check(root: At, public: Listen | None, health: Listen | None, who: Auth | None, proof: Identity | None) -> None:
    """Note what the sections say against each other; one that is broken is None, and isn't judged."""
    if public and health and public.port == health.port:
        root.key("status").key("port").note(f"{health.port} is the public listener's port too; choose another")
    if public and proof and public.tls and proof.mode is IdentityMode.MTLS:
        root.key("listen").key("tls").note("identity.mode mtls brings the certificate: leave listen.tls out")
    if who:
        _check_auth(root, public, who, proof)


def _check_auth(root: At, public: Listen | None, who: Auth, proof: Identity | None) -> None:
    at = root.key("auth")
    if who.require in (Require.KEY, Require.EITHER) and who.keys is None:
        at.key("keys").note(
            f"missing; require: {who.require.value} needs the file of the keys, such as keys.yaml"
            " (or say require: none, on loopback)"
        )
    if who.require in (Require.WORKLOAD, Require.EITHER) and proof and proof.mode is IdentityMode.NONE:
        at.key("require").note(f"{who.require.value} needs identity.mode mtls or forwarded, to know a workload by")
    if who.require is Require.NONE and public and not who.allow_open and not _loopback(public.host):
        at.key("require").note(
            f"none lets anyone who reaches {public.host} use your accounts;"
            " listen on 127.0.0.1, require keys, or say allow_open: true"
        )


def _loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback
