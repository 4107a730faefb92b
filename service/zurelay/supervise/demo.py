"""The demo: a catalog of our own on the simulated provider, so that `zurelay up` answers with no account anywhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec

from zurelay.model import Settings
from zurelay.supervise.process import Child, package_command, prefixed

CONFIG = Path(__file__).parent.parent / "data" / "demo.yaml"
_ADDRESS = re.compile(r"http://\S+:([0-9]+)/v1")
_SECONDS = 20.0


class SimulatorError(Exception):
    """The simulated provider doesn't start."""


async def start_simulator() -> Child:
    """Start the simulated provider on a free port."""
    return await Child.start("simulate", package_command("simulate", "--port", "0"), sink=prefixed("simulate"))


async def simulator_port(child: Child) -> int:
    """Wait until the simulated provider says where it listens."""
    try:
        found = await asyncio.wait_for(child.says(_ADDRESS), _SECONDS)
    except TimeoutError:
        found = None
    if found is None:
        raise SimulatorError("The simulated provider doesn't start; what it wrote is above.")
    return int(found[1])


def at_port(settings: Settings, port: int) -> Settings:
    """Point the demo's providers at the simulated one."""
    providers = {
        name: msgspec.structs.replace(provider, base_url=msgspec.structs.replace(provider.base_url, port=port))
        for name, provider in settings.providers.items()
    }
    return msgspec.structs.replace(settings, providers=providers)
