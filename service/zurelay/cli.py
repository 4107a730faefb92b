"""The command line (SPEC 14). What a command needs is imported when it runs: `--help` should be there at once."""
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.group()
def main() -> None:
    """An AI egress gateway."""


@main.command()
@click.option("--config", type=click.Path(path_type=Path))
@click.option("--port", type=int)
@click.option("--status-port", type=int)
@click.option("--run-dir", type=click.Path(path_type=Path))
@click.option("--envoy-binary")
def up(
    config: Path | None, port: int | None, status_port: int | None, run_dir: Path | None, envoy_binary: str | None
) -> None:
    """Run it."""
    from zurelay import supervisor

    supervisor.set_up_logging()
    sys.exit(
        supervisor.run_up(
            supervisor.Options(
                config=config, port=port, status_port=status_port, run_dir=run_dir, envoy_binary=envoy_binary
            )
        )
    )


@main.command()
@click.option("--host", default="127.0.0.1")
@click.option("--port", type=int, default=9100)
def simulate(host: str, port: int) -> None:
    """Run the simulated provider."""
    from zurelay.simulate.server import run

    run(host, port)
