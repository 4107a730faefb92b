"""Runs `zurelay up`: an instance with its own Envoy (SPEC 14)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable

from zurelay import envoy, otel
from zurelay.otel import Signal
from zurelay.supervise import demo, machine, ready, rundir, running, starting
from zurelay.supervise.instance import Instance, Shape
from zurelay.supervise.loading import Loaded
from zurelay.supervise.process import Child, prefixed
from zurelay.supervise.running import FailedError, Kill
from zurelay.supervise.starting import Options

_START = 60.0  # seconds until all must be ready: Envoy looks for every provider's address first
_DRAIN_MARGIN = 60.0  # Envoy keeps the streams of a listener that goes for so much longer than `total`
_LAST_SPANS = 1.2  # Envoy sends spans each second (bootstrap.yaml), and forgets at its end those that it has not sent


def run_up(options: Options) -> int:
    """Run Envoy and the sidecar until told to stop; gives the exit status."""
    return running.run(lambda kills: _up(options, kills))


async def _up(options: Options, kills: list[Kill]) -> None:
    binary = machine.envoy_binary(options.envoy_binary, os.environ)
    loaded = starting.load(options, None)
    starting.check_store(options, loaded)
    starting.check_watches(loaded)
    machine.check_free(loaded.settings.listen, "listen")
    machine.check_free(loaded.settings.status, "status")
    files = starting.raise_file_limit()
    with rundir.run_directory(options.run_dir) as directory:
        async with contextlib.AsyncExitStack() as stack:
            children: list[Child] = []
            port = None
            if options.config is None:
                children.append(await running.child(demo.start_simulator(), stack, kills))
                port = await demo.simulator_port(children[0])
                loaded = starting.load(options, port)
            shape = Shape(
                home=starting.home(options, directory),
                authorities=machine.authorities(),
                drain_seconds=options.drain_seconds,
                open_files=files,
                heap=starting.heap(options),
            )
            instance = Instance(directory, loaded, shape, options.config, lambda: starting.load(options, port))
            await running.start(instance, stack, kills)
            proxy = await running.child(_start_envoy(binary, instance, loaded), stack, kills)
            children.append(proxy)
            stack.push_async_callback(_send_last_spans, proxy, instance)
            await _first(ready.wait(loaded.settings, instance.rollout, _START), children)
            running.say(*ready.greeting(loaded.settings))
            await _first(asyncio.Event().wait(), children)


async def _start_envoy(binary: str, instance: Instance, loaded: Loaded) -> Child:
    for socket in (envoy.ADMIN_SOCKET, envoy.EGRESS_SOCKET):
        instance.directory.remove(socket)  # left by an Envoy that was killed here
    drain = int(loaded.settings.timeouts.total + _DRAIN_MARGIN)
    return await Child.start("envoy", envoy.command(binary, instance.runtime, drain), sink=prefixed("envoy"))


async def _send_last_spans(proxy: Child, instance: Instance) -> None:
    """Give Envoy the time to send the spans that it has, where it has any."""
    export = otel.export(instance.rollout.loaded.settings.telemetry, instance.runtime.environ)
    if proxy.running and export is not None and export.to(Signal.TRACES) is not None:
        await asyncio.sleep(_LAST_SPANS)


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
