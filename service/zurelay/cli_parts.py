"""What the commands have in common."""

from __future__ import annotations

from pathlib import Path

import click

_LAST_PORT = 65535

FILE = click.Path(path_type=Path, dir_okay=False)


def examples(*lines: str) -> str:
    """Write the examples at the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def address(value: str) -> tuple[str, int]:
    """Read HOST:PORT, an IPv6 host in brackets (a type of click's)."""
    host, colon, port = value.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not (colon and bare and port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
        raise click.BadParameter(f"{value!r} is no HOST:PORT, such as 0.0.0.0:8082 or [::]:8082")
    if (host == f"[{bare}]") != (":" in bare):
        raise click.BadParameter(f"{value!r}: an IPv6 address, and nothing else, stands in brackets")
    return bare, int(port)
