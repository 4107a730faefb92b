"""Becomes a command that the kernel kills as soon as its parent is gone, however that ended.

Run as a script, by its path and without site-packages, so that it takes a few milliseconds:
`python -I -S bound.py PARENT_PID COMMAND...`. A `preexec_fn` would do the same, in a fork that may hold other threads'
locks.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2): Linux alone; elsewhere children end by their standard input or not at all


def main(parent: int, command: list[str]) -> None:
    """Bind this process to its parent, then run the command in its place."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None and prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit("the supervisor is gone")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so through exec
    try:
        os.execvp(command[0], command)  # noqa: S606  # the command is the supervisor's own, no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: can't be run: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
