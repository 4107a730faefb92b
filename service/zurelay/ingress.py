"""The public listener's side: from a client's request to a plan that Envoy carries out, or a stream that we relay."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from typing import Any

import msgspec

from zurelay import (
    admission,
    decide,
    encoding,
    envoy,
    exchange,
    explain,
    headers,
    heard,
    listing,
    passthrough,
    paths,
    plan,
    rewrite,
    settlement,
    trace_context,
    wire,
)
from zurelay.access import Caller
from zurelay.attempt_answers import target
from zurelay.catalog import Catalog
from zurelay.errors import GatewayUnavailable, InvalidRequest, ZurelayError, error_body
from zurelay.grpcwire.calls import Call
from zurelay.heard import Head
from zurelay.identity import Peer
from zurelay.jsonedit import Document
from zurelay.limits import Reservation
from zurelay.model import Endpoint
from zurelay.moments import Moments, seconds
from zurelay.paths import Page
from zurelay.plan import Plan
from zurelay.policy import Matched, scopes, who
from zurelay.ports import Record, Refusal
from zurelay.relaying import Relaying, asks_for_keepalive, wants_keepalive
from zurelay.request import ChatRequest
from zurelay.rules import PolicyDenied
from zurelay.trace_context import Trace
from zurelay.worker import Held, Worker

_ENDPOINTS = {Page.CHAT: Endpoint.CHAT, Page.MESSAGES: Endpoint.MESSAGES, Page.COUNT_TOKENS: Endpoint.COUNT_TOKENS}


_LARGE = 256 << 10  # bytes of a body from which it is worth counting for as long as the request lasts
_LONGEST_METHOD, _LONGEST_PATH = 32, 256
_LONGEST_WORD = 128  # of what a client wrote, in log and traces
_OTHERS_FIRST = 3.0  # seconds after a request for those who have seen its end to say so: they need milliseconds
_log = logging.getLogger("zurelay")


class ClientLeftError(Exception):
    """The client went away before its request was whole."""


class Ingress:
    """One client's request."""

    def __init__(self, worker: Worker, call: Call[heard.Request]) -> None:
        self._worker = worker
        self._call = call
        self._request_id = worker.new_request_id()
        self._endpoint = Endpoint.CHAT
        self._began = time.time_ns()
        self._head = Head(headers={}, end=True)
        self._asked = ""
        self._caller_known: Caller | None = None
        self._goes_on = False  # whether it has a plan that is under way: then its end is put on record elsewhere

    async def serve(self) -> None:
        """Answer it, or hand it on; every error is mapped here, once."""
        first = await self._call.read()
        if first is None:
            return
        head = self._head = heard.head(first.request_headers)
        try:
            await self._answer(head)
        except ClientLeftError:
            return
        except ZurelayError as error:
            if isinstance(error, PolicyDenied):
                self._worker.recorder.ruled(self._request_id, error.finding, shadow=False)
            await self._refuse(error)

    async def _refuse(self, error: ZurelayError) -> None:
        if not self._goes_on:
            self._worker.recorder.refused(self._refusal(error))
        found = {
            "content-type": "application/json",
            **headers.request_ids(self._endpoint, self._request_id),
            **error.headers(),
        }
        body = error_body(error, self._endpoint, self._request_id)
        await self._call.write(wire.immediate(error.status, found, body))

    def _refusal(self, error: ZurelayError) -> Refusal:
        caller = self._caller_known
        return Refusal(
            request_id=self._request_id,
            method=self._head.headers.get(":method", "")[:_LONGEST_METHOD],
            path=paths.bare(self._head.headers.get(":path", ""))[:_LONGEST_PATH],
            status=error.status,
            code=error.code,
            began=self._began,
            ended=time.time_ns(),
            asked=self._asked[:_LONGEST_WORD],
            key=caller.key.name if caller is not None and caller.key is not None else None,
            workload=caller.workload.name if caller is not None and caller.workload is not None else "",
            trace=self._trace(),
        )

    def _trace(self, *, stream: bool = False) -> Trace | None:
        found = self._head.headers
        sent = trace_context.parse(found.get("traceparent"), found.get("tracestate"))
        return self._worker.recorder.trace(found.get(envoy.SPAN, ""), sent, stream=stream)

    async def _answer(self, head: Head) -> None:
        path = head.headers.get(":path", "/")
        self._endpoint = paths.shape(path)
        if self._worker.draining:
            raise GatewayUnavailable("This instance is shutting down. Try again.", retry_after=1)
        catalog = self._worker.catalog
        asked = paths.target(head.headers.get(":method", ""), path)
        caller = self._caller_known = self._caller(head)
        matched = self._worker.policies.match(who(caller))
        if asked.page is Page.MODELS:
            await self._show(listing.all_models(catalog, caller, matched.enforced))
        elif asked.page is Page.MODEL:
            await self._show(listing.one_model(catalog, caller, asked.name, matched.enforced))
        else:
            self._endpoint = _ENDPOINTS[asked.page]
            await self._chat(catalog, caller, matched, head)

    def _caller(self, head: Head) -> Caller:
        """Find who calls: Envoy tells of the peer in the metadata of its stream, which no client can write."""
        told = self._call.metadata
        peer = Peer(uris=told.get(envoy.PEER_URIS, ""), address=told.get(envoy.PEER_ADDRESS, ""))
        workload = self._worker.identifier.workload(peer, head.headers)
        return self._worker.keys.authenticate(head.headers, dt.datetime.now(dt.UTC), workload)

    async def _show(self, value: dict[str, Any]) -> None:
        found = {"content-type": "application/json", "x-zurelay-request-id": self._request_id}
        await self._call.write(wire.immediate(200, found, msgspec.json.encode(value)))

    async def _chat(self, catalog: Catalog, caller: Caller, matched: Matched, head: Head) -> None:
        limits = catalog.settings.limits
        held = Held(self._worker.bodies, limits.request_body, declared_length(head))
        keepalive = wants_keepalive(head)
        planned: Plan | None = None
        try:
            body = await self._body(head, held, limits.request_body)
            came = time.time_ns()
            request = ChatRequest.parse(body, self._endpoint)
            del body
            self._asked = request.model
            planned = self._planned(catalog, caller, matched, request, head)
            planned = await admission.admit(self._worker, catalog, request, planned, scopes(caller, matched))
            planned = self._dated(planned, request, came)
            if request.stream and not asks_for_keepalive(head):
                include = request.include_usage
                planned = passthrough.applied(catalog.settings, planned, include_usage=include, now=time.time())
            if planned.relayed:
                relaying = Relaying(self._worker, self._call, catalog, planned, request, held)
                del request  # it goes as soon as the provider has it: streams are many, and long
                await relaying.run(head, keepalive=keepalive)
            else:
                await self._hand_over(request, planned, head)
                stays = len(request.document.data) >= _LARGE or holds(planned)
                del request  # Envoy has it now
                if stays:
                    await self._wait_for_end(planned)
        finally:
            held.release()
            if planned is not None and planned.reservation is not None and holds(planned):
                asyncio.get_running_loop().call_later(_OTHERS_FIRST, self._give_back, planned.reservation)

    def _give_back(self, reservation: Reservation) -> None:
        """Let go of what nobody has settled by now. Not sooner: what another worker settles is to be seen first."""
        self._worker.store.release(reservation)

    def _dated(self, planned: Plan, request: ChatRequest, came: int) -> Plan:
        """Give the plan with its times and its trace, now that it is under way; the body `came` whole at that time."""
        now = time.time_ns()
        self._goes_on = True
        self._worker.recorder.decided(planned, seconds(came, now) or 0.0)
        trace = self._trace(stream=planned.stream)
        return msgspec.structs.replace(
            planned,
            began=self._began,
            decided=now,
            trace=trace,
            parameters=request.parameters if trace is not None else {},
            client_request_id=self._head.headers.get("x-request-id", "")[:_LONGEST_WORD],
        )

    def _captures(self) -> bool:
        return self._worker.catalog.settings.telemetry.capture_content

    async def _body(self, head: Head, held: Held, limit: int) -> bytes:
        body = await self._receive(head, held)
        coding = head.headers.get("content-encoding", "")
        if not coding:
            return body
        decoded = encoding.decode(body, coding, limit)
        held.decoded(len(decoded))
        return decoded

    def _planned(self, catalog: Catalog, caller: Caller, matched: Matched, request: ChatRequest, head: Head) -> Plan:
        facts = decide.Facts(
            caller=caller,
            request_id=self._request_id,
            rules=matched.enforced,
            fallback=switch(head, headers.FALLBACK),
            set_aside=self._worker.routes_aside(),
        )
        decision = decide.decide(catalog, request, facts)
        for finding in decision.findings:
            self._worker.recorder.ruled(self._request_id, finding, shadow=False)
        for finding in explain.foretold(decision, request, matched.shadow):
            self._worker.recorder.ruled(self._request_id, finding, shadow=True)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s", msgspec.json.encode(explain.whole(decision, request, caller, matched)).decode())
        if switch(head, headers.EXPLAIN, ("1", "0")):
            return msgspec.structs.replace(decision.plan, explained=explain.summary(decision))
        return decision.plan

    async def _wait_for_end(self, planned: Plan) -> None:
        """Hold a large body's share until Envoy, which keeps it for retries, is done with it; and what limits reserve.

        A stream that stays ties the request to this worker's life: where nothing is held it ends at once. The client
        may have left just before Envoy had the plan: then nobody else knows of the request.
        """
        try:
            while await self._call.read() is not None:
                pass
        finally:
            unseen = Record(plan=planned, number=0, outcome=settlement.CLIENT_LEFT, moments=_now())
            asyncio.get_running_loop().call_later(_OTHERS_FIRST, self._worker.finish_unjudged, unseen)

    async def _receive(self, head: Head, held: Held) -> bytes:
        """Gather the body; its end may come as trailers, or twice (Envoy issue 46237): what follows is not read."""
        pieces: list[bytes] = []
        ended = head.end
        while not ended:
            message = await self._call.read()
            if message is None:
                raise ClientLeftError
            if message.HasField("request_body"):
                held.grow(len(message.request_body.body))
                pieces.append(message.request_body.body)
                ended = message.request_body.end_of_stream
            else:
                ended = True
        return b"".join(pieces)

    async def _hand_over(self, request: ChatRequest, planned: Plan, head: Head) -> None:
        """Hand the request on. From then on Envoy knows when it ends; where that fails, it ends here."""
        try:
            await self._hand_on(request, planned, head)
        except ZurelayError:
            self._worker.finish(Record(plan=planned, number=0, outcome=settlement.REFUSED, moments=_now()))
            raise
        except asyncio.CancelledError:
            self._worker.finish(Record(plan=planned, number=0, outcome=settlement.CLIENT_LEFT, moments=_now()))
            raise

    async def _hand_on(self, request: ChatRequest, planned: Plan, head: Head) -> None:
        """Let Envoy's router carry the plan out, with the first attempt's body made ready where that loses nothing."""
        if planned.passes is not None:
            await self._pass_on(request, planned, head)
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
            **target(first, head.headers),
            "content-length": str(len(body)),
            "content-type": "application/json",
            "accept": "application/json",
            wire.TOTAL_TIMEOUT: wire.milliseconds(planned.total),
        }
        groups = plan.groups(planned, ".whole", ".first" if ready else None)
        await self._send(planned, groups, changed, head, body)

    async def _pass_on(self, request: ChatRequest, planned: Plan, head: Head) -> None:
        """Let Envoy's router carry out the plan of a stream that is the client's as it comes."""
        body = rewrite.common(request.document, ask_usage=planned.endpoint is Endpoint.CHAT)
        changed = {
            "content-length": str(len(body)),
            "content-type": "application/json",
            "accept": "text/event-stream",
        }
        await self._send(planned, plan.groups(planned, ".stream"), changed, head, body)

    async def _send(self, planned: Plan, groups: list[str], changed: dict[str, str], head: Head, body: bytes) -> None:
        removed = headers.kept_from_provider(head.headers)
        per_try = planned.whole if planned.passes is None else planned.first_token
        await self._call.write(wire.planned(planned, groups, changed, removed, per_try))
        for piece in wire.body_pieces(body):
            await self._call.write(piece)


def _now() -> Moments:
    return Moments(ended=time.time_ns())


def holds(planned: Plan) -> bool:
    """Tell whether the plan holds something of a limit, which others must not have until it is settled."""
    return planned.reservation is not None and planned.reservation.id != ""


def declared_length(head: Head) -> int | None:
    """Read content-length; Envoy has checked that it is a number."""
    value = head.headers.get("content-length")
    return int(value) if value is not None and value.isdigit() else None


def switch(head: Head, name: str, words: tuple[str, str] = ("on", "off")) -> bool | None:
    """Read a header that is one of two words, the first for yes; None where it is left out."""
    value = head.headers.get(name)
    if value is None:
        return None
    word = value.strip().lower()
    if word not in words:
        raise InvalidRequest(f"{name} is {value[:20]!r}: send {' or '.join(words)}.", param=name)
    return word == words[0]
