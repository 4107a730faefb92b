from typing import Any

import pytest

from zurelay.model import Auth, Identity, IdentityMode, Listen, Require, Tls
from zurelay.settings import entry
from zurelay.settings.facts import Facts
from zurelay.settings.places import At


def read(read_one: Any, facts: Facts, name: str, text: str) -> Any:
    readers = {"listen": entry.listen, "auth": entry.auth, "identity": entry.identity}
    return read_one(entry.status if name == "status" else lambda at: readers[name](at, facts), text)


RIGHT = {
    "the default port": ("listen", "{}", Listen(port=8080)),
    "the default status port": ("status", "{}", Listen(port=8081)),
    "an address": ("listen", "{port: 443, host: 0.0.0.0}", Listen(port=443, host="0.0.0.0")),
    "localhost": ("status", "{host: localhost}", Listen(port=8081)),
    "IPv6": ("listen", "{host: '::'}", Listen(port=8080, host="::")),
    "TLS": (
        "listen",
        "tls: {cert: there.crt, key: there.key}",
        Listen(port=8080, tls=Tls(cert="there.crt", key="there.key")),
    ),
    "keys": ("auth", "{keys: there}", Auth(keys="there")),
    "no keys": ("auth", "{require: none, allow_open: true}", Auth(require=Require.NONE, allow_open=True)),
    "no identity": ("identity", "{}", Identity()),
    "mTLS": (
        "identity",
        "{mode: mtls, ca: there1, cert: there2, key: there3, trust_domain: cluster.local}",
        Identity(mode=IdentityMode.MTLS, ca="there1", cert="there2", key="there3", trust_domain="cluster.local"),
    ),
    "forwarded": (
        "identity",
        "{mode: forwarded, trusted: [10.0.0.0/8, 'fd00::/8', 192.0.2.1], trust_domain: td}",
        Identity(mode=IdentityMode.FORWARDED, trusted=("10.0.0.0/8", "fd00::/8", "192.0.2.1/32"), trust_domain="td"),
    ),
}


@pytest.mark.parametrize(("section", "text", "value"), RIGHT.values(), ids=RIGHT)
def test_a_section_is_read(read_one: Any, facts: Facts, section: str, text: str, value: object) -> None:
    assert (value, []) == read(read_one, facts, section, text)


PORT = "port: expected a whole number from 1 to 65535"
HOST = "host: expected an IP address such as 127.0.0.1 or 0.0.0.0, or localhost"
NETWORK = "expected a network such as 10.0.0.0/8, its bits after the prefix all 0"
DOMAIN = "expected a SPIFFE trust domain such as cluster.local: a-z 0-9 . _ -, no spiffe://"
WRONG = {
    "port 0": ("listen", "port: 0", [PORT]),
    "a port too high": ("status", "port: 65536", [PORT]),
    "a name": ("listen", "host: example.com", [HOST]),
    "brackets": ("listen", "host: '[::1]'", [HOST]),
    "a zone": ("listen", "host: 'fe80::1%eth0'", [HOST]),
    "TLS for the status": ("status", "tls: {}", ["tls: unknown key; the keys here are port, host"]),
    "half of TLS": ("listen", "tls: {cert: there}", ["tls.key: missing; it has no default"]),
    "an absent certificate": (
        "listen",
        "tls: {cert: gone, key: there}",
        ["tls.cert: the file gone isn't there or can't be read"],
    ),
    "no such requirement": (
        "auth",
        "require: kye",
        ["require: expected one of key, workload, either or none, not kye; did you mean key?"],
    ),
    "an absent file of keys": ("auth", "keys: gone", ["keys: the file gone isn't there or can't be read"]),
    "mTLS without": (
        "identity",
        "mode: mtls",
        [
            f"{key}: missing; mode mtls needs ca, cert, key, trust_domain"
            for key in ("ca", "cert", "key", "trust_domain")
        ],
    ),
    "forwarded without": (
        "identity",
        "mode: forwarded",
        [f"{key}: missing; mode forwarded needs trusted, trust_domain" for key in ("trusted", "trust_domain")],
    ),
    "forwarded with a CA": (
        "identity",
        "{mode: forwarded, trusted: [10.0.0.0/8], trust_domain: td, ca: there}",
        ["ca: has no use with mode forwarded; leave it out"],
    ),
    "no mode": ("identity", "trust_domain: td", ["trust_domain: has no use with mode none; leave it out"]),
    "trust in no one": (
        "identity",
        "{mode: forwarded, trusted: [], trust_domain: td}",
        ["trusted: trusts no one; name the networks of the proxies that may say who calls"],
    ),
    "trust in everyone": (
        "identity",
        "{mode: forwarded, trusted: ['::/0'], trust_domain: td}",
        ["trusted[0]: trusts every address, so that anyone could claim any identity; name the proxy's network"],
    ),
    "no network": (
        "identity",
        "{mode: forwarded, trusted: [10.0.0.1/8, x], trust_domain: td}",
        [f"trusted[0]: {NETWORK}", f"trusted[1]: {NETWORK}"],
    ),
    "no trust domain": (
        "identity",
        "{mode: forwarded, trusted: [10.0.0.0/8], trust_domain: 'spiffe://td'}",
        [f"trust_domain: {DOMAIN}"],
    ),
    "no such mode": (
        "identity",
        "mode: tls",
        ["mode: expected one of none, mtls or forwarded, not tls; did you mean mtls?"],
    ),
}


