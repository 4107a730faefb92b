"""Streams: the first token's delay, what a chunk costs, many open at once with every byte checked, and memory."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from bench import proc, streams
from bench.figures import FLOODED, MEMORY, PACED, SATURATED, STREAMS, Figures, Quantity, percentile
from bench.running import BenchError
from bench.servers import SIDECAR
from bench.streams import KeptStream, Stream
from bench.targets import Target

_PATIENCE = 60.0  # seconds for streams to open, or to end beyond their own length
_ENDLESS = 1_000_000  # tokens
_SETTLING = 0.5  # seconds between opening and measuring
_COSTED = 100  # streams
# Microseconds between two tokens of one of them. Flooded, the provider sends far more than anything here passes on.
_PACES = {PACED: 50_000, SATURATED: 1_000, FLOODED: 250}
_QUIET = 1_000_000  # microseconds: streams that are only there
_AT_ONCE = 100  # streams opened together

AnyStream = TypeVar("AnyStream", bound=Stream)


def _quantity(name: str, unit: str) -> Quantity:
    return Quantity(title=STREAMS, name=name, unit=unit)


async def first_token(direct: Target, proxies: Sequence[Target], count: int, figures: Figures) -> None:
    """Time first tokens one by one, each target in turn; what one adds is its median less the stub's own."""
    targets = [direct, *proxies]
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
    least = statistics.median(found[0])
    for target, times in zip(proxies, found[1:], strict=True):
        figures.add(_quantity("first token, added, median", "ms"), target.name, statistics.median(times) - least)
        figures.add(_quantity("first token, added, p99", "ms"), target.name, percentile(times, 0.99) - least)


async def cost(targets: Sequence[Target], rounds: int, seconds: float, figures: Figures) -> list[str]:
    """Measure the processor time of a chunk, paced and flat out, in the middle of streams that don't end.

    Names those that can't open the streams; they are not asked again at that pace.
    """
    failed: dict[tuple[str, str], str] = {}
    for pace, gap_us in _PACES.items():
        for turn in range(rounds):
            for place in range(len(targets)):
                target = targets[(place + turn) % len(targets)]
                if (pace, target.name) in failed:
                    continue
                try:
                    await _cost(target, pace, gap_us, seconds, figures)
                except BenchError as error:
                    failed[pace, target.name] = f"{pace}: {error}"
    return list(failed.values())


async def _cost(target: Target, pace: str, gap_us: int, seconds: float, figures: Figures) -> None:
    loop = asyncio.get_running_loop()
    async with _opened(Stream, target, _COSTED, tokens=_ENDLESS, gap_us=gap_us) as flowing:
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


def idle(targets: Sequence[Target], figures: Figures) -> None:
    """Read what each takes while it does nothing."""
    for target in targets:
        _memory(target, "idle", figures)


def _memory(target: Target, when: str, figures: Figures) -> None:
    for role, pids in target.roles.items():
        figures.add(Quantity(title=MEMORY, name=f"{role}, {when}", unit="MiB"), target.name, proc.mebibytes(pids))


async def held(targets: Sequence[Target], count: int, figures: Figures) -> list[str]:
    """Read what each takes with many streams open, and name those that can't open them."""
    failed = []
    for target in targets:
        try:
            async with _opened(Stream, target, count, tokens=_ENDLESS, gap_us=_QUIET):
                await asyncio.sleep(_SETTLING)
                _memory(target, f"{count:,} streams open", figures)
        except BenchError as error:
            failed.append(str(error))
    return failed


async def many(targets: Sequence[Target], direct: Target, count: int, seconds: int, figures: Figures) -> None:
    """Keep many streams open at 20 tokens a second each, and compare every byte with what the stub sent."""
    tokens = 20 * seconds
    plain = await streams.answer(direct, tokens=tokens)
    for target in targets:
        expected = plain
        if SIDECAR in target.roles:
            expected = plain.replace(b'"model":"stub"', f'"model":"{target.model}"'.encode())
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with _opened(KeptStream, target, count, tokens=tokens, gap_us=50_000) as flowing:
            ended = await asyncio.gather(*(_body(stream, seconds) for stream in flowing))
            took = loop.time() - began
        name = f"{count} streams at 20 tokens a second"
        figures.add(_quantity(f"bytes lost, {name}", "B"), target.name, sum(streams.lost(x, expected) for x in ended))
        figures.add(_quantity(f"all ended, after {seconds} s at best, {name}", "s"), target.name, took)


async def _body(stream: KeptStream, seconds: float) -> bytes:
    """Give a stream's body; one that broke is lost whole."""
    try:
        return streams.body_of(await asyncio.wait_for(stream.response(), seconds + _PATIENCE))
    except (OSError, TimeoutError, BenchError):
        return b""


@contextlib.asynccontextmanager
async def _opened(
    kind: type[AnyStream], target: Target, count: int, *, tokens: int, gap_us: int
) -> AsyncIterator[list[AnyStream]]:
    """Open streams, all past their first token; leave them afterwards.

    All connect before the first is asked for, so that the early ones don't flood the late ones out.
    """
    flowing: list[AnyStream] = []
    try:
        try:
            async with asyncio.timeout(_PATIENCE):
                for _ in range(count):
                    flowing += [await kind.open(target)]
                await _begun(flowing, streams.request(target, tokens=tokens, gap_us=gap_us))
        except (OSError, TimeoutError) as error:
            late = count - sum(stream.first > 0 for stream in flowing)
            said = f"{late} of {count} streams did not open within {_PATIENCE:g} s"
            raise BenchError(f"{target.name}: {said}{f': {error}' if str(error) else ''}") from None
        yield flowing
    finally:
        for stream in flowing:
            stream.close()


async def _begun(flowing: Sequence[Stream], request: bytes) -> None:
    for start in range(0, len(flowing), _AT_ONCE):
        together = flowing[start : start + _AT_ONCE]
        for stream in together:
            stream.send(request)
        await asyncio.gather(*(stream.opened() for stream in together))
