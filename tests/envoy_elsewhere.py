"""Configurations for an Envoy elsewhere, with certificates that are there, and Envoy's own opinion of them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import trustme

from envoy_testbed import binary, key, provider, settings
from zurelay.envoy import Elsewhere
from zurelay.model import Format, Identity, IdentityMode, Secret, Settings

NAMES = ("plain", "secrets", "mtls")


def place(directory: pathlib.Path) -> Elsewhere:
    """Where all is."""
    return Elsewhere(
        sidecar=("zurelay.example", 9000), egress=("0.0.0.0", 10001), authorities=str(directory / "ca.pem")
    )


def made(name: str, directory: pathlib.Path) -> Settings:
    """Make settings by a name, and the files that they name."""
    authority = trustme.CA()
    certificate = authority.issue_cert("zurelay.example")
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(directory / "cert.pem"))
    certificate.private_key_pem.write_to_path(str(directory / "key.pem"))
    ca, cert, private = (str(directory / f"{each}.pem") for each in ("ca", "cert", "key"))
    plain = provider("p", "http://127.0.0.1:8000/v1")
    if name == "mtls":
        return settings(plain, identity=Identity(mode=IdentityMode.MTLS, ca=ca, cert=cert, key=private))
    if name == "plain":
        return settings(plain)
    return settings(
        provider("openai", "https://api.openai.example:443/v1", api_key=key("a")),
        provider("anthropic", "https://a.example:443/v1", format=Format.ANTHROPIC, api_key=Secret(file=private)),
        provider("own", "https://own.example:443/v1", ca=ca),
    )


def validated(config: Any, directory: pathlib.Path) -> str:
    """What Envoy says against a configuration; nothing when it takes it."""
    file = directory / "envoy.json"
    file.write_text(json.dumps(config))
    command = [binary(), "--mode", "validate", "-c", str(file), "-l", "warning"]
    env = {**os.environ, "KEY_OF_A": "a", "OPENAI_API_KEY": "b"}  # Envoy refuses a static secret that isn't there
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return done.stderr if done.returncode else ""
