"""Decisions without a gateway: what `zurelay explain` asks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.explain import explained
from zurelay.identity import Workload
from zurelay.policy import Policies
from zurelay.supervise import loading


class NoSuchKeyError(Exception):
    """The keys file has no key of that name."""


def decider(config: Path, key_name: str | None, workload: Workload | None = None) -> Callable[[bytes], dict[str, Any]]:
    """Give what decides requests by a configuration, for a key and a workload, or for nobody in particular."""
    loaded = loading.load(config, os.environ, elsewhere=True)
    catalog = Catalog(loaded.settings)
    policies = Policies(loaded.settings.policies)
    key = None
    if key_name is not None:
        found = next((key for key in loaded.keys if key.name == key_name), None)
        if found is None:
            raise NoSuchKeyError(f"there is no key {key_name!r} in {loaded.settings.auth.keys or 'the configuration'}")
        key = found
    caller = Caller(key=key, workload=workload)
    return lambda body: explained(catalog, body, caller, policies)
