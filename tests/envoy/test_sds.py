import json
from typing import Any

import pytest

from envoy_testbed import provider, settings
from zurelay import envoy
from zurelay.envoy import sds
from zurelay.model import Identity, IdentityMode, Listen, Provider, Secret, Tls

TLS = Tls(cert="/tls/cert.pem", key="/tls/key.pem")
MTLS = Identity(mode=IdentityMode.MTLS, ca="/mesh/ca.pem", cert="/mesh/cert.pem", key="/mesh/key.pem")


def resources(**facts: Any) -> dict[str, Any]:
    of_provider = {name: facts.pop(name) for name in ("api_key", "ca") if name in facts}
    name = facts.pop("name", "p")
    files = envoy.secrets(settings(provider(name, "http://127.0.0.1:1", **of_provider), **facts))
    found = {}
    for file, text in files.items():
        (resource,) = json.loads(text)["resources"]
        assert resource.pop("@type").endswith(".Secret")
        assert file == sds.secret_file(resource["name"])
        found[resource.pop("name")] = resource
    return found


def given(name: str = "p", **facts: Any) -> Provider:
    return provider(name, "http://127.0.0.1:1", **facts)


@pytest.mark.parametrize(
    "other",
    [
        provider("p", "http://127.0.0.1:2", api_key=Secret(env="KEY")),
        provider("p", "https://127.0.0.1:1", api_key=Secret(env="KEY")),
        provider("p", "http://127.0.0.1:1", api_key=Secret(env="OTHER")),
        provider("p", "http://127.0.0.1:1", api_key=Secret(file="KEY")),
    ],
)
def test_another_address_or_key_makes_another_secret(other: Provider) -> None:
    assert sds.provider_secret(other) != sds.provider_secret(given(api_key=Secret(env="KEY")))
    assert sds.identity(other) != sds.identity(given(api_key=Secret(env="KEY")))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Secret(env="KEY"), {"environment_variable": "KEY"}),
        (Secret(file="/run/key"), {"filename": "/run/key"}),
    ],
)
def test_a_providers_key_is_named_and_not_told(key: Secret, expected: dict[str, str]) -> None:
    name = sds.provider_secret(given(api_key=key))
    assert resources(api_key=key) == {name: {"generic_secret": {"secret": expected}}}


def test_a_providers_authority_is_watched() -> None:
    assert resources(ca="/tls/ca.pem") == {
        sds.authority_secret(given(ca="/tls/ca.pem")): {
            "validation_context": {"trusted_ca": {"filename": "/tls/ca.pem"}, "watched_directory": {"path": "/tls"}}
        }
    }


def test_without_keys_and_certificates_there_are_no_secrets() -> None:
    assert resources() == {}


@pytest.mark.parametrize("name", ["a/b", "..", "a b", "ä", "%2F"])
def test_any_provider_name_makes_one_plain_file_name(name: str) -> None:
    secret = sds.provider_secret(given(name, api_key=Secret(env="KEY")))
    file = sds.secret_file(secret)

    assert "/" not in file
    assert file.isascii()
    assert secret in resources(name=name, api_key=Secret(env="KEY"))


@pytest.mark.parametrize(
    ("tls", "identity", "expected"),
    [
        (None, Identity(), None),
        (TLS, Identity(), ("/tls/cert.pem", "/tls/key.pem")),
        (None, MTLS, ("/mesh/cert.pem", "/mesh/key.pem")),
        (TLS, MTLS, ("/mesh/cert.pem", "/mesh/key.pem")),
        (TLS, Identity(mode=IdentityMode.MTLS, ca="/mesh/ca.pem"), ("/tls/cert.pem", "/tls/key.pem")),
    ],
    ids=["none", "tls", "mtls", "both", "mtls with the server's"],
)
def test_the_server_certificate_is_the_identitys_or_the_listeners(
    tls: Tls | None, identity: Identity, expected: tuple[str, str] | None
) -> None:
    given = settings(provider("p", "http://127.0.0.1:1"), listen=Listen(port=1, tls=tls), identity=identity)

    assert sds.server_certificate(given) == expected


def test_certificate_and_key_are_watched_together() -> None:
    found = resources(listen=Listen(port=1, tls=TLS), identity=MTLS)

    assert found == {
        "server": {
            "tls_certificate": {
                "certificate_chain": {"filename": "/mesh/cert.pem"},
                "private_key": {"filename": "/mesh/key.pem"},
                "watched_directory": {"path": "/mesh"},
            }
        },
        "clients": {
            "validation_context": {
                "trusted_ca": {"filename": "/mesh/ca.pem"},
                "watched_directory": {"path": "/mesh"},
            }
        },
    }
