"""Sends telemetry to a collector: bytes in a bounded queue, a thread that sends them in batches, drops counted.

A collector that is slow or away costs no request anything. Writing spans is the caller's work, in its own thread:
a second thread that did it would hold the interpreter's lock for milliseconds, while requests wait.
"""

from __future__ import annotations

import collections
import logging
import random
import threading
import time
from collections.abc import Sequence
from typing import Protocol

import grpc

from zurelay import otlp
from zurelay.otel import Export, Signal, Target

_METHODS = {
    Signal.TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    Signal.METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    Signal.LOGS: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
_SCOPE, _VERSION = "zurelay", "0.1.0"
MOST_WAITING = 8_192  # items of each signal; what comes while these wait is dropped
_MOST_BYTES = 16 << 20  # of each signal: content may be long
_BATCH = 512  # items; collectors take 4 MiB in one message
_BATCH_BYTES = 2 << 20
_DELAY = 1.0  # seconds that an item waits for others
_TRIES = 4
_RETRYABLE = frozenset(
    {  # https://opentelemetry.io/docs/specs/otlp/#failures
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
_log = logging.getLogger("zurelay")


class _Send(Protocol):
    """A gRPC method that takes bytes."""

    def __call__(self, request: bytes, /, *, timeout: float, metadata: tuple[tuple[str, str], ...]) -> bytes:
        """Call it, or raise grpc.RpcError."""


class Line:
    """One signal's way to its collector. `dropped` counts what never came there."""

    def __init__(self, signal: Signal, target: Target, resource: bytes) -> None:
        self.dropped = 0
        self._signal = signal
        self._target = target
        self._head = resource
        self._items: collections.deque[bytes] = collections.deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._complained = False
        self._thread = threading.Thread(target=self._run, name=f"{signal.value} to the collector", daemon=True)
        self._thread.start()

    def add(self, items: Sequence[bytes]) -> None:
        """Take items; never waits."""
        size = sum(map(len, items))
        with self._lock:
            if len(self._items) + len(items) > MOST_WAITING or self._bytes + size > _MOST_BYTES:
                self.dropped += len(items)
                return
            self._items.extend(items)
            self._bytes += size
            full = len(self._items) >= _BATCH
        if full:
            self._wake.set()

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        self._deadline = time.monotonic() + seconds
        self._closing.set()
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        opened = self._opened()
        if opened is None:
            self.dropped += len(self._items)
            return
        with opened as channel:
            method = _METHODS[self._signal]
            send: _Send = channel.unary_unary(method, request_serializer=None, response_deserializer=None)
            while True:
                self._wake.wait(_DELAY)
                self._wake.clear()
                while batch := self._take():
                    if not self._send(send, batch):
                        self.dropped += len(batch)
                if self._closing.is_set():
                    return

    def _opened(self) -> grpc.Channel | None:
        """Open the way, once the file of its authorities can be read; None where that didn't come to pass."""
        while True:
            try:
                return _channel(self._target)
            except OSError as error:
                self._complain(f"{self._target.ca}: {error.strerror}")
            if self._closing.wait(_DELAY):
                return None

    def _take(self) -> list[bytes]:
        with self._lock:
            batch: list[bytes] = []
            size = 0
            while self._items and len(batch) < _BATCH and size < _BATCH_BYTES:
                item = self._items.popleft()
                size += len(item)
                batch.append(item)
            self._bytes -= size
            return batch

    def _send(self, send: _Send, batch: Sequence[bytes]) -> bool:
        data = otlp.request(self._head, otlp.scope(_SCOPE, _VERSION), batch)
        for number in range(_TRIES):
            left = self._deadline - time.monotonic()
            if left <= 0:
                return False
            try:
                answer = send(data, timeout=min(self._target.timeout, left), metadata=self._target.headers)
            except grpc.RpcError as error:
                code: grpc.StatusCode = error.code()
                self._complain(code.name)
                if code not in _RETRYABLE or self._closing.is_set():
                    return False
                self._closing.wait(2**number * (0.5 + random.random()))  # noqa: S311  # so that many don't come at once
            else:
                self._complained = False
                self.dropped += otlp.rejected(answer)
                return True
        return False

    def _complain(self, why: str) -> None:
        """Say once that the collector doesn't take what is sent; the counter tells how much."""
        if not self._complained:
            self._complained = True
            where = f"{self._target.url.host}:{self._target.url.port}"
            _log.warning("%s can't be sent to %s (%s): they are dropped and counted", self._signal.value, where, why)


def _channel(target: Target) -> grpc.Channel:
    host = f"[{target.url.host}]" if ":" in target.url.host else target.url.host
    place = f"{host}:{target.url.port}"
    if target.url.scheme == "http":
        return grpc.insecure_channel(place)
    authorities = None
    if target.ca is not None:
        with open(target.ca, "rb") as file:  # noqa: PTH123  # read once, in a thread of its own
            authorities = file.read()
    return grpc.secure_channel(place, grpc.ssl_channel_credentials(authorities))


class Exporter:
    """All signals of one process."""

    def __init__(self, export: Export, instance: str) -> None:
        self.export = export
        self.instance = instance
        resource = otlp.resource({**export.resource, "service.version": _VERSION, "service.instance.id": instance})
        self._lines = {signal: Line(signal, target, resource) for signal, target in export.targets.items()}

    def add(self, signal: Signal, items: Sequence[bytes]) -> None:
        """Take items of a signal, if it is sent at all; never waits."""
        line = self._lines.get(signal)
        if line is not None and items:
            line.add(items)

    def sends(self, signal: Signal) -> bool:
        """Whether a signal is sent."""
        return signal in self._lines

    @property
    def dropped(self) -> dict[Signal, int]:
        """What never came to a collector, by signal."""
        return {signal: line.dropped for signal, line in self._lines.items()}

    def close(self, seconds: float = 1.0) -> None:
        """Send what waits, for so long at most, all signals at once."""
        closing = [threading.Thread(target=line.close, args=(seconds,)) for line in self._lines.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
