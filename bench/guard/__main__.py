"""The command: `python -m bench.guard`, a part of `make check`."""

from __future__ import annotations

import asyncio
import platform
import sys
from pathlib import Path

import click
import msgspec

from bench.guard import judge, measure
from bench.running import BenchError

_FILE = Path(__file__).with_name("baseline.json")
_RECORDED = 5  # runs, of which the middle one counts
_HELP = """
Find what became dearer with py-spy (docs/performance.md). Where the cost is worth it: python -m bench.guard --record
Where main fails here too, this machine weighs Python differently from the one that recorded: record main's first."""


@click.command()
@click.option("--record", is_flag=True, help="Take what is found as what it may cost from now on.")
def main(*, record: bool) -> None:
    """Fail where a request or a chunk costs the sidecar a fifth more than is recorded."""
    version = ".".join(platform.python_version_tuple()[:2])
    baseline = msgspec.json.decode(_FILE.read_bytes(), type=judge.Baseline) if _FILE.exists() else {}
    try:
        if record:
            _record(version, baseline)
        elif version in baseline:
            _compare(baseline[version])
        else:
            click.echo(f"Nothing is recorded for Python {version}, so nothing is compared. On main: --record")
    except BenchError as error:
        sys.exit(str(error))


def _costs() -> dict[str, float]:
    return judge.costs(asyncio.run(measure.by_processes()))


def _record(version: str, baseline: judge.Baseline) -> None:
    baseline[version] = judge.middle([_costs() for _ in range(_RECORDED)])
    _FILE.write_bytes(msgspec.json.format(msgspec.json.encode(baseline, order="sorted"), indent=2) + b"\n")
    click.echo(f"recorded for Python {version}: {baseline[version]}")


def _compare(recorded: dict[str, float]) -> None:
    verdicts = judge.judged(_costs(), recorded)
    for verdict in verdicts:
        click.echo(verdict.said)
    if not all(verdict.holds for verdict in verdicts):
        sys.exit(_HELP)


if __name__ == "__main__":
    main()
