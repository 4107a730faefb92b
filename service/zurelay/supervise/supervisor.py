"""Runs one instance: `zurelay up` with its own Envoy, `zurelay sidecar` beside another's (SPEC 14)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from zurelay import envoy, stores
from zurelay.store import StoreError
from zurelay.supervise import demo, machine, ready, rundir
from zurelay.supervise.instance import Instance, Shape
from zurelay.supervise.loading import Loaded, LoadError, load
from zurelay.supervise.process import Child, prefixed

_log = logging.getLogger("zurelay")

_START = 60.0  # seconds until all must be ready: Envoy looks for every provider's address first
_GRACE = 5.0
_DRAIN_MARGIN = 60.0  # Envoy keeps the streams of a listener that goes for so much longer than `total`
_AUTHORITIES = "authorities.pem"
_INTERRUPTED = 130  # as shells count an end by SIGINT


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Without a `config` it is the demo; `run_dir` None makes a new directory."""

    config: Path | None = None
    port: int | None = None
    status_port: int | None = None
    run_dir: Path | None = None
    envoy_binary: str | None = None
    drain_seconds: float = 600.0


class FailedError(Exception):
    """It can't start, or can't go on; says why and what to do."""


_PROBLEMS = (
    FailedError,
    LoadError,
    StoreError,
    demo.SimulatorError,
    machine.NoEnvoyError,
    machine.PortTakenError,
    ready.NotReadyError,
    rundir.RunDirectoryError,
)

Kill = Callable[[], None]


def run_up(options: Options) -> int:
    """Run Envoy and the sidecar until told to stop; gives the exit status."""
    return _run(lambda kills: _up(options, kills))


def run_sidecar(options: Options) -> int:
    """Run the sidecar alone until told to stop; gives the exit status."""
    return _run(lambda kills: _sidecar(options, kills))


def _run(main: Callable[[list[Kill]], Awaitable[None]]) -> int:
    try:
        return asyncio.run(_until_told(main))
    except _PROBLEMS as error:
        for line in str(error).splitlines():
            _log.error("%s", line)
        return 1


async def _until_told(main: Callable[[list[Kill]], Awaitable[None]]) -> int:
    """Run until a signal: the first ends all in order, the second at once."""
    kills: list[Kill] = []
    task = asyncio.ensure_future(main(kills))
    forced = False

    def told() -> None:
        nonlocal forced
        if task.cancelling():
            forced = True
            for kill in kills:
                kill()
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
            loop.add_signal_handler(number, told)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return _INTERRUPTED if forced else 0


async def _up(options: Options, kills: list[Kill]) -> None:
    binary = machine.envoy_binary(options.envoy_binary, os.environ)
    loaded = _load(options, None)
    _check_store(options, loaded)
    machine.check_free(loaded.settings.listen, "listen")
    machine.check_free(loaded.settings.status, "status")
    files = _raise_file_limit()
    with rundir.run_directory(options.run_dir) as directory:
        async with contextlib.AsyncExitStack() as stack:
            children: list[Child] = []
            port = None
            if options.config is None:
                children.append(await _child(demo.start_simulator(), stack, kills))
                port = await demo.simulator_port(children[0])
                loaded = _load(options, port)
            shape = Shape(
                home=_home(options, directory),
                authorities=machine.authorities(),
                drain_seconds=options.drain_seconds,
                open_files=files,
            )
            instance = Instance(directory, loaded, shape, options.config, lambda: _load(options, port))
            await _start(instance, stack, kills)
            children.append(await _child(_start_envoy(binary, instance, loaded), stack, kills))
            await _first(ready.wait(loaded.settings, instance.rollout, _START), children)
            _say(*ready.greeting(loaded.settings))
            await _first(asyncio.Event().wait(), children)


