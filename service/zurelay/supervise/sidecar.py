"""Runs `zurelay sidecar`: an instance beside an Envoy that someone else starts and ends, as in a Kubernetes pod."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil

from zurelay.supervise import machine, polling, ready, rundir, running, starting
from zurelay.supervise.admin import AdminError, EnvoyAwayError
from zurelay.supervise.instance import Instance, Shape
from zurelay.supervise.running import Kill
from zurelay.supervise.starting import Options

_log = logging.getLogger("zurelay")

_START = 60.0
_AUTHORITIES = "authorities.pem"
# Seconds for Envoy to end once all is drained: whoever ends us ends it as well, within one.
_LEAVE = 10.0


def run_sidecar(options: Options) -> int:
    """Run the sidecar until told to stop; gives the exit status."""
    return running.run(lambda kills: _sidecar(options, kills))


def prepare(options: Options) -> int:
    """Write Envoy's files and end: for an Envoy that would start before the sidecar; gives the exit status."""
    return running.run(lambda _: _prepare(options))


async def _prepare(options: Options) -> None:
    with rundir.run_directory(options.run_dir) as directory:
        instance = _made(options, directory)
        instance.prepare()
        running.say(f"Envoy's files are in {directory.path}")


async def _sidecar(options: Options, kills: list[Kill]) -> None:
    with rundir.run_directory(options.run_dir) as directory:
        instance = _made(options, directory)
        async with contextlib.AsyncExitStack() as stack:
            await running.start(instance, stack, kills)
            await ready.wait_for_workers(instance.fleet, _START)
            running.say(f"zurelay's sidecar is ready in {directory.path}")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await _leave(instance)
                raise


def _made(options: Options, directory: rundir.RunDirectory) -> Instance:
    loaded = starting.load(options, None, elsewhere=True)
    starting.check_store(options, loaded)
    starting.check_watches(loaded)
    # Envoy has another file system: the authorities that we know are handed to it.
    shutil.copyfile(machine.authorities(), directory.file(_AUTHORITIES))
    shape = Shape(
        home=starting.home(options, directory),
        authorities=directory.file(_AUTHORITIES),
        drain_seconds=options.drain_seconds,
        open_files=starting.raise_file_limit(),
        heap=starting.heap(options),
        status_listen=options.status_listen,
    )
    return Instance(directory, loaded, shape, options.config, lambda: starting.load(options, None, elsewhere=True))


async def _leave(instance: Instance) -> None:
    """Serve Envoy for as long as it needs us: through its drain, and until it is gone.

    In a pod all containers may be told to end at the same time, and Envoy's streams need the workers to their end.
    """
    if await _is_gone(instance):
        return
    _log.info("told to end: first all is drained, then Envoy is waited for; tell it again to end now")
    await instance.drain.run()
    try:
        await polling.until(lambda: _is_gone(instance), _LEAVE)
    except TimeoutError:
        _log.warning("Envoy still runs %g s after it was drained, and is left alone", _LEAVE)


async def _is_gone(instance: Instance) -> bool:
    try:
        await instance.admin.ask("/ready")
    except EnvoyAwayError:
        return True
    except AdminError:  # busy, or not ready
        return False
    return False
