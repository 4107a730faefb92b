"""The commands `zurelay keys`: the file holds digests, never a key."""
# ruff: noqa: PLC0415  # what a command needs is imported when it runs

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from zurelay.cli_parts import FILE, examples

F = TypeVar("F", bound=Callable[..., Any])

_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"])


@click.group(epilog=examples("zurelay keys new team-a", "zurelay keys list", "zurelay keys revoke team-a"))
def keys() -> None:
    """Make, list and revoke API keys. The file holds digests, never a key."""


@keys.command(
    "new",
    epilog=examples(
        "zurelay keys new team-a",
        'zurelay keys new team-b --model zurelay-auto --model "claude-*" --usd-per-day 50',
        "zurelay keys new contractor --expires 2027-01-01",
    ),
)
@click.argument("name")
@click.option("--model", "models", multiple=True, metavar="GLOB", help="A model that it may use; default: all. Repeat.")
@click.option("--no-smart-routing", is_flag=True, help="No other model answers in place of the one asked for.")
@click.option("--requests-per-minute", type=click.IntRange(1), metavar="N")
@click.option("--tokens-per-minute", type=click.IntRange(1), metavar="N")
@click.option("--usd-per-day", metavar="USD")
@click.option("--usd-per-month", metavar="USD")
@click.option("--expires", type=_TIME, metavar="DATE", help="2027-01-01 or 2027-01-01T00:00:00Z.")
def keys_new(name: str, **rules: Any) -> None:
    """Print a new key, once, and its entry for keys.yaml. Nothing is written."""
    import secrets

    from zurelay import keysedit, keysfile, report
    from zurelay.problems import SettingsError

    key = keysedit.new_key(secrets.token_bytes(keysedit.SECRET_BYTES))
    entry = keysedit.entry(name, key, _rules(rules))
    try:
        keysfile.parse(f"keys:\n{entry}\n")
    except SettingsError as error:
        told = (f"{problem.path.removeprefix('keys[0].')}: {problem.message}" for problem in error.problems)
        raise click.UsageError("; ".join(told)) from None
    report.new_key(key, entry)


def _rules(given: dict[str, Any]) -> Any:
    from zurelay import keysedit
    from zurelay.model import UsageLimits

    expires: dt.datetime | None = given["expires"]
    return keysedit.Rules(
        models=tuple(given["models"]),
        smart_routing=not given["no_smart_routing"],
        limits=UsageLimits(
            requests_per_minute=given["requests_per_minute"],
            tokens_per_minute=given["tokens_per_minute"],
            usd_per_day=_usd(given["usd_per_day"]),
            usd_per_month=_usd(given["usd_per_month"]),
        ),
        expires=None if expires is None else expires.replace(tzinfo=dt.UTC),
    )


def _usd(text: str | None) -> decimal.Decimal | None:
    try:
        return None if text is None else decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise click.UsageError(f"{text!r} is no amount of USD, such as 50 or 0.5") from None


def _keys_option(function: F) -> F:
    return click.option(
        "--keys", "file", type=FILE, default=Path("keys.yaml"), show_default=True, help="The file of the keys."
    )(function)


@keys.command("list", epilog=examples("zurelay keys list", "zurelay keys list --keys /etc/zurelay/keys.yaml --json"))
@_keys_option
@click.option("--json", "as_json", is_flag=True, help="Print {keys: [{name, state, models, ...}]}.")
def keys_list(file: Path, as_json: bool) -> None:
    """List the keys of a file with their rules."""
    from zurelay import keysfile, report

    report.keys(_edited(file, keysfile.parse), as_json=as_json)


@keys.command("revoke", epilog=examples("zurelay keys revoke team-a --keys keys.yaml"))
@click.argument("name")
@_keys_option
def keys_revoke(name: str, file: Path) -> None:
    """Set `disabled: true` at a key.

    All else in the file stays as it is, comments too.
    """
    from zurelay import keysedit
    from zurelay.supervise import rundir

    changed = _edited(file, lambda source: keysedit.revoke(source, name))
    rundir.replace(file, changed)
    click.echo(f"{name} is revoked in {file}; a running zurelay takes it up within 5 seconds.", err=True)


T = TypeVar("T")


def _edited(file: Path, work: Callable[[str], T]) -> T:
    """Do something with a keys file's text; problems end the command."""
    from zurelay import keysedit
    from zurelay.problems import SettingsError
    from zurelay.supervise import loading

    try:
        return work(loading.read(file))
    except loading.LoadError as error:
        raise click.ClickException(str(error)) from None
    except SettingsError as error:
        raise click.ClickException("\n".join(f"{file}: {problem}" for problem in error.problems)) from None
    except keysedit.KeysEditError as error:
        raise click.ClickException(str(error)) from None
