"""A run: what is measured, in which order, and how long it may take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from bench import flows, large, requests, servers, starting, targets, telemetry, variants, wrk
from bench.figures import ENVOY, PASSTHROUGH, ZURELAY, Figures
from bench.goals import OPEN_STREAMS
from bench.requests import Load
from bench.servers import Server
from bench.targets import Target


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long it takes: rounds of each measurement, and seconds of one; `peers`: with them."""

    peers: bool
    rounds: int
    request_seconds: int
    first_tokens: int
    cost_seconds: float
    checked_streams: int
    checked_seconds: int


FULL = Effort(
    peers=True,
    rounds=3,
    request_seconds=2,
    first_tokens=200,
    cost_seconds=2,
    checked_streams=500,
    checked_seconds=5,
)
QUICK = Effort(
    peers=False,
    rounds=1,
    request_seconds=1,
    first_tokens=50,
    cost_seconds=1.5,
    checked_streams=500,
    checked_seconds=2,
)


async def all_of(effort: Effort, directory: Path, found: Figures, log: Console) -> None:
    """Measure everything."""
    load = _load(effort, directory)
    if load is None:
        log.print(wrk.MISSING)
    log.print("starting the stub, Envoy, zurelay and the peers that are installed")
    async with targets.running([await servers.stub(directory)], directory) as (direct,):
        async with targets.running(_others(effort, directory, direct), directory) as started:
            await _measure(effort, load, [direct, *started], found, log)
        log.print("a large request")
        async with targets.running(_others(effort, directory, direct), directory) as started:  # afresh, for the memory
            starting.first_answers(started, found)
            _tell(await large.measure(started, effort.rounds, found), log)
        await starting.imports(effort.rounds, found)
        if load is not None:
            log.print("workers, limits, tracing")
            await variants.workers(load, direct, found)
            left_out = await variants.limits(load, direct, found)
            _tell([left_out] if left_out else [], log)
            await telemetry.tracing(load, direct, found)
        log.print("stores")
        await variants.stores_alone(found)


def _load(effort: Effort, directory: Path) -> Load | None:
    program = wrk.binary()
    if program is None:
        return None
    return Load(program=program, directory=directory, rounds=effort.rounds, seconds=effort.request_seconds)


def _others(effort: Effort, directory: Path, stub: Target) -> list[Server]:
    ours = [servers.envoy(directory, stub.port), servers.zurelay(directory, stub.port)]
    return ours + (servers.peers(directory, stub.port) if effort.peers else [])


async def _measure(effort: Effort, load: Load | None, started: Sequence[Target], found: Figures, log: Console) -> None:
    started = [*started, *_passing(started)]
    ours = [target for target in started if target.name in (ENVOY, ZURELAY, PASSTHROUGH)]
    direct, *proxies = started
    starting.first_answers([target for target in proxies if target.whole], found)
    flows.idle([target for target in proxies if target.whole], found)
    if load is not None:
        log.print("requests")
        await requests.measure(load, started, found)
    log.print("streams: first tokens")
    await flows.first_token(direct, proxies, effort.first_tokens, found)
    log.print("streams: the cost of a chunk")
    _tell(await flows.cost(proxies, effort.rounds, effort.cost_seconds, found), log)
    log.print("streams: many at once")
    await flows.many(ours, direct, effort.checked_streams, effort.checked_seconds, found)
    _tell(await flows.held(proxies, OPEN_STREAMS, found), log)


def _passing(started: Sequence[Target]) -> list[Target]:
    """The same gateway, asked for the model whose streams pass through."""
    if not servers.PASSES:
        return []
    changes = {"name": PASSTHROUGH, "model": servers.PASSING, "whole": False}
    return [msgspec.structs.replace(target, **changes) for target in started if target.name == ZURELAY]


def _tell(failed: Sequence[str], log: Console) -> None:
    for said in failed:
        log.print(said)
