"""Log lines on their way out: a thread writes them, so that a reader who is slow or gone costs no request anything."""

from __future__ import annotations

import queue
import threading
from typing import BinaryIO

_MOST_WAITING = 10_000  # lines; what comes while these wait is dropped, and counted


class LogLines:
    """Writes lines to a stream in the background. `dropped` counts those that nobody would take."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lines: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self.dropped = 0
        threading.Thread(target=self._write, name="log lines", daemon=True).start()

    def add(self, line: bytes) -> None:
        """Take a line, without its end; never waits, never fails."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def wait_until_written(self) -> None:
        """Wait until every line so far is out, or dropped."""
        self._lines.join()

    def _write(self) -> None:
        while True:
            lines = [self._lines.get()]
            while len(lines) < _MOST_WAITING and not self._lines.empty():
                lines.append(self._lines.get())
            try:
                self._out.write(b"\n".join(lines) + b"\n")
                self._out.flush()
            except (OSError, ValueError):  # nobody reads any more: requests go on without their lines
                self.dropped += len(lines)
            for _ in lines:
                self._lines.task_done()