async def _sidecar(options: Options, kills: list[Kill]) -> None:
    loaded = _load(options, None, elsewhere=True)
    _check_store(options, loaded)
    files = _raise_file_limit()
    with rundir.run_directory(options.run_dir) as directory:
        # Envoy has another file system: the authorities that we know are handed to it.
        shutil.copyfile(machine.authorities(), directory.file(_AUTHORITIES))
        async with contextlib.AsyncExitStack() as stack:
            shape = Shape(
                home=_home(options, directory),
                authorities=directory.file(_AUTHORITIES),
                drain_seconds=options.drain_seconds,
                open_files=files,
            )
            instance = Instance(directory, loaded, shape, options.config, lambda: _load(options, None, elsewhere=True))
            await _start(instance, stack, kills)
            await ready.wait_for_workers(instance.fleet, _START)
            _say(f"zurelay's sidecar is ready in {directory.path}")
            await asyncio.Event().wait()


async def _start(instance: Instance, stack: contextlib.AsyncExitStack, kills: list[Kill]) -> None:
    stack.push_async_callback(instance.stop)
    kills.append(instance.fleet.kill)
    await instance.start()


async def _child(starting: Awaitable[Child], stack: contextlib.AsyncExitStack, kills: list[Kill]) -> Child:
    child = await starting
    stack.push_async_callback(child.end, _GRACE)
    kills.append(child.kill)
    return child


async def _start_envoy(binary: str, instance: Instance, loaded: Loaded) -> Child:
    for socket in (envoy.ADMIN_SOCKET, envoy.EGRESS_SOCKET):
        instance.directory.remove(socket)  # left by an Envoy that was killed here
    drain = int(loaded.settings.timeouts.total + _DRAIN_MARGIN)
    return await Child.start("envoy", envoy.command(binary, instance.runtime, drain), sink=prefixed("envoy"))


async def _first(wanted: Awaitable[object], children: list[Child]) -> None:
    """Wait for something, unless a child ends before."""
    main = asyncio.ensure_future(wanted)
    ends = {asyncio.ensure_future(child.wait()): child for child in children}
    try:
        done, _ = await asyncio.wait({main, *ends}, return_when=asyncio.FIRST_COMPLETED)
        for end, child in ends.items():
            if end in done:
                said = "".join(f"\n  {line}" for line in child.tail[-5:])
                raise FailedError(f"{child.name} {end.result()}, so nothing can go on. Its last words:{said}")
        main.result()
    finally:
        for task in (main, *ends):
            task.cancel()


def _load(options: Options, provider_port: int | None, *, elsewhere: bool = False) -> Loaded:
    """Load the configuration, and let the command line have its way."""
    loaded = load(options.config or demo.CONFIG, os.environ, elsewhere=elsewhere)
    settings = loaded.settings
    if provider_port is not None:
        settings = demo.at_port(settings, provider_port)
    listen, status = settings.listen, settings.status
    if options.port is not None:
        listen = msgspec.structs.replace(listen, port=options.port)
        if options.config is None:
            status = msgspec.structs.replace(status, port=options.port + 1)
    if options.status_port is not None:
        status = msgspec.structs.replace(status, port=options.status_port)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(settings, listen=listen, status=status))


def _check_store(options: Options, loaded: Loaded) -> None:
    """See that the store can be used before anything starts; the demo's is made in its run directory."""
    if options.config is not None:
        stores.check(loaded.settings.store)


def _home(options: Options, directory: rundir.RunDirectory) -> Path:
    return directory.path if options.config is None else options.config.absolute().parent


def _raise_file_limit() -> int:
    files = machine.raise_file_limit()
    if files < machine.WANTED_FILES:
        _log.warning(
            "only %d files may be open, which is enough for about %d streams at once;"
            " raise the hard limit (ulimit -Hn, LimitNOFILE=) to %d or more",
            files,
            files // 4,
            machine.WANTED_FILES,
        )
    return files


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def set_up_logging(*, as_json: bool) -> None:
    """Let the supervisor's own lines go where those of its children go: prefixed like theirs, or JSON like Envoy's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if as_json else logging.Formatter("zurelay  | %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": record.created, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
