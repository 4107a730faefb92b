"""What one process sends to collectors: the exporter of the configuration in force, replaced as that changes."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from zurelay import otel
from zurelay.model import Telemetry
from zurelay.otel import Export, Signal

if TYPE_CHECKING:
    from zurelay.export import Exporter

_LAST = 1.0  # seconds for what still waits at the end


class Sending:
    """Holds the exporter. `environ` are the variables that say where telemetry goes; only `signals` are sent."""

    def __init__(self, environ: Mapping[str, str], signals: frozenset[Signal]) -> None:
        self._environ = environ
        self._signals = signals
        self.exporter: Exporter | None = None

    def configure(self, telemetry: Telemetry) -> Exporter | None:
        """Give the exporter for these settings: the one before, if they send the same. OtelError where they can't."""
        export = self._export(telemetry)
        old = self.exporter
        if old is not None and old.export == export:
            return old
        self.exporter = _started(export) if export is not None else None
        if old is not None:  # what it still has may take its time: nobody waits for it
            threading.Thread(target=old.close, args=(_LAST,), daemon=True).start()
        return self.exporter

    def _export(self, telemetry: Telemetry) -> Export | None:
        export = otel.export(telemetry, self._environ)
        if export is None:
            return None
        targets = {signal: target for signal, target in export.targets.items() if signal in self._signals}
        return msgspec.structs.replace(export, targets=targets) if targets else None

    def close(self) -> None:
        """Send what waits, for a second at most."""
        if self.exporter is not None:
            self.exporter.close(_LAST)


def _started(export: Export) -> Exporter:
    from zurelay.export import Exporter  # noqa: PLC0415  # gRPC takes longer to load than all the rest, and may not be used

    return Exporter(export, _instance())


def _instance() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"
