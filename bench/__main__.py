"""The command: `python -m bench`. All on loopback; it ends by itself and leaves no process."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click
import msgspec
from rich.console import Console

from bench import document as documents
from bench import facts, figures, flows, requests, table, targets, wrk
from bench.figures import DIRECT, ENVOY, PASSING, ZURELAY, Figures
from bench.running import BenchError
from zurelay.supervise import machine

_WIDTH = 200  # for a table that goes to a file
_FILE = click.Path(path_type=Path, dir_okay=False)


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long it takes: rounds of each measurement, and seconds of one; `peers`: with them."""

    peers: bool
    request_rounds: int
    request_seconds: int
    first_tokens: int
    cost_rounds: int
    cost_seconds: float
    open_streams: int
    open_seconds: int


FULL = Effort(
    peers=True,
    request_rounds=3,
    request_seconds=2,
    first_tokens=200,
    cost_rounds=3,
    cost_seconds=2,
    open_streams=500,
    open_seconds=5,
)
QUICK = Effort(
    peers=False,
    request_rounds=2,
    request_seconds=1,
    first_tokens=50,
    cost_rounds=1,
    cost_seconds=1.5,
    open_streams=500,
    open_seconds=2,
)


@click.command()
@click.option("--quick", is_flag=True, help="Under a minute instead of five: fewer rounds, and no peers.")
@click.option("--json", "file", type=_FILE, help="Write facts and figures there.")
@click.option("--document", type=_FILE, help="Write them into docs/performance.md, between its marks.")
def main(*, quick: bool, file: Path | None, document: Path | None) -> None:
    """Measure zurelay beside Envoy alone and the peers that `make bench-peers` has installed."""
    machine.raise_file_limit()
    try:
        told, measured = asyncio.run(_run(QUICK if quick else FULL))
        if document is not None:
            document.write_text(documents.updated(document.read_text(), told, measured))
    except BenchError as error:
        sys.exit(str(error))
    out = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    out.print(table.table(measured))
    if file is not None:
        file.write_bytes(_json(told, measured))


async def _run(effort: Effort) -> tuple[dict[str, str], list[figures.Figure]]:
    log, found = Console(stderr=True), Figures()
    told = await facts.gather()
    log.print(table.facts(told))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        log.print(f"starting the stub, Envoy, zurelay{' and the peers that are installed' if effort.peers else ''}")
        async with targets.running(directory, peers=effort.peers) as started:
            await _measure(effort, started, directory, found, log)
    return told, found.all()


async def _measure(
    effort: Effort, started: list[targets.Target], directory: Path, found: Figures, log: Console
) -> None:
    ours = [target for target in started if target.name in (ENVOY, ZURELAY, PASSING)]
    proxies = [target for target in started if target.name != DIRECT]
    direct = next(target for target in started if target.name == DIRECT)
    await flows.idle(proxies, found)
    program = wrk.binary()
    if program is None:
        log.print(wrk.MISSING)
    else:
        log.print("requests")
        await requests.measure(program, started, directory, effort.request_rounds, effort.request_seconds, found)
    log.print("streams: first tokens")
    await flows.first_token(started, effort.first_tokens, found)
    log.print("streams: the cost of a chunk")
    await flows.cost(proxies, effort.cost_rounds, effort.cost_seconds, found)
    log.print("streams: many at once")
    await flows.many(ours, direct, effort.open_streams, effort.open_seconds, found)


def _json(told: dict[str, str], measured: list[figures.Figure]) -> bytes:
    listed = [{**msgspec.structs.asdict(one), "median": one.median} for one in measured]
    return msgspec.json.format(msgspec.json.encode({"facts": told, "figures": listed}), indent=1) + b"\n"


if __name__ == "__main__":
    main()
