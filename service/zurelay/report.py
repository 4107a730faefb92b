"""What commands print: results to standard output, problems to standard error, colours on a terminal only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zurelay.model import Key
from zurelay.problems import Problem
from zurelay.supervise.loading import FileProblem, Loaded

_WIDE = 1 << 20  # no line is folded


def _console(*, errors: bool = False) -> Console:
    return Console(stderr=errors, highlight=False, markup=False, soft_wrap=True)


def _json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value)))


def value(found: Any) -> None:
    """Print a value as JSON that people read."""
    _json(found)


def documents(found: Iterable[Any]) -> None:
    """Print values as YAML documents."""
    click.echo(yaml.safe_dump_all(found, sort_keys=False, width=_WIDE), nl=False)


def lines(found: Iterable[Any]) -> None:
    """Print values as JSON, one a line, as they come."""
    encoder = msgspec.json.Encoder()
    for one in found:
        click.echo(encoder.encode(one))


def problems(found: tuple[FileProblem, ...], *, as_json: bool) -> None:
    """Print what is wrong in files."""
    if as_json:
        listed = [{"file": each.file, **msgspec.structs.asdict(each.problem)} for each in found]
        _json({"ok": False, "problems": listed})
        return
    console = _console(errors=True)
    for each in found:
        console.print(Text.assemble((f"{each.file}: ", "bold"), str(each.problem)))
    count = f"{len(found)} problem{'s' if len(found) > 1 else ''}"
    console.print(Text(f"{count}; nothing would start", "red"))


def good(file: Path, loaded: Loaded, warnings: tuple[Problem, ...], *, as_json: bool) -> None:
    """Say that a configuration can be used, and what is odd in it."""
    if as_json:
        _json({"ok": True, "problems": [], "warnings": [msgspec.structs.asdict(each) for each in warnings]})
        return
    console = _console(errors=True)
    for each in warnings:
        console.print(Text.assemble((f"{file}: ", "bold"), ("warning: ", "yellow"), str(each)))
    found = loaded.settings
    told = f"{len(found.models)} models, {len(found.providers)} providers, {len(loaded.keys)} keys"
    _console().print(Text.assemble((f"{file}: ", "bold"), ("good", "green"), f": {told}"))


def new_key(key: str, entry: str) -> None:
    """Print a new key and its entry; what to do with them goes to standard error."""
    hints = _console(errors=True)
    hints.print("The key, shown this once; only its digest is kept:", style="bold")
    click.echo(key)
    hints.print("Its entry, for the list `keys:` in keys.yaml:", style="bold")
    click.echo(entry)


def keys(found: Iterable[Key], *, as_json: bool) -> None:
    """List keys: a table on a terminal, else a line a key with tabs."""
    now = dt.datetime.now(dt.UTC)
    rows = [_row(key, now) for key in found]
    if as_json:
        _json({"keys": rows})
        return
    lines = [[str(column) for column in ("name", "state", "models", "smart routing", "limits", "expires")]]
    lines += [[_shown(value) for value in row.values()] for row in rows]
    console = _console()
    if not console.is_terminal:
        for line in lines:
            click.echo("\t".join(line))
        return
    table = Table(*lines[0])
    for line in lines[1:]:
        table.add_row(*(Text(cell, "dim" if line[1] != "active" else "") for cell in line))
    console.print(table, soft_wrap=False)


def _row(key: Key, now: dt.datetime) -> dict[str, Any]:
    limits = {name: value for name, value in msgspec.structs.asdict(key.limits).items() if value is not None}
    expired = key.expires is not None and now >= key.expires
    return {
        "name": key.name,
        "state": "disabled" if key.disabled else "expired" if expired else "active",
        "models": list(key.models) if key.models is not None else ["*"],
        "smart_routing": key.smart_routing,
        "limits": limits,
        "expires": key.expires,
    }


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "on" if value else "off"
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%SZ")
        case list():
            return " ".join(map(str, value))
        case dict():
            return " ".join(f"{name}={limit}" for name, limit in value.items()) or "-"
        case _:
            return str(value)


def table(lines: Sequence[Sequence[str]], notes: Iterable[str]) -> None:
    """Print a table with a heading and a total: ruled on a terminal, else with tabs. Notes go to standard error."""
    console = _console()
    if console.is_terminal:
        shown = Table(show_footer=True)
        for place, heading in enumerate(lines[0]):
            numeric = any(line[place][:1].isdigit() for line in lines[-1:])
            shown.add_column(heading, footer=lines[-1][place], justify="right" if numeric else "left")
        for line in lines[1:-1]:
            shown.add_row(*map(Text, line))
        console.print(shown, soft_wrap=False)
    else:
        for line in lines:
            click.echo("\t".join(line))
    for note in notes:
        _console(errors=True).print(note)
