"""Load the YAML templates of `envoy/`, and write what was made of them."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
from typing import Any

import msgspec
import yaml


@functools.cache
def _parsed(name: str) -> bytes:
    text = importlib.resources.files("zurelay_envoy").joinpath(name).read_text("utf-8")
    return msgspec.json.encode(yaml.safe_load(text))


def template(name: str) -> Any:
    """Give a fresh copy of a template; nothing in it is shared, anchors are written out."""
    return msgspec.json.decode(_parsed(name))


@functools.cache
def script(name: str) -> str:
    """Give the text of a Lua script."""
    return importlib.resources.files("zurelay_envoy").joinpath(name).read_text("utf-8")


def dump(config: Any) -> str:
    """Write a configuration as JSON: unlike YAML it has one reading of every string."""
    return msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"


def discovery(resources: list[Any]) -> str:
    """Write a DiscoveryResponse, its version the hash of what it says: Envoy tells it back in its statistics."""
    version = hashlib.sha256(msgspec.json.encode(resources)).hexdigest()[:16]
    return dump({"version_info": version, "resources": resources})


def literal(value: str) -> str:
    """Escape a value that Envoy would read as a format string."""
    return value.replace("%", "%%")


def duration(seconds: float) -> str:
    """Write a time as Envoy reads it, to the millisecond."""
    return f"{seconds:.3f}s"
