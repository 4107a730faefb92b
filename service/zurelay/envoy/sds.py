"""Secrets: where Envoy finds provider keys and certificates; names of variables and files, never a secret itself."""

from __future__ import annotations

import hashlib
import posixpath
import urllib.parse
from typing import Any

import msgspec

from zurelay.envoy.runtime import Runtime
from zurelay.envoy.templates import discovery
from zurelay.model import IdentityMode, Provider, Secret, Settings

SERVER = "server"
CLIENTS = "clients"


def secret_file(name: str) -> str:
    """Name the file of a secret; a provider may be called anything."""
    return f"secret.{urllib.parse.quote(name, safe='')}.json"


def identity(provider: Provider) -> str:
    """Name a provider as it is now: with another address or credential it is another.

    So a reload never mixes them: a new key to the old address, or an old plan to the new one.
    """
    facts = [provider.base_url, provider.format, provider.api_key, provider.ca]
    return f"{provider.name}.{hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:8]}"


def provider_secret(provider: Provider) -> str:
    """Name the secret that holds a provider's credential."""
    return f"provider.{identity(provider)}"


def authority_secret(provider: Provider) -> str:
    """Name the secret that holds the authority which signs for a provider."""
    return f"authority.{identity(provider)}"


def reference(name: str, runtime: Runtime) -> dict[str, Any]:
    """Say where a secret is found (SdsSecretConfig)."""
    source = {"path": runtime.path(secret_file(name)), "watched_directory": {"path": runtime.directory}}
    return {"name": name, "sds_config": {"resource_api_version": "V3", "path_config_source": source}}


def secrets(settings: Settings) -> dict[str, str]:
    """Write one file a secret; Envoy follows the files that they name, a replaced certificate or key is taken up."""
    found: dict[str, dict[str, Any]] = {}
    for provider in settings.providers.values():
        if provider.api_key is not None:
            found[provider_secret(provider)] = {"generic_secret": {"secret": _source(provider.api_key)}}
        if provider.ca is not None:
            found[authority_secret(provider)] = _authority(provider.ca)
    certificate = server_certificate(settings)
    if certificate is not None:
        found[SERVER] = {"tls_certificate": _pair(*certificate)}
    clients = settings.identity
    if clients.mode is IdentityMode.MTLS and clients.ca is not None:
        found[CLIENTS] = _authority(clients.ca)
    return {secret_file(name): discovery([_resource(name, value)]) for name, value in found.items()}


def server_certificate(settings: Settings) -> tuple[str, str] | None:
    """Give certificate and key of the public listener, None where clients speak plain HTTP."""
    mtls, tls = settings.identity, settings.listen.tls
    if mtls.mode is IdentityMode.MTLS and mtls.cert is not None and mtls.key is not None:
        return mtls.cert, mtls.key
    return None if tls is None else (tls.cert, tls.key)


def _resource(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": name, **value}


def _source(secret: Secret) -> dict[str, str | None]:
    return {"environment_variable": secret.env} if secret.env is not None else {"filename": secret.file}


def _authority(file: str) -> dict[str, Any]:
    return {
        "validation_context": {
            "trusted_ca": {"filename": file},
            "watched_directory": {"path": posixpath.dirname(file)},
        }
    }


def _pair(cert: str, key: str) -> dict[str, Any]:
    return {
        "certificate_chain": {"filename": cert},
        "private_key": {"filename": key},
        # Both change together, when their directory does.
        "watched_directory": {"path": posixpath.dirname(cert)},
    }
