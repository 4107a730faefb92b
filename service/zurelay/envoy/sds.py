"""Secrets: where Envoy finds provider keys and certificates; names of variables and files, never a secret itself."""

from __future__ import annotations

import posixpath
import urllib.parse
from typing import Any

from zurelay.envoy.runtime import Runtime
from zurelay.envoy.templates import discovery
from zurelay.model import IdentityMode, Secret, Settings

SERVER = "server"
CLIENTS = "clients"


def secret_file(name: str) -> str:
    """Name the file of a secret; a provider may be called anything."""
    return f"secret.{urllib.parse.quote(name, safe='')}.json"


def provider_secret(provider: str) -> str:
    """Name the secret that holds a provider's credential."""
    return f"provider.{provider}"


def authority_secret(provider: str) -> str:
    """Name the secret that holds the authority which signs for a provider."""
    return f"authority.{provider}"


def reference(name: str, runtime: Runtime) -> dict[str, Any]:
    """Say where a secret is found (SdsSecretConfig)."""
    source = {"path": runtime.path(secret_file(name)), "watched_directory": {"path": runtime.directory}}
    return {"name": name, "sds_config": {"resource_api_version": "V3", "path_config_source": source}}


def secrets(settings: Settings) -> dict[str, str]:
    """Write one file a secret; Envoy follows the files that they name, a replaced certificate or key is taken up."""
    found: dict[str, dict[str, Any]] = {}
    for provider in settings.providers.values():
        if provider.api_key is not None:
            found[provider_secret(provider.name)] = {"generic_secret": {"secret": _source(provider.api_key)}}
        if provider.ca is not None:
            found[authority_secret(provider.name)] = _authority(provider.ca)
    certificate = server_certificate(settings)
    if certificate is not None:
        found[SERVER] = {"tls_certificate": _pair(*certificate)}
    identity = settings.identity
    if identity.mode is IdentityMode.MTLS and identity.ca is not None:
        found[CLIENTS] = _authority(identity.ca)
    return {secret_file(name): discovery([_resource(name, value)]) for name, value in found.items()}


def server_certificate(settings: Settings) -> tuple[str, str] | None:
    """Give certificate and key of the public listener, None where clients speak plain HTTP."""
    identity, tls = settings.identity, settings.listen.tls
    if identity.mode is IdentityMode.MTLS and identity.cert is not None and identity.key is not None:
        return identity.cert, identity.key
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
