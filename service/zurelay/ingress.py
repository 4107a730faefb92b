"""The public listener's side: from a client's request to a plan that Envoy carries out, or a stream that we relay."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from typing import Any

import msgspec

from zurelay import (
    admission,
    encoding,
    envoy,
    headers,
    heard,
    listing,
    passthrough,
    paths,
    planning,
    settlement,
    trace_context,
    wire,
)
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.errors import GatewayUnavailable, ZurelayError, error_body
from zurelay.grpcwire.calls import Call
from zurelay.handover import OTHERS_FIRST, Handover, holds
from zurelay.heard import Head
from zurelay.identity import Peer
from zurelay.limits import Reservation
from zurelay.model import Endpoint
from zurelay.moments import seconds
from zurelay.paths import Page
from zurelay.plan import Plan
from zurelay.policy import Matched, scopes, who
from zurelay.ports import Unplanned
from zurelay.relaying import Relaying, asks_for_keepalive, wants_keepalive
from zurelay.request import ChatRequest
from zurelay.rules import PolicyDenied
from zurelay.trace_context import Trace
from zurelay.worker import Held, Worker

_ENDPOINTS = {Page.CHAT: Endpoint.CHAT, Page.MESSAGES: Endpoint.MESSAGES, Page.COUNT_TOKENS: Endpoint.COUNT_TOKENS}

_OK = 200
_LARGE = 256 << 10  # bytes of a body from which it is worth counting for as long as the request lasts
_LONGEST_METHOD, _LONGEST_PATH = 32, 256
_LONGEST_WORD = 128  # of what a client wrote, in log and traces


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
            self._left()
        except asyncio.CancelledError:
            self._left()
            raise
        except ZurelayError as error:
            if isinstance(error, PolicyDenied):
                self._worker.recorder.ruled(self._request_id, error.finding, shadow=False)
            await self._refuse(error)

    def _left(self) -> None:
        """Put it on record that the client went away; with a plan, or where Envoy asks another worker, others do."""
        if not self._goes_on and not self._worker.stopping:
            self._worker.recorder.unplanned(self._unplanned(settlement.CLIENT_LEFT))

    async def _refuse(self, error: ZurelayError) -> None:
        if not self._goes_on:
            self._worker.recorder.unplanned(self._unplanned(settlement.TURNED_AWAY, error.status, error.code))
        found = {
            "content-type": "application/json",
            **headers.request_ids(self._endpoint, self._request_id),
            **error.headers(),
        }
        body = error_body(error, self._endpoint, self._request_id)
        await self._call.write(wire.immediate(error.status, found, body))

    def _unplanned(self, outcome: str, status: int = 0, code: str = "") -> Unplanned:
        caller = self._caller_known
        return Unplanned(
            request_id=self._request_id,
            method=self._head.headers.get(":method", "")[:_LONGEST_METHOD],
            path=paths.bare(self._head.headers.get(":path", ""))[:_LONGEST_PATH],
            outcome=outcome,
            status=status,
            code=code,
            began=self._began,
            ended=time.time_ns(),
            asked=self._asked[:_LONGEST_WORD],
            key=caller.key.name if caller is not None and caller.key is not None else None,
            workload=caller.workload.name if caller is not None and caller.workload is not None else "",
            trace=self._trace(),
        )

    def _trace(self, *, stream: bool = False) -> Trace | None:
        found = self._head.headers
        sent = trace_context.parse(found["traceparent"], found.get("tracestate")) if "traceparent" in found else None
        return self._worker.recorder.trace(found.get(headers.SPAN, ""), sent, stream=stream)

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
        await self._call.write(wire.immediate(_OK, found, msgspec.json.encode(value)))
        self._worker.recorder.unplanned(self._unplanned(settlement.ANSWERED, _OK))

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
            planned = planning.planned(self._worker, catalog, caller, matched, request, head, self._request_id)
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
                handover = Handover(self._worker, self._call, head)
                await handover.run(request, planned)
                stays = len(request.document.data) >= _LARGE or holds(planned)
                del request  # Envoy has it now
                if stays:
                    await handover.wait_for_end(planned)
        finally:
            held.release()
            if planned is not None and planned.reservation is not None and holds(planned):
                asyncio.get_running_loop().call_later(OTHERS_FIRST, self._give_back, planned.reservation)

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
            parameters=request.parameters if trace is not None and self._worker.recorder.may_keep(trace) else {},
            client_request_id=_printable(self._head.headers.get("x-request-id", "")[:_LONGEST_WORD]),
        )

    async def _body(self, head: Head, held: Held, limit: int) -> bytes:
        body = await self._receive(head, held)
        coding = head.headers.get("content-encoding", "")
        if not coding:
            return body
        decoded = encoding.decode(body, coding, limit)
        held.decoded(len(decoded))
        return decoded

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


def _printable(word: str) -> str:
    """Give a header's value without the bytes that are no UTF-8: neither a log line nor a plan can hold them."""
    return word.encode("utf-8", "replace").decode()


def declared_length(head: Head) -> int | None:
    """Read content-length; Envoy has checked that it is a number."""
    value = head.headers.get("content-length")
    return int(value) if value is not None and value.isdigit() else None
