"""What one process sends to collectors: the exporter of the configuration in force, replaced when that says otherwise."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping

from zurelay import otel
from zurelay.export import Exporter
from zurelay.model import Telemetry

_LAST = 1.0  # seconds for what still waits at the end


class Sending:
    """Holds the exporter. `environ` are the variables that say where telemetry goes."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._exporter: Exporter | None = None

    def configure(self, telemetry: Telemetry) -> Exporter | None:
        """Give the exporter for these settings: the one before, where they send the same; OtelError where they can't."""
        export = otel.export(telemetry, self._environ)
        old = self._exporter
        if old is not None and old.export == export:
            return old
        self._exporter = Exporter(export, _instance()) if export is not None else None
        if old is not None:  # what it still has may take its time: nobody waits for it
            threading.Thread(target=old.close, args=(_LAST,), daemon=True).start()
        return self._exporter

    def close(self) -> None:
        """Send what waits, for a second at most."""
        if self._exporter is not None:
            self._exporter.close(_LAST)


def _instance() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"
