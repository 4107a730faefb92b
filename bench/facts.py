"""The facts about machine and programs without which a figure means nothing."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from pathlib import Path

from bench.running import BenchError, output
from zurelay.supervise import machine


async def gather() -> dict[str, str]:
    """Collect them, by name."""
    return _here() | {"Envoy": await _envoy()}


def _here() -> dict[str, str]:
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "processor": processor(Path("/proc/cpuinfo").read_text()),
        "cores": str(machine.cores()),
        "memory": f"{memory(Path('/proc/meminfo').read_text())} GiB",
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "zurelay": importlib.metadata.version("zurelay"),
        "grpcio": importlib.metadata.version("grpcio"),
    }


def processor(cpuinfo: str) -> str:
    """Read the processor's name from /proc/cpuinfo, its maker with it: virtual machines may give half a name."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    words = [found.get(name, "") for name in ("vendor_id", "model name")]
    return " ".join(word for word in words if word) or platform.machine()


def memory(meminfo: str) -> int:
    """Read the memory, in GiB, from /proc/meminfo."""
    line = next(line for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    return round(int(line.split()[1]) / (1 << 20))


async def _envoy() -> str:
    said = await output(machine.envoy_binary(None, os.environ), "--version")
    return envoy_version(said)


def envoy_version(said: str) -> str:
    """Find the version in what `envoy --version` says: PROGRAM version: REVISION/1.40.0/Clean/RELEASE/BoringSSL."""
    parts = said.partition("version:")[2].split("/")
    if len(parts) < 2:  # noqa: PLR2004  # revision and version
        raise BenchError(f"Envoy does not say its version: {said}")
    return parts[1]
