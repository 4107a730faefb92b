"""The work whose cost is guarded: a request with a whole answer, and a stream, through the sidecar's own code alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.guard import recorded
from bench.guard.sidecar import Sidecar, told
from zurelay import plan, settings
from zurelay.claims import Claims
from zurelay.clock import WallClock
from zurelay.loglines import LogLines
from zurelay.recorder import LogRecorder
from zurelay.relay_words import ATTEMPTS, ROUTE
from zurelay.store_sqlite import SqliteStore
from zurelay.worker import Worker

_CONFIG = {
    "listen": {"port": 8080},
    "providers": {"stub": {"base_url": "http://127.0.0.1:1/v1", "format": "openai"}},
    "models": {
        recorded.MODEL: {
            "routes": [{"provider": "stub", "model": recorded.UPSTREAM}],
            "context_window": 100_000,
            "price": {"input": 1, "output": 2},
        }
    },
    "auth": {"require": "none"},
}


@contextlib.contextmanager
def worker(directory: Path) -> Iterator[Worker]:
    """A worker as the process has one, its store and its log in a directory."""
    with (directory / "log").open("wb") as log, contextlib.closing(Claims(str(directory / "ends"))) as ends:
        lines = LogLines(log)
        made = Worker(
            egress="/nowhere",
            egress_token="token",  # noqa: S106  # opens nothing
            workers=1,
            recorder=LogRecorder(lines),
            ends=ends,
        )
        found = settings.parse(msgspec.json.encode(_CONFIG).decode(), environ={}, readable=lambda _: True)
        made.configure(found, (), SqliteStore(str(directory / "zurelay.db"), WallClock()))
        yield made
        lines.wait_until_written()


class Work:
    """The requests, with all that Envoy says made ready."""

    def __init__(self, sidecar: Sidecar, planned: bytes) -> None:
        self._sidecar = sidecar
        self._asked = recorded.asked(stream=False)
        self._asked_to_stream = recorded.asked(stream=True)
        self._answered = recorded.answered(planned)
        self._requests = 0
        found = plan.decode(recorded.plan_of(planned))
        self._recorded_id = found.request_id.encode()
        self.route = found.attempts[0].cluster

    @classmethod
    async def ready(cls, worker: Worker) -> Work:
        """Have one request planned, whose plan goes along with the answers of all."""
        sidecar = Sidecar(worker)
        return cls(sidecar, told(await sidecar.call("ingress", recorded.asked(stream=False)))[0])

    async def request(self) -> Sequence[bytes]:
        """One request with a whole answer: the ingress, then the attempt. Gives the frames that Envoy gets."""
        self._requests += 1
        own_id = b"req_%032x" % self._requests  # each ends once
        ingress = await self._sidecar.call("ingress", self._asked)
        answered = [message.replace(self._recorded_id, own_id) for message in self._answered]
        return ingress + await self._sidecar.call("first", answered)

    async def stream(self) -> Sequence[bytes]:
        """One streamed request, as long as the loop's pieces."""
        return await self._sidecar.call("ingress", self._asked_to_stream)

    def pieces(self, chunks: int) -> list[bytes]:
        """What the egress listener answers: a stream of so many chunks, each by itself."""
        head = recorded.egress_head({"x-zurelay-model": recorded.MODEL, ROUTE: self.route, ATTEMPTS: "1"})
        events = [recorded.OPENING, *[recorded.TOKEN] * chunks, recorded.ENDING]
        return [head, *map(recorded.chunked, events), recorded.LAST]
