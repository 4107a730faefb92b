"""What commands ask without a gateway: decisions for `zurelay explain`, an Envoy's opinion for `zurelay check`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.contract import NotEnvoyError
from zurelay.explain import explained
from zurelay.identity import Workload
from zurelay.policy import Policies
from zurelay.problems import Problem
from zurelay.supervise import agreement, loading
from zurelay.supervise.admin import Admin, AdminError
from zurelay.supervise.loading import FileProblem, Loaded, LoadError


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


def check_envoy(url: str, loaded: Loaded) -> None:
    """Compare an Envoy with what a sidecar of this configuration needs; LoadError names the differences."""
    admin = Admin.at(url)
    try:
        found = asyncio.run(agreement.compare(loaded.settings, None, admin))
    except (AdminError, NotEnvoyError) as error:
        found = [str(error)]
    if found:
        raise LoadError(tuple(FileProblem(url, Problem(0, "", problem)) for problem in found))
