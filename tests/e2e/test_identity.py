"""SPEC 12 through the real Envoy: who calls is what a certificate proves, or a trusted proxy says; never a header."""

from __future__ import annotations

import datetime as dt
import pathlib
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, until
from e2e.keys import bearer, usage, write_keys

CART = "spiffe://mesh.example/ns/shop/sa/cart"
PAY = "spiffe://mesh.example/ns/pay/sa/api"
POLICIES = [
    {"name": "shop-only-solo", "match": {"namespace": "shop"}, "models": {"allow": ["solo"]}},
    {"name": "proved", "match": {"service_account": "api"}, "models": {"deny": ["solo"]}},
]


class Mesh:
    """An authority, and clients with certificates of it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.authority = trustme.CA()
        self.directory = directory
        self._number = 0
        self.authority.cert_pem.write_to_path(directory / "ca.pem")
        server = self.authority.issue_cert("127.0.0.1")
        server.cert_chain_pems[0].write_to_path(directory / "cert.pem")
        server.private_key_pem.write_to_path(directory / "key.pem")

    def client(self, *uris: str, by: trustme.CA | None = None) -> ssl.SSLContext:
        """Make a client whose certificate carries these URIs."""
        context = self.stranger()
        self._number += 1
        file = self.directory / f"client-{self._number}.pem"
        file.write_bytes(_certificate(by or self.authority, uris))
        context.load_cert_chain(file)
        return context

    def stranger(self) -> ssl.SSLContext:
        """Make a client without a certificate."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


def _certificate(authority: trustme.CA, uris: tuple[str, ...]) -> bytes:
    """A certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
    names = names or [x509.DNSName("client")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "workload")]))
        .issuer_name(x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem) + secret


def gateway_of(directory: pathlib.Path, provider: Provider, **settings: Any) -> Gateway:
    auth = write_keys(directory, team={}) | {"require": settings.pop("require")}
    config = catalog(provider.port) | {"auth": auth, "workers": 1, "policies": POLICIES} | settings
    return Gateway(directory, config)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return Mesh(tmp_path_factory.mktemp("mesh"))


@pytest.fixture(scope="module")
def mutual(provider: Provider, mesh: Mesh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that wants certificates; each test may say `auth.require` anew."""
    files = {name: str(mesh.directory / f"{name}.pem") for name in ("ca", "cert", "key")}
    identity = {"mode": "mtls", "trust_domain": "mesh.example", **files}
    running = gateway_of(
        tmp_path_factory.mktemp("mutual"), provider, require="workload", identity=identity
    ).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


def call(
    gateway: Gateway, context: ssl.SSLContext, model: str = "solo", headers: dict[str, str] | None = None
) -> httpx.Response:
    url = gateway.url.replace("http://", "https://") + "/v1/chat/completions"
    return httpx.post(url, content=msgspec.json.encode(ask(model)), headers=headers, verify=context, timeout=30)


def test_a_certificate_with_one_identity_is_a_workload_that_policies_bind(mutual: Gateway, mesh: Mesh) -> None:
    cart = mesh.client(CART)
    assert 200 == call(mutual, cart).status_code
    refused = call(mutual, cart, "trio")
    assert (403, "policy_denied") == (refused.status_code, refused.json()["error"]["code"])
    assert 200 == call(mutual, mesh.client(PAY), "trio").status_code
    until(lambda: usage(mutual, "workload").get("shop/cart"))
    assert any('"workload":"shop/cart"' in line for line in mutual.log)


@pytest.mark.parametrize(
    "uris",
    [
        (),
        (CART, PAY),
        ("spiffe://other.example/ns/shop/sa/cart",),
        ("spiffe://mesh.example/shop/cart",),
        ("https://mesh.example/ns/shop/sa/cart",),
        (f"{CART},x",),
        (f"https://other.example,{CART}",),
        ("spiffe://mesh.example/ns/../sa/cart",),
    ],
    ids=["none", "two", "another trust domain", "another form", "no SPIFFE", "a comma", "a comma before", "dots"],
)
def test_a_certificate_that_proves_no_single_workload_is_a_401(
    mutual: Gateway, mesh: Mesh, uris: tuple[str, ...]
) -> None:
    refused = call(mutual, mesh.client(*uris))
    assert (401, "authentication_error") == (refused.status_code, refused.json()["error"]["type"])


def test_no_certificate_or_one_of_another_authority_gets_no_connection(mutual: Gateway, mesh: Mesh) -> None:
    for context in (mesh.stranger(), mesh.client(CART, by=trustme.CA())):
        with pytest.raises(httpx.TransportError):
            call(mutual, context)


def test_headers_that_a_client_writes_prove_nothing(mutual: Gateway, mesh: Mesh) -> None:
    forged = {"x-forwarded-client-cert": f"URI={PAY}", "peer-uris": PAY, "peer-address": "127.0.0.1"}
    assert 403 == call(mutual, mesh.client(CART), "trio", forged).status_code
    assert 401 == call(mutual, mesh.client(), "trio", forged).status_code


def forwarded(directory: pathlib.Path, provider: Provider, require: str, trusted: str, **settings: Any) -> Gateway:
    identity = {"mode": "forwarded", "trusted": [trusted], "trust_domain": "mesh.example"}
    return gateway_of(directory, provider, require=require, identity=identity, **settings).wait_ready()


def xfcc(value: str) -> dict[str, str]:
    return {"x-forwarded-client-cert": value}


def test_a_trusted_proxy_says_who_calls_by_the_last_element(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gateway = forwarded(tmp_path_factory.mktemp("forwarded"), provider, "either", "127.0.0.0/8")
    try:
        for headers, model, status in (
            (xfcc(f"URI={CART}"), "solo", 200),
            (xfcc(f"URI={CART}"), "trio", 403),
            (xfcc(f"URI={CART},By=x;Hash=ab;URI={PAY}"), "trio", 200),
            (xfcc(f'Subject="a,URI={CART}";URI={PAY}'), "trio", 200),
            (xfcc(f"URI={CART};URI={PAY}"), "solo", 401),
            (xfcc("Hash=ab"), "solo", 401),
            ({}, "solo", 401),
            (bearer("team"), "trio", 200),
            (bearer("team") | xfcc(f"URI={CART}"), "trio", 403),
            (bearer("nobody") | xfcc(f"URI={CART}"), "solo", 401),
            ({"authorization": "Bearer unused"} | xfcc(f"URI={CART}"), "solo", 200),
        ):
            answer = gateway.chat(ask(model), headers)
            assert status == answer.status_code, (headers, model, answer.text)
        assert not [record for record in provider.requests if "x-forwarded-client-cert" in dict(record.headers)]
    finally:
        gateway.stop()


def test_a_peer_that_is_not_trusted_says_nothing(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> None:
    gateway = forwarded(tmp_path_factory.mktemp("untrusted"), provider, "either", "10.0.0.0/8")
    try:
        assert 401 == gateway.chat(ask("solo"), xfcc(f"URI={CART}")).status_code
        lying = xfcc(f"URI={CART}") | {"x-forwarded-for": "10.0.0.1", "peer-address": "10.0.0.1"}
        assert 401 == gateway.chat(ask("solo"), lying).status_code
        assert 200 == gateway.chat(ask("trio"), bearer("team") | xfcc(f"URI={CART}")).status_code
    finally:
        gateway.stop()
