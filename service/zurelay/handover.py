"""Hands a planned request over to Envoy's router, and stays with it where something is held until its end."""

from __future__ import annotations

import asyncio
import time

from zurelay import exchange, headers, heard, plan, rewrite, settlement, wire
from zurelay.attempt_answers import target
from zurelay.errors import ZurelayError
from zurelay.grpcwire.calls import Call
from zurelay.heard import Head
from zurelay.jsonedit import Document
from zurelay.model import Endpoint
from zurelay.moments import Moments
from zurelay.plan import Plan
from zurelay.ports import Record
from zurelay.request import ChatRequest
from zurelay.worker import Worker

OTHERS_FIRST = 3.0  # seconds after a request for those who have seen its end to say so: they need milliseconds


class Handover:
    """One request that Envoy's router carries out."""

    __slots__ = ("_call", "_head", "_worker")

    def __init__(self, worker: Worker, call: Call[heard.Request], head: Head) -> None:
        self._worker = worker
        self._call = call
        self._head = head

    async def run(self, request: ChatRequest, planned: Plan) -> None:
        """Hand the request on. From then on Envoy knows when it ends; where that fails, it ends here."""
        try:
            await self._hand_on(request, planned)
        except ZurelayError:
            self._worker.finish(Record(plan=planned, number=0, outcome=settlement.REFUSED, moments=_now()))
            raise
        except asyncio.CancelledError:
            self._worker.finish(Record(plan=planned, number=0, outcome=settlement.CLIENT_LEFT, moments=_now()))
            raise

    async def _hand_on(self, request: ChatRequest, planned: Plan) -> None:
        """Let Envoy's router carry the plan out, with the first attempt's body made ready where that loses nothing."""
        if planned.passes is not None:
            await self._pass_on(request, planned)
            return
        body = rewrite.common(request.document, ask_usage=False)
        document = request.document if body is request.document.data else Document.parse(body)
        first = planned.attempts[0]
        # An answer that comes before the last piece of the body has gone through crashes Envoy 1.40, unless a buffering
        # attempt filter stands between: so only a body of one piece goes out without.
        small = len(body) <= wire.PIECE // 2 and not self._captures()  # content is captured by an attempt that sees it
        ready = small and exchange.can_prepare(document, first, planned.endpoint)
        if ready:
            body = exchange.request_body(document, first, planned.endpoint)
        changed = {
            **target(first, self._head.headers),
            "content-length": str(len(body)),
            "content-type": "application/json",
            "accept": "application/json",
            wire.TOTAL_TIMEOUT: wire.milliseconds(planned.total),
        }
        groups = plan.groups(planned, ".whole", ".first" if ready else None)
        await self._send(planned, groups, changed, body)

    async def _pass_on(self, request: ChatRequest, planned: Plan) -> None:
        """Let Envoy's router carry out the plan of a stream that is the client's as it comes."""
        body = rewrite.common(request.document, ask_usage=planned.endpoint is Endpoint.CHAT)
        changed = {
            "content-length": str(len(body)),
            "content-type": "application/json",
            "accept": "text/event-stream",
        }
        await self._send(planned, plan.groups(planned, ".stream"), changed, body)

    async def _send(self, planned: Plan, groups: list[str], changed: dict[str, str], body: bytes) -> None:
        removed = headers.kept_from_provider(self._head.headers)
        per_try = planned.whole if planned.passes is None else planned.first_token
        await self._call.write(wire.planned(planned, groups, changed, removed, per_try))
        for piece in wire.body_pieces(body):
            await self._call.write(piece)

    async def wait_for_end(self, planned: Plan) -> None:
        """Hold a large body's share until Envoy, which keeps it for retries, is done with it; and what limits reserve.

        A stream that stays ties the request to this worker's life: where nothing is held it ends at once. The client
        may have left just before Envoy had the plan: then nobody else knows of the request.
        """
        try:
            while await self._call.read() is not None:
                pass
        finally:
            unseen = Record(plan=planned, number=0, outcome=settlement.CLIENT_LEFT, moments=_now())
            asyncio.get_running_loop().call_later(OTHERS_FIRST, self._worker.finish_unjudged, unseen)

    def _captures(self) -> bool:
        return self._worker.catalog.settings.telemetry.capture_content


def _now() -> Moments:
    return Moments(ended=time.time_ns())


def holds(planned: Plan) -> bool:
    """Tell whether the plan holds something of a limit, which others must not have until it is settled."""
    return planned.reservation is not None and planned.reservation.id != ""
