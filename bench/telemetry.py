"""What tracing costs: gateways without it, with a hundredth of the requests and with all of them, loaded in turn.

The collector takes what comes and answers nothing more than it must; it runs beside them, as a node's agent does, and
its own time isn't counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping

import msgspec

from bench import variants
from bench.figures import ALL_TRACED, FEW_TRACED, TRACING, UNTRACED, Figures
from bench.requests import Load
from bench.running import BenchError, Running, free_ports
from bench.targets import Target

_PATIENCE = 20.0  # seconds for the collector to listen
_ASK_EVERY = 0.05
_FINER, _STARTS = 3, 3
_COLLECTOR = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc
class Collector(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((Collector(),))
server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
threading.Event().wait()
"""


async def tracing(load: Load, stub: Target, figures: Figures) -> None:
    """Measure what tracing costs, by the share of requests that are traced.

    It is a matter of a few per cent: many short rounds tell more than few long ones. And as where things lie in memory
    makes a gateway some per cent faster or slower, they are started several times.
    """
    finer = msgspec.structs.replace(load, rounds=_FINER * load.rounds, seconds=1)
    async with _collector(load) as url:
        for _ in range(_STARTS):
            await variants.compare(finer, TRACING, stub, settings(url), figures)


def settings(collector: str) -> dict[str, Mapping[str, object]]:
    """Give what the gateways differ in."""
    shares = {FEW_TRACED: 0.01, ALL_TRACED: 1.0}
    traced = {name: {"telemetry": {"otlp": collector, "sample": share}} for name, share in shares.items()}
    return {UNTRACED: {}, **traced}


@contextlib.asynccontextmanager
async def _collector(load: Load) -> AsyncIterator[str]:
    (port,) = free_ports(1)
    command = [sys.executable, "-c", _COLLECTOR, str(port)]
    process = await Running.start("collector", command, load.directory, os.environ)
    try:
        async with asyncio.timeout(_PATIENCE):
            while not _listens(port):
                process.check()
                await asyncio.sleep(_ASK_EVERY)
        yield f"http://127.0.0.1:{port}"
    except TimeoutError:
        raise BenchError(f"the collector does not listen within {_PATIENCE:g} s") from None
    finally:
        await process.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
