"""Log lines on their way out: a thread writes them, so that a reader who is slow or gone costs no request anything."""

from __future__ import annotations

import collections
import threading
import time
from typing import BinaryIO

_MOST_WAITING = 10_000  # lines; what comes while these wait is dropped, and counted
_GATHER = 0.02  # seconds that lines gather: to wake the thread for each takes an eighth of a request's processor time


class LogLines:
    """Writes lines to a stream in the background. `dropped` counts those that nobody would take."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lines: collections.deque[bytes] = collections.deque()
        self._come = threading.Event()
        self._taken = 0
        self._over = 0  # written or dropped, of those taken
        self._progress = threading.Condition()
        self.dropped = 0
        threading.Thread(target=self._write, name="log lines", daemon=True).start()

    def add(self, line: bytes) -> None:
        """Take a line, without its end; never waits, never fails."""
        if len(self._lines) >= _MOST_WAITING:
            self.dropped += 1
            return
        self._taken += 1
        self._lines.append(line)
        if not self._come.is_set():
            self._come.set()

    def wait_until_written(self, seconds: float | None = None) -> bool:
        """Wait until every line so far is out, or dropped; tells whether that was so in time."""
        with self._progress:
            return self._progress.wait_for(lambda: self._over == self._taken, seconds)

    def _write(self) -> None:
        while self._come.wait():
            time.sleep(_GATHER)
            self._come.clear()
            while lines := [self._lines.popleft() for _ in range(len(self._lines))]:
                self._write_out(lines)

    def _write_out(self, lines: list[bytes]) -> None:
        try:
            self._out.write(b"\n".join(lines) + b"\n")
            self._out.flush()
        except (OSError, ValueError):  # nobody reads any more: requests go on without their lines
            self.dropped += len(lines)
        with self._progress:
            self._over += len(lines)
            self._progress.notify_all()
