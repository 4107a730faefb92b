"""The command `zurelay`. Workers are started often and are many: they don't load the command line."""

from __future__ import annotations

import os
import sys

_TOKEN = "ZURELAY_EGRESS_TOKEN"  # noqa: S105  # its name, not its value


def main() -> None:
    """Run what the command line says."""
    if sys.argv[1:2] == ["worker"] and _TOKEN in os.environ:
        _worker(*sys.argv[2:])
        return
    from zurelay.cli import main as command_line  # noqa: PLC0415  # see above

    command_line()


def _worker(address: str, egress: str, workers: str, ends: str) -> None:
    from zurelay import server  # noqa: PLC0415  # see above

    server.main(address, egress, os.environ.pop(_TOKEN), int(workers), ends)


if __name__ == "__main__":
    main()
