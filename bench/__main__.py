"""The command: `python -m bench`. All on loopback; it ends by itself and leaves no process."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console

from bench import document, facts, figures, goals, plot, run, table
from bench.figures import Figure
from bench.running import BenchError
from zurelay.supervise import machine

_WIDTH = 240  # for tables that go to a file
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--quick", is_flag=True, help="A minute and a half instead of ten: fewer rounds, and no peers.")
@click.option("--json", "file", type=_FILE, help="Write facts and figures there.")
@click.option("--document", "page", type=_FILE, help="Write them into docs/performance.md, and a picture beside it.")
def main(*, quick: bool, file: Path | None, page: Path | None) -> None:
    """Measure zurelay beside Envoy alone and the peers that `make bench-peers` has installed."""
    machine.raise_file_limit()
    log = Console(stderr=True)
    try:
        told, measured = asyncio.run(_interruptible(run.QUICK if quick else run.FULL, log))
        if page is not None:
            _write(page, told, measured)
    except (BenchError, machine.NoEnvoyError) as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("interrupted: nothing of it runs any more")
    if file is not None:
        file.write_bytes(_json(told, measured))
    out = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    for one in table.tables(measured, goals.judged(measured)):
        out.print(one)


async def _interruptible(effort: run.Effort, log: Console) -> tuple[dict[str, str], list[Figure]]:
    """Run; where the command is ended by SIGTERM, what it started ends as after Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # asyncio.run made it
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    told, found = await facts.gather(), figures.Figures()
    log.print(table.facts(told))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        await run.all_of(effort, Path(name), found, log)
    return told, found.all()


def _write(page: Path, told: dict[str, str], measured: Sequence[Figure]) -> None:
    picture = page.with_suffix(".svg")
    text = document.updated(page.read_text(), told, measured, picture.name)
    picture.write_text(plot.drawn(measured))
    page.write_text(text)


def _json(told: dict[str, str], measured: Sequence[Figure]) -> bytes:
    listed = [{**msgspec.structs.asdict(one), "median": one.median} for one in measured]
    judged = [
        {"what": one.goal.what, "unit": one.goal.unit, "found": one.found, "met": one.met.value}
        for one in goals.judged(measured)
    ]
    whole = {"facts": told, "goals": judged, "figures": listed}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


if __name__ == "__main__":
    main()
