"""What tracing costs: the gateway without it, with a hundredth of the requests and with all, side by side in one run.

The collector is a program that takes what comes and answers nothing more than it must; it is on the same machine, as a
node's agent is, and its own time is not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from bench import figures, proc, targets, wrk
from bench.figures import Figures, Quantity
from bench.running import BenchError, Running, free_ports
from bench.targets import CHAT, MODEL, Target

TITLE = "tracing"
OFF, FEW, ALL = "off", "a hundredth", "all"
_SAMPLES: dict[str, float | None] = {OFF: None, FEW: 0.01, ALL: 1.0}
_KINDS = {"whole answers": CHAT, "streams of 20 tokens": {**CHAT, "stream": True}}
_CONNECTIONS = 32
_WARM_UP = 1  # seconds
# Each takes its share of both cores: only the ratios count.
_COLLECTOR = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import grpc
class Any(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((Any(),))
server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
while True:
    time.sleep(3600)
"""


async def measure(program: str, directory: Path, rounds: int, seconds: int, found: Figures) -> None:
    """Load all three in turn, `rounds` times, with requests for whole answers and for short streams."""
    async with _running(directory) as gateways:
        for kind, body in _KINDS.items():
            scripts = [_script(directory, gateway, body) for gateway in gateways]
            for gateway, script in zip(gateways, scripts, strict=True):
                await wrk.run(program, gateway.url, script, _CONNECTIONS, _WARM_UP)
            for turn in range(rounds):
                for place in range(len(gateways)):
                    chosen = (place + turn) % len(gateways)
                    await _round(program, kind, gateways[chosen], scripts[chosen], seconds, found)


def ratios(measured: Sequence[figures.Figure]) -> dict[str, float]:
    """Divide every figure with tracing by the same without it, by quantity and share.

    On a machine that does other things as well, those of processor time are the ones to go by.
    """
    medians = {(one.quantity.name, one.target): one.median for one in measured}
    return {
        f"{name}, {target}": value / medians[name, OFF]
        for (name, target), value in medians.items()
        if target != OFF and medians.get((name, OFF))
    }


@contextlib.asynccontextmanager
async def _running(directory: Path) -> AsyncIterator[list[Target]]:
    stub = await targets.stub(directory)
    provider, collector, *ports = free_ports(2 + 2 * len(_SAMPLES))
    async with contextlib.AsyncExitStack() as stack:

        async def start(name: str, command: Sequence[str]) -> Running:
            running = await Running.start(name, command, directory, os.environ)
            stack.push_async_callback(running.stop)
            return running

        await start("stub", [str(stub), str(provider)])
        await start("collector", [sys.executable, "-c", _COLLECTOR, str(collector)])
        found = []
        for name, sample in _SAMPLES.items():
            listen, status = ports.pop(), ports.pop()
            config = _config(listen, status, provider, collector, sample)
            home = directory / f"tracing-{name.replace(' ', '-')}"
            home.mkdir()
            file = home / "zurelay.yaml"
            file.write_bytes(msgspec.json.encode(config))
            command = [sys.executable, "-P", "-m", "zurelay", "up", "--config", str(file), "--run-dir", str(home / "z")]
            running = await start(name, command)
            found.append(await targets.ready(name, listen, running))
        yield found


def _config(listen: int, status: int, provider: int, collector: int, sample: float | None) -> dict[str, object]:
    telemetry = {} if sample is None else {"otlp": f"http://127.0.0.1:{collector}", "sample": sample}
    return {
        "listen": {"port": listen, "host": "127.0.0.1"},
        "status": {"port": status, "host": "127.0.0.1"},
        "auth": {"require": "none"},
        "providers": {"stub": {"base_url": f"http://127.0.0.1:{provider}/v1", "format": "openai"}},
        "models": {MODEL: {"routes": [{"provider": "stub", "model": "stub"}], "context_window": 100_000}},
        "telemetry": telemetry,
    }


def _script(directory: Path, gateway: Target, body: object) -> Path:
    file = directory / f"tracing-{gateway.name.replace(' ', '-')}.lua"
    file.write_text(wrk.script(msgspec.json.encode(body), {"content-type": "application/json"}))
    return file


async def _round(program: str, kind: str, gateway: Target, script: Path, seconds: int, found: Figures) -> None:
    before = {role: proc.cpu_seconds(pids) for role, pids in gateway.roles.items()}
    load = await wrk.run(program, gateway.url, script, _CONNECTIONS, seconds)
    if load.failed:
        raise BenchError(f"{load.failed} requests failed with tracing {gateway.name}; its log says why")
    found.add(Quantity(title=TITLE, name=kind, unit="/s"), gateway.name, load.rate)
    used = {role: proc.cpu_seconds(pids) - before[role] for role, pids in gateway.roles.items()}
    for role, spent in (*used.items(), ("both", sum(used.values()))):
        quantity = Quantity(title=TITLE, name=f"{kind}, CPU of {role}", unit="us")
        found.add(quantity, gateway.name, spent / load.requests * 1e6)


def main(rounds: int = 5, seconds: int = 3) -> None:
    """Measure, and print the figures and their ratios."""
    program = wrk.binary()
    if program is None:
        sys.exit(wrk.MISSING)
    found = Figures()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        asyncio.run(measure(program, Path(name), rounds, seconds, found))
    for one in found.all():
        sys.stdout.write(f"{one.quantity.name:32} {one.target:12} {one.median:10.1f} {one.quantity.unit}\n")
    for name, ratio in ratios(found.all()).items():
        sys.stdout.write(f"{name:45} {ratio:6.3f} of that without\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