@pytest.mark.parametrize(("section", "text", "problems"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_section_is_a_problem(
    read_one: Any, facts: Facts, section: str, text: str, problems: list[str]
) -> None:
    assert [f"line 1: {problem}" for problem in problems] == read(read_one, facts, section, text)[1]


OPEN = Auth(require=Require.NONE)
KEYS = Auth(keys="keys.yaml")
ANYWHERE = Listen(port=8080, host="0.0.0.0")
HERE = Listen(port=8080)
STATUS = Listen(port=8081)
NO_ONE = Identity()
MESH = Identity(mode=IdentityMode.MTLS)
OPEN_PROBLEM = (
    "auth.require: none lets anyone who reaches 0.0.0.0 use your accounts;"
    " listen on 127.0.0.1, require keys, or say allow_open: true"
)
NO_KEYS = (
    "auth.keys: missing; require: {} needs the file of the keys, such as keys.yaml (or say require: none, on loopback)"
)
NO_IDENTITY = "auth.require: {} needs identity.mode mtls or forwarded, to know a workload by"
TOGETHER = {
    "keys anywhere": (ANYWHERE, STATUS, KEYS, NO_ONE, []),
    "open on loopback": (HERE, STATUS, OPEN, NO_ONE, []),
    "open on another loopback address": (Listen(port=1, host="127.8.9.1"), STATUS, OPEN, NO_ONE, []),
    "open on IPv6's loopback": (Listen(port=1, host="::1"), STATUS, OPEN, NO_ONE, []),
    "open anywhere": (ANYWHERE, STATUS, OPEN, NO_ONE, [OPEN_PROBLEM]),
    "open anywhere on purpose": (ANYWHERE, STATUS, Auth(require=Require.NONE, allow_open=True), NO_ONE, []),
    "one port": (
        HERE,
        Listen(port=8080),
        KEYS,
        NO_ONE,
        ["status.port: 8080 is the public listener's port too; choose another"],
    ),
    "no file of keys": (HERE, STATUS, Auth(), NO_ONE, [NO_KEYS.format("key")]),
    "workloads alone": (HERE, STATUS, Auth(require=Require.WORKLOAD), MESH, []),
    "workloads unproved": (HERE, STATUS, Auth(require=Require.WORKLOAD), NO_ONE, [NO_IDENTITY.format("workload")]),
    "either, with neither": (
        HERE,
        STATUS,
        Auth(require=Require.EITHER),
        NO_ONE,
        [NO_KEYS.format("either"), NO_IDENTITY.format("either")],
    ),
    "two certificates": (
        Listen(port=1, tls=Tls(cert="a", key="b")),
        STATUS,
        KEYS,
        MESH,
        ["listen.tls: identity.mode mtls brings the certificate: leave listen.tls out"],
    ),
    "nothing is judged by what is broken": (None, None, None, None, []),
    "an identity that is broken": (HERE, STATUS, Auth(require=Require.WORKLOAD), None, []),
}


@pytest.mark.parametrize(("public", "health", "who", "proof", "problems"), TOGETHER.values(), ids=TOGETHER)
def test_sections_are_judged_together(
    read_one: Any, public: Listen, health: Listen, who: Auth, proof: Identity, problems: list[str]
) -> None:
    def check(at: At) -> None:
        entry.check(at, public, health, who, proof)

    assert [f"line 1: {problem}" for problem in problems] == read_one(check, "{}")[1]
