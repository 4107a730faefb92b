"""A workload is what its certificate says, or what a trusted proxy says of it; nothing else makes one (SPEC 12)."""

from __future__ import annotations

import pytest

from zurelay.errors import Unauthenticated
from zurelay.identity import Identifier, Peer, Workload, last_uris
from zurelay.model import Identity, IdentityMode

PAY = "spiffe://mesh/ns/payments/sa/api"
MTLS = Identifier(Identity(mode=IdentityMode.MTLS, trust_domain="mesh"))
FORWARDED = Identifier(Identity(mode=IdentityMode.FORWARDED, trust_domain="mesh", trusted=("10.1.0.0/16", "fd00::/8")))
NONE = Identifier(Identity())


def test_the_certificates_one_identity_is_the_workload() -> None:
    assert Workload("payments", "api") == MTLS.workload(Peer(uris=PAY), {})


@pytest.mark.parametrize(
    "uris",
    [
        "",
        "https://a.example",
        f"{PAY},{PAY}",
        f"{PAY},spiffe://mesh/ns/other/sa/x",
        "spiffe://elsewhere/ns/payments/sa/api",
        "spiffe://mesh/ns/payments",
        "spiffe://mesh/ns/payments/sa/api/x",
        "spiffe://mesh/ns//sa/api",
        "spiffe://mesh/ns/pay ments/sa/api",
        "spiffe://mesh/ns/payments/sa/api\n",
        "SPIFFE://mesh/ns/payments/sa/api",
        "spiffe://mesh.evil/ns/payments/sa/api",
        f"https://a.example,{PAY}",
        f"{PAY},x",
        f"x,{PAY}",
        f"{PAY},",
        "spiffe://mesh/ns/../sa/api",
        "spiffe://mesh/ns/payments/sa/..",
        "spiffe://mesh/ns/pay.ments/sa/api",
        "spiffe://mesh/ns/-payments/sa/api",
        "spiffe://mesh/ns/payments-/sa/api",
        "spiffe://mesh/ns/payments/sa/a..b",
        "spiffe://mesh/ns/payments/sa/.api",
        f"spiffe://mesh/ns/{'a' * 64}/sa/api",
        f"spiffe://mesh/ns/payments/sa/{'.'.join(['a' * 63] * 4)}",
        "spiffe://mesh/ns/päy/sa/api",
        "spiffe://mesh/ns/payments/sa/api?x",
    ],
)
def test_a_certificate_that_proves_no_single_workload_is_refused(uris: str) -> None:
    with pytest.raises(Unauthenticated):
        MTLS.workload(Peer(uris=uris), {"x-forwarded-client-cert": f"URI={PAY}"})


@pytest.mark.parametrize(
    ("namespace", "account"),
    [("a", "b"), ("a" * 63, ".".join(["a" * 63] * 3 + ["b" * 61])), ("team-1", "api.v2.internal"), ("0", "0")],
)
def test_the_names_that_kubernetes_gives_are_read(namespace: str, account: str) -> None:
    assert Workload(namespace, account) == MTLS.workload(Peer(uris=f"spiffe://mesh/ns/{namespace}/sa/{account}"), {})


@pytest.mark.parametrize(
    "told",
    [f"URI={PAY};URI=https://a.example", f"URI={PAY};URI={PAY}", f"Hash=ab;By={PAY}", 'URI="spiffe://mesh/ns/../sa/a"'],
)
def test_a_trusted_proxy_that_tells_of_no_single_workload_is_refused(told: str) -> None:
    with pytest.raises(Unauthenticated):
        FORWARDED.workload(Peer(address="10.1.0.1"), {"x-forwarded-client-cert": told})


@pytest.mark.parametrize("address", ["10.1.2.3", "fd00::1", "::ffff:10.1.2.3"])
def test_a_trusted_proxys_word_counts(address: str) -> None:
    headers = {"x-forwarded-client-cert": f"By=spiffe://mesh/ns/a/sa/b;Hash=ab;URI={PAY}"}
    assert Workload("payments", "api") == FORWARDED.workload(Peer(address=address), headers)


@pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "", "nonsense", "fe80::1"])
def test_anybody_elses_word_counts_for_nothing(address: str) -> None:
    assert FORWARDED.workload(Peer(address=address), {"x-forwarded-client-cert": f"URI={PAY}"}) is None


def test_a_trusted_proxy_that_says_nothing_makes_no_workload() -> None:
    assert FORWARDED.workload(Peer(address="10.1.0.1"), {}) is None


def test_without_a_mode_nobody_is_a_workload() -> None:
    assert NONE.workload(Peer(uris=PAY, address="10.1.0.1"), {"x-forwarded-client-cert": f"URI={PAY}"}) is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"URI={PAY}", [PAY]),
        (f"uri={PAY}", [PAY]),
        (f"URI=spiffe://mesh/ns/forged/sa/x,URI={PAY}", [PAY]),
        (f"URI={PAY},Hash=ab", []),
        (f'Subject="O=a, URI=spiffe://mesh/ns/forged/sa/x;b";URI={PAY}', [PAY]),
        (f'Subject="a\\"b,URI=x";URI="{PAY}"', [PAY]),
        (f"URI={PAY};URI=https://a.example", [PAY, "https://a.example"]),
        (f"By=x;URI={PAY};", [PAY]),
        ('Subject="never closed, URI=x', []),
        ("nonsense", []),
        ("URI=a b=c", ["a b=c"]),
        (",", []),
        ("", []),
    ],
)
def test_only_the_last_elements_uris_are_read(header: str, expected: list[str]) -> None:
    assert expected == last_uris(header)
