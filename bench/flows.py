"""Streams: the first token's delay, what a chunk costs, many open at once with every byte checked, and memory."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import AsyncIterator

from bench import proc, streams
from bench.figures import DIRECT, MEMORY, STREAMS, Figures, Quantity, percentile
from bench.running import BenchError
from bench.streams import Stream
from bench.targets import MODEL, Target

_PATIENCE = 60.0  # seconds for streams to open, or to end beyond their own length
_ENDLESS = 1_000_000  # tokens
_SETTLING = 0.5  # seconds between opening and measuring
_COSTED = 100  # streams
_PACES = {"2,000 a second": 50_000, "saturated": 1_000}  # microseconds between two tokens of one of them


def _quantity(name: str, unit: str) -> Quantity:
    return Quantity(title=STREAMS, name=name, unit=unit)


async def first_token(targets: list[Target], count: int, figures: Figures) -> None:
    """Time first tokens one by one, each target in turn; what one adds is its median less the stub's own."""
    connections = [await Stream.open(target) for target in targets]
    found: list[list[float]] = [[] for _ in targets]
    try:
        for _ in range(count):
            for target, stream, times in zip(targets, connections, found, strict=True):
                stream.reset()
                stream.send(streams.request(target, tokens=1, gap_us=0))
                await asyncio.wait_for(stream.ended(), _PATIENCE)
                times.append(stream.first * 1000)
    finally:
        for stream in connections:
            stream.close()
    direct = next(
        statistics.median(times) for target, times in zip(targets, found, strict=True) if target.name == DIRECT
    )
    for target, times in zip(targets, found, strict=True):
        if target.name != DIRECT:
            figures.add(_quantity("first token, added, median", "ms"), target.name, statistics.median(times) - direct)
            figures.add(_quantity("first token, added, p99", "ms"), target.name, percentile(times, 0.99) - direct)


async def cost(targets: list[Target], rounds: int, seconds: float, figures: Figures) -> None:
    """Measure the processor time of a chunk, paced and flat out, in the middle of streams that don't end."""
    for pace, gap_us in _PACES.items():
        for _ in range(rounds):
            for target in targets:
                await _cost(target, pace, gap_us, seconds, figures)


async def _cost(target: Target, pace: str, gap_us: int, seconds: float, figures: Figures) -> None:
    loop = asyncio.get_running_loop()
    async with _opened(target, _COSTED, tokens=_ENDLESS, gap_us=gap_us) as flowing:
        await asyncio.sleep(_SETTLING)
        before = {role: proc.cpu_seconds(pids) for role, pids in target.roles.items()}
        chunks, began = streams.total(flowing), loop.time()
        await asyncio.sleep(seconds)
        chunks, took = streams.total(flowing) - chunks, loop.time() - began
        used = {role: proc.cpu_seconds(pids) - before[role] for role, pids in target.roles.items()}
    figures.add(_quantity(f"chunks a second, {pace}", "/s"), target.name, chunks / took)
    if not chunks:  # a peer may be that slow
        return
    figures.add(_quantity(f"CPU a chunk, {pace}", "us"), target.name, sum(used.values()) / chunks * 1e6)
    if len(used) > 1:
        for role, seconds_used in used.items():
            figures.add(_quantity(f"CPU a chunk, {pace}, {role}", "us"), target.name, seconds_used / chunks * 1e6)


async def idle(targets: list[Target], figures: Figures) -> None:
    """Read what each takes while it does nothing."""
    for target in targets:
        _memory(target, "idle", figures)


def _memory(target: Target, when: str, figures: Figures) -> None:
    for role, pids in target.roles.items():
        quantity = Quantity(title=MEMORY, name=f"{role}, {when}", unit="MiB")
        figures.add(quantity, target.name, proc.mebibytes(pids))


async def many(targets: list[Target], direct: Target, count: int, seconds: int, figures: Figures) -> None:
    """Keep many streams open at 20 tokens a second each, and compare every byte with what the stub sent."""
    tokens = 20 * seconds
    plain = await streams.answer(direct, tokens=tokens)
    for target in targets:
        expected = plain
        if target.name != DIRECT and "sidecar" in target.roles:
            expected = plain.replace(b'"model":"stub"', f'"model":"{MODEL}"'.encode())
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with _opened(target, count, tokens=tokens, gap_us=50_000) as flowing:
            await asyncio.sleep(seconds / 2)
            _memory(target, f"{count} streams open", figures)
            ended = await asyncio.gather(*(_body(stream, seconds) for stream in flowing))
            took = loop.time() - began
        name = f"{count} streams at 20 tokens a second"
        figures.add(_quantity(f"bytes lost, {name}", "B"), target.name, sum(streams.lost(x, expected) for x in ended))
        figures.add(_quantity(f"all ended, after {seconds} s at best, {name}", "s"), target.name, took)


async def _body(stream: Stream, seconds: float) -> bytes:
    """Give a stream's body; one that broke is lost whole."""
    try:
        return streams.body_of(await asyncio.wait_for(stream.ended(), seconds + _PATIENCE))
    except (OSError, TimeoutError):
        return b""


@contextlib.asynccontextmanager
async def _opened(target: Target, count: int, *, tokens: int, gap_us: int) -> AsyncIterator[list[Stream]]:
    """Open streams, all past their first token; leave them afterwards."""
    request = streams.request(target, tokens=tokens, gap_us=gap_us)
    flowing: list[Stream] = []
    try:
        for _ in range(count):
            flowing.append(await Stream.open(target))
            flowing[-1].send(request)
        await asyncio.wait_for(asyncio.gather(*(stream.opened() for stream in flowing)), _PATIENCE)
        yield flowing
    except TimeoutError:
        late = sum(not stream.first for stream in flowing)
        raise BenchError(f"{target.name}: {late} of {count} streams did not open within {_PATIENCE:g} s") from None
    finally:
        for stream in flowing:
            stream.close()
