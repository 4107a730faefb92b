"""The machine that pods are tried on: Debian, root, podman; and commands on it, quiet unless they fail."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

PACKAGES = ("podman", "runc", "catatonit", "netavark", "mmdebstrap")
# runc: crun needs a newer kernel interface than some virtual machines give. catatonit holds a pod's namespaces open.
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_SECONDS = 300


class CommandError(Exception):
    """A command failed; what it wrote."""


def run(*command: str, seconds: float = _SECONDS, env: dict[str, str] | None = None) -> str:
    """Run a command to its end, and give what it wrote to standard output."""
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"[-6000:])
    return done.stdout


def why_not() -> str | None:
    """Say why pods can't be tried here, or nothing."""
    if sys.platform != "linux" or not pathlib.Path("/etc/debian_version").exists():
        return "this isn't Debian"
    if os.geteuid() != 0:
        return "this isn't root, who may install packages and make namespaces"
    if not _may_isolate():
        return "root may make no namespaces and mounts here"
    if importlib.util.find_spec("envoy") is None:
        return "there is no packaged Envoy for this machine"
    return None


def _may_isolate() -> bool:
    try:
        run("unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt", seconds=10)
    except CommandError:
        return False
    return True


def install() -> str | None:
    """Install what is missing; says why that doesn't work, or nothing."""
    if all(map(shutil.which, ("podman", "runc", "mmdebstrap"))) and pathlib.Path("/usr/lib/podman/netavark").exists():
        return None
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run("apt-get", "update", "-qq", env=quiet)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES, env=quiet)
    except CommandError as error:
        return f"Debian's packages can't be installed: {error}"
    return None


class Podman:
    """podman with settings of our own; the machine's stay as they are."""

    def __init__(self, directory: pathlib.Path) -> None:
        settings = directory / "containers.conf"
        settings.write_text(_CONTAINERS)
        self._env = {"CONTAINERS_CONF": str(settings)}

    def __call__(self, *arguments: str, seconds: float = _SECONDS) -> str:
        """Run one of its commands."""
        return run("podman", *arguments, seconds=seconds, env=self._env).strip()
