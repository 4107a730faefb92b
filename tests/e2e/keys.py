"""Keys files for tests: known keys, each with its rules; and what `zurelay usage` says."""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
from typing import Any

import yaml

from e2e.harness import ZURELAY, Gateway


def key_of(name: str) -> str:
    """The key of a name."""
    return f"zk_{name}".ljust(46, "0")


def bearer(name: str) -> dict[str, str]:
    """The header that carries a key."""
    return {"authorization": f"Bearer {key_of(name)}"}


def write_keys(directory: pathlib.Path, **rules: dict[str, Any]) -> dict[str, Any]:
    """Write keys.yaml; gives the `auth` section that names it."""
    entries = [
        {"name": name, "digest": "sha256:" + hashlib.sha256(key_of(name).encode()).hexdigest(), **rule}
        for name, rule in rules.items()
    ]
    fresh = directory / "keys.new"
    fresh.write_text(yaml.safe_dump({"keys": entries}))
    fresh.rename(directory / "keys.yaml")
    return {"require": "key", "keys": "keys.yaml"}


def usage(gateway: Gateway, by: str = "key") -> dict[str, dict[str, Any]]:
    """What `zurelay usage` says, by the first of the names that it sums by."""
    command = [*ZURELAY, "usage", "--config", str(gateway.file), "--json", "--by", by]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return {row[by.split(",", maxsplit=1)[0]]: row for row in json.loads(done.stdout)["rows"]}
