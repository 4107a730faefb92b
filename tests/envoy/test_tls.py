"""Certificates, for real: those of providers, ours, and those of clients."""

import datetime as dt
import http.client
import ipaddress
import pathlib
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from envoy_testbed import Testbed, free_port, provider, settings
from envoy_toys import RecordingProvider
from zurelay import envoy
from zurelay.model import Http, Identity, IdentityMode, Listen, Tls

BUSINESS = "spiffe://mesh.example/ns/shop/sa/cart"
OTHER = "spiffe://mesh.example/ns/shop/sa/other"


def serving(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def write(path: pathlib.Path, blob: trustme.Blob) -> str:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(blob.bytes())
    fresh.rename(path)
    return str(path)


def workload(authority: trustme.CA, directory: pathlib.Path, *uris: str) -> ssl.SSLContext:
    """Make a client whose certificate carries these URIs."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "workload")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in uris] or [x509.DNSName("x")]),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    pem = directory / f"client-{len(uris)}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.load_cert_chain(pem)
    return context


@pytest.fixture(scope="module", name="authority")
def _authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module", name="upstream")
def _upstream(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """A gateway whose providers differ in their certificates; `right` answers for any of them."""
    directory = tmp_path_factory.mktemp("t")
    trusted = write(directory / "ca.pem", authority.cert_pem)
    servers = {
        "named": RecordingProvider("named", serving(authority, "localhost")),
        "address": RecordingProvider("address", serving(authority, "127.0.0.1")),
        "misplaced": RecordingProvider("misplaced", serving(authority, "localhost")),
        "other": RecordingProvider("other", serving(authority, "elsewhere.example")),
        "stranger": RecordingProvider("stranger", serving(trustme.CA(), "localhost")),
        "plain": RecordingProvider("plain"),
    }
    port = free_port()
    hosts = {"address": "127.0.0.1", "misplaced": "127.0.0.1"}
    listed = [
        provider(name, f"https://{hosts.get(name, 'localhost')}:{server.port}/v1", ca=trusted)
        for name, server in servers.items()
        if name != "plain"
    ]
    listed += [provider(f"by-{http.value}", f"https://localhost:{port}/v1", ca=trusted, http=http) for http in Http]
    listed.append(provider("plain", f"http://127.0.0.1:{servers['plain'].port}/v1"))

    def add_both(name: str, config: Any) -> None:
        if name == envoy.LISTENERS_FILE:
            config["resources"].append(both_versions(authority, port))

    with Testbed(directory, settings(*listed), add_both) as bed:
        bed.wait(lambda: bed.ask("/ready", path=bed.runtime.path(envoy.ADMIN_SOCKET)).status == 200)
        yield bed
    for each in servers.values():
        each.stop()


def both_versions(authority: trustme.CA, port: int) -> dict[str, Any]:
    """A provider that speaks HTTP/1.1 and HTTP/2 and answers with what it was asked in."""
    certificate = authority.issue_cert("localhost")
    chain = "".join(blob.bytes().decode() for blob in certificate.cert_chain_pems)
    context = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [
                {
                    "certificate_chain": {"inline_string": chain},
                    "private_key": {"inline_string": certificate.private_key_pem.bytes().decode()},
                }
            ],
        },
    }
    said = {"inline_string": "%PROTOCOL% %REQ(:scheme)% %REQ(:authority)%"}
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
        "HttpConnectionManager",
        "stat_prefix": "both",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "direct_response": {
                                "status": 200,
                                "body": {"inline_string": "-"},
                                "body_format": {"text_format_source": said},
                            },
                        }
                    ],
                }
            ]
        },
        "http_filters": [
            {
                "name": "router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    return {
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": "both",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {
                "transport_socket": {"name": "tls", "typed_config": context},
                "filters": [{"name": "hcm", "typed_config": manager}],
            }
        ],
    }


@pytest.mark.parametrize("name", ["named", "address"])
def test_a_provider_with_the_right_certificate_answers(upstream: Testbed, name: str) -> None:
    answer = upstream.ask(body={}, test={"plan": [f"{name}.first"]})

    assert answer.status == 200


@pytest.mark.parametrize("name", ["other", "misplaced", "stranger"])
def test_a_certificate_for_another_host_or_of_a_stranger_moves_the_plan_on(upstream: Testbed, name: str) -> None:
    alone = upstream.ask(body={}, test={"plan": [f"{name}.first"]})
    together = upstream.ask(body={}, test={"plan": [f"{name}.first", "plain.whole"]})

    assert (alone.status, together.status) == (503, 200)
    assert "certificate" not in alone.body.decode().lower()


def test_a_providers_replaced_authority_is_taken_up(authority: trustme.CA, tmp_path: pathlib.Path) -> None:
    server = RecordingProvider("p", serving(authority, "localhost"))
    trusted = write(tmp_path / "ca.pem", trustme.CA().cert_pem)
    listed = provider("p", f"https://localhost:{server.port}/v1", ca=trusted)

    with Testbed(tmp_path, settings(listed)) as bed:
        before = bed.ask(body={}, test={"plan": ["p.first"]}).status
        write(tmp_path / "ca.pem", authority.cert_pem)
        bed.wait(lambda: bed.ask(body={}, test={"plan": ["p.first"]}).status == 200)

    server.stop()
    assert before == 503


@pytest.mark.parametrize(
    ("http_", "version"), [(Http.AUTO, "HTTP/2"), (Http.HTTP2, "HTTP/2"), (Http.HTTP1, "HTTP/1.1")]
)
@pytest.mark.parametrize("kind", ["first", "whole"])
def test_a_provider_is_spoken_to_in_the_version_that_is_set(
    upstream: Testbed, http_: Http, version: str, kind: str
) -> None:
    answer = upstream.ask(body={}, test={"plan": [f"by-{http_.value}.{kind}"]})

    found, scheme, authority = answer.body.decode().split()
    assert (found, scheme, authority.partition(":")[0]) == (version, "https", "localhost")


@pytest.fixture(scope="module", name="mutual")
def _mutual(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    directory = tmp_path_factory.mktemp("m")
    certificate = authority.issue_cert("localhost")
    identity = Identity(
        mode=IdentityMode.MTLS,
        ca=write(directory / "ca.pem", authority.cert_pem),
        cert=write(directory / "cert.pem", certificate.cert_chain_pems[0]),
        key=write(directory / "key.pem", certificate.private_key_pem),
    )
    plain = RecordingProvider("plain")
    listed = provider("plain", f"http://127.0.0.1:{plain.port}/v1")
    with Testbed(directory, settings(listed, identity=identity)) as bed:
        yield bed
    plain.stop()


@pytest.mark.parametrize(
    ("uris", "expected"),
    [((BUSINESS,), BUSINESS), ((BUSINESS, OTHER), f"{BUSINESS},{OTHER}"), ((), None)],
    ids=["one", "two", "none"],
)
def test_the_sidecar_is_told_every_uri_of_a_clients_certificate(
    mutual: Testbed, authority: trustme.CA, tmp_path: pathlib.Path, uris: tuple[str, ...], expected: str | None
) -> None:
    mutual.sidecar.seen.clear()
    forged = {"x-forwarded-client-cert": f"URI={OTHER}", "peer-uris": OTHER}

    answer = mutual.ask(
        body={}, test={"immediate": [200, ""]}, headers=forged, context=workload(authority, tmp_path, *uris)
    )

    ((_, metadata, headers),) = mutual.sidecar.seen
    assert answer.status == 200
    assert metadata.get(envoy.PEER_URIS) == expected
    assert "x-forwarded-client-cert" not in headers


def test_a_client_without_a_certificate_or_with_a_strangers_gets_nowhere(
    mutual: Testbed, authority: trustme.CA, tmp_path: pathlib.Path
) -> None:
    mutual.sidecar.seen.clear()
    bare = ssl.create_default_context()
    stranger = workload(trustme.CA(), tmp_path, BUSINESS)
    for context in (bare, stranger):
        authority.configure_trust(context)

        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            mutual.ask(body={}, test={"immediate": [200, ""]}, context=context)

    assert mutual.sidecar.seen == []


def test_probes_need_no_certificate(mutual: Testbed) -> None:
    assert mutual.ask("/healthz", port=mutual.status_port).status == 200


def test_a_replaced_server_certificate_is_taken_up(authority: trustme.CA, tmp_path: pathlib.Path) -> None:
    old, new = authority.issue_cert("localhost"), authority.issue_cert("localhost", "new.example")
    tls = Tls(
        cert=write(tmp_path / "cert.pem", old.cert_chain_pems[0]), key=write(tmp_path / "key.pem", old.private_key_pem)
    )
    context = ssl.create_default_context()
    authority.configure_trust(context)

    def names(bed: Testbed) -> list[Any]:
        connection = http.client.HTTPSConnection("localhost", bed.port, context=context)
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        found: dict[str, Any] = connection.sock.getpeercert() or {}
        connection.close()
        return [name for _, name in found["subjectAltName"]]

    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1"), listen=Listen(port=1, tls=tls))) as bed:
        assert names(bed) == ["localhost"]
        write(tmp_path / "key.pem", new.private_key_pem)
        write(tmp_path / "cert.pem", new.cert_chain_pems[0])
        bed.wait(lambda: names(bed) == ["localhost", "new.example"])


def test_a_trusted_proxys_word_and_address_reach_the_sidecar(tmp_path: pathlib.Path) -> None:
    identity = Identity(mode=IdentityMode.FORWARDED, trusted=("127.0.0.1/32",))
    said = {"x-forwarded-client-cert": f"By=x;URI={OTHER},By=y;URI={BUSINESS}", "x-forwarded-for": "203.0.113.9"}

    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1"), identity=identity)) as bed:
        bed.ask(body={}, test={"immediate": [200, ""]}, headers=said)

    ((_, metadata, headers),) = bed.sidecar.seen
    assert headers["x-forwarded-client-cert"] == said["x-forwarded-client-cert"]
    assert metadata[envoy.PEER_ADDRESS] == str(ipaddress.ip_address("127.0.0.1"))
