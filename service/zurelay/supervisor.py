"""Runs one instance: `zurelay up` with its own Envoy, `zurelay sidecar` beside someone else's (SPEC 14)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from zurelay import demo, envoy, http1, machine, rundir
from zurelay.admin import Admin
from zurelay.fleet import Fleet, without
from zurelay.loading import Loaded, LoadError, load, secret_variables
from zurelay.process import Child, package_command, prefixed
from zurelay.ready import NotReadyError, url, wait_until_ready
from zurelay.reload import Reloader
from zurelay.rollout import Rollout
from zurelay.rundir import RunDirectory
from zurelay.status import Status

_log = logging.getLogger("zurelay")

TOKEN_VARIABLE = "ZURELAY_EGRESS_TOKEN"  # noqa: S105  # its name, not its value
_START = 30.0  # seconds until all must be ready
_GRACE = 5.0
_DRAIN_MARGIN = 60.0  # Envoy keeps the streams of a listener that goes for so much longer than `total`


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Without a `config` it is the demo; `run_dir` None makes a new directory."""

    config: Path | None = None
    port: int | None = None
    status_port: int | None = None
    run_dir: Path | None = None
    envoy_binary: str | None = None
    drain_seconds: float = 0.0


class StartError(Exception):
    """It can't start; says why and what to do."""


def run_up(options: Options) -> int:
    """Run Envoy and the sidecar until told to stop; gives the exit status."""
    return _run(lambda: _up(options))


def run_sidecar(options: Options) -> int:
    """Run the sidecar alone until told to stop; gives the exit status."""
    return _run(lambda: _sidecar(options))
