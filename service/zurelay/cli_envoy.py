"""The command `zurelay envoy-config`, for those who bring their own Envoy."""
# ruff: noqa: PLC0415  # what a command needs is imported when it runs

from __future__ import annotations

import sys
from pathlib import Path

import click

from zurelay.cli_parts import FILE, address, examples

_FORMATS = ("envoy", "istio", "envoy-gateway")
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


@click.command(
    "envoy-config",
    epilog=examples(
        "zurelay envoy-config --config zurelay.yaml --sidecar zurelay.ai:9000 --egress 10.0.0.7:10001",
        "zurelay envoy-config --config zurelay.yaml --sidecar zurelay.ai:9000 --egress 0.0.0.0:10001 --format istio",
    ),
)
@click.option("--config", type=FILE, required=True, help="The configuration that the sidecar has too.")
@click.option("--sidecar", type=address, metavar="HOST:PORT", required=True, help="Where the sidecar serves gRPC.")
@click.option("--egress", type=address, metavar="HOST:PORT", required=True, help="Where Envoy listens for the sidecar.")
@click.option("--authorities", default=_AUTHORITIES, show_default=True, help="The authorities' file, where Envoy runs.")
@click.option(
    "--format", "kind", type=click.Choice(_FORMATS), default="envoy", show_default=True, help="What to print."
)
def envoy_config(config: Path, sidecar: tuple[str, int], egress: tuple[str, int], authorities: str, kind: str) -> None:
    """Print what an Envoy of yours needs.

    Envoy's JSON, or Kubernetes resources as YAML for Istio or Envoy Gateway; docs/bring-your-own-envoy.md tells what to
    do with them. Secrets are named there, never shown. Every change of models or providers is for Envoy first.
    """
    import os

    from zurelay import envoy, otel, report
    from zurelay.supervise import loading

    try:
        loaded = loading.load(config, os.environ, elsewhere=True)
    except loading.LoadError as error:
        report.problems(error.problems, as_json=False)
        sys.exit(1)
    environ = otel.variables(os.environ)
    place = envoy.Elsewhere(sidecar=sidecar, egress=egress, authorities=authorities, environ=environ)
    if kind == "envoy":
        report.value(envoy.whole(loaded.settings, place))
    else:
        report.documents((envoy.istio if kind == "istio" else envoy.envoy_gateway)(loaded.settings, place))
