"""Carries out a streamed request: the egress listener on one side, the client on the other, the relay between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import msgspec

from zurelay import captured, exchange, failure, headers, heard, rewrite, settlement, sse, trace_context, wire
from zurelay.attempt import stamp
from zurelay.catalog import Catalog
from zurelay.egress_client import Answer, EgressCall, End, Event
from zurelay.errors import InvalidRequest
from zurelay.grpcwire.calls import Call
from zurelay.heard import Head
from zurelay.model import Endpoint
from zurelay.moments import Moments
from zurelay.plan import Attempt, Plan, decode_past, encode
from zurelay.ports import Record
from zurelay.relay import Relay
from zurelay.relay_words import ATTEMPTS, BEGAN, FAILURE, PAST, ROUTE, Outcome, Output, Times
from zurelay.request import ChatRequest
from zurelay.worker import Held, Worker

_OPEN = 200


class Relaying:
    """One streamed request."""

    def __init__(
        self, worker: Worker, call: Call[heard.Request], catalog: Catalog, plan: Plan, request: ChatRequest, held: Held
    ) -> None:
        self._worker = worker
        self._call = call
        self._settings = catalog.settings
        self._plan = plan
        self._request: ChatRequest | None = request
        self._held = held
        self._prompt_tokens = 0
        self._loop = asyncio.get_running_loop()
        self._answer: Answer | None = None
        self._sent_again = False
        self._capture = plan.trace is not None and catalog.settings.telemetry.capture_content
        self._content = captured.asked(plan.endpoint, request.document.data) if self._capture else None
        self._said = bytearray()  # the client's bytes, where content is captured
        self._first_token = 0
        self._opened = 0

    async def run(self, head: Head, *, keepalive: bool) -> None:
        """Relay until the end, or until the client leaves; then the provider's request ends too."""
        relay = self._relay(keepalive=keepalive)
        call: EgressCall | None = None
        try:
            call = await self._open(head)
            while relay.outcome is Outcome.UNDER_WAY:
                events = await call.next(relay.deadline)
                if self._was_gone(call, events) or self._was_lost(events):
                    call.close()
                    call = await self._open(head)
                    continue
                await self._write(self._step(relay, events))
                if self._answer is not None:
                    self._let_go()
        except OSError:
            await self._write(relay.end(self._loop.time(), clean=False))
        finally:
            if call is not None:
                call.leave() if relay.outcome is Outcome.ANSWERED else call.close()
            self._record(relay)

    def _was_gone(self, call: EgressCall, events: list[Event]) -> bool:
        """Tell a connection that had served before, and was closed as the request went out: another takes it."""
        return call.again and self._answer is None and events == [End(clean=False)]

    def _was_lost(self, events: list[Event]) -> bool:
        """Tell an answer that no attempt gave: the worker of one died with it. The client has had none: once more."""
        head = events[0] if events else None
        if self._sent_again or not isinstance(head, Answer) or head.status != failure.LOST_STATUS:
            return False
        self._sent_again = ATTEMPTS not in head.headers and FAILURE not in head.headers
        return self._sent_again

    def _let_go(self) -> None:
        """Drop the request once a provider answers: what is left to know of it is its size in tokens."""
        if self._request is not None:
            self._prompt_tokens = self._request.tokens
            self._request = None
            self._held.release()

    def _estimate_prompt(self) -> int:
        return self._request.tokens if self._request is not None else self._prompt_tokens

    def _relay(self, *, keepalive: bool) -> Relay:
        streaming, timeouts = self._settings.streaming, self._settings.timeouts
        request = self._asked()
        asked = exchange.Asked(usage=request.include_usage, choices=request.choices, prompt=self._estimate_prompt)
        chat = self._plan.endpoint is Endpoint.CHAT
        open_after, beat = streaming.open_after, streaming.keepalive
        if not chat:  # clients of messages give up after some 15 s without an event; a comment is none (SPEC 8)
            beat = streaming.messages_keepalive
            open_after = min(open_after, beat)
        times = Times(
            open_after=open_after if keepalive else None,
            keepalive=beat if keepalive else None,
            total=timeouts.total,
            idle=timeouts.idle,
        )
        return Relay(
            self._plan,
            times,
            self._loop.time(),
            heartbeat=sse.KEEP_ALIVE if chat else sse.PING,
            make_stream=lambda head: self._stream(head, asked),
            estimate_prompt=self._estimate_prompt,
            limit=self._settings.limits.response_body,
        )

    def _stream(self, head: Mapping[str, str], asked: exchange.Asked) -> exchange.AnswerStream:
        current = self._answering(head)
        if current is None:
            raise RuntimeError("an answer by no attempt of the plan: Envoy's configuration is not ours")
        return exchange.stream(current, self._plan.endpoint, asked, stamp(self._plan, current, int(time.time())))

    def _answering(self, head: Mapping[str, str]) -> Attempt | None:
        """Find the attempt that answers: by its route and model, as a plan may have got shorter on the way."""
        route, model = head.get(ROUTE), head.get("x-zurelay-model")
        return next((one for one in self._plan.attempts if one.cluster == route and one.model == model), None)

    def _asked(self) -> ChatRequest:
        if self._request is None:
            raise RuntimeError("the request is gone: a provider has answered")
        return self._request

    async def _open(self, head: Head) -> EgressCall:
        sent = headers.to_provider(head.headers)
        sent.pop("content-length", None)
        sent["content-type"] = "application/json"
        sent["accept"] = "text/event-stream"
        sent |= self._trace_headers()
        sent[heard.PLAN] = f"{self._worker.egress_token} {encode(self._plan).decode()}"
        body = rewrite.common(self._asked().document, ask_usage=self._plan.endpoint is Endpoint.CHAT)
        return await self._worker.egress.open("/", sent, body)

    def _trace_headers(self) -> dict[str, str]:
        """Give what a provider may know of the trace: the attempts stand below the relay's span, and so would it."""
        trace = self._plan.trace
        if trace is None or not self._settings.telemetry.propagate:
            return {}
        own = trace_context.Context(trace=trace.id, span=trace.above, sampled=trace.kept)
        found = {"traceparent": trace_context.traceparent(own)}
        return {**found, "tracestate": trace.state} if trace.state else found

    def _step(self, relay: Relay, events: list[Event]) -> list[Output]:
        now = self._loop.time()
        if not events:
            return relay.tick(now)
        outputs: list[Output] = []
        for event in events:
            if isinstance(event, bytes):
                outputs += relay.body(event, now)
            elif isinstance(event, Answer):
                self._answer = event
                outputs += relay.head(event.status, event.headers, now)
                if relay.flowing:  # the attempt holds the head back until there is a token
                    self._first_token = time.time_ns()
            else:
                outputs += relay.end(now, clean=event.clean)
        return outputs

    async def _write(self, outputs: list[Output]) -> None:
        for output in outputs:
            if output.status is not None:
                if output.status == _OPEN and not self._first_token:
                    self._opened = time.time_ns()
                await self._call.write(wire.stream_head(output.status, output.headers))
            if self._capture and len(self._said) < captured.MOST:
                self._said += output.data
            if output.data or output.end:
                await self._call.write(wire.stream_body(output.data, end=output.end))

    def _record(self, relay: Relay) -> None:
        left = relay.outcome is Outcome.UNDER_WAY
        head = self._answer.headers if self._answer is not None else {}
        answering = self._answering(head)
        usage = settlement.used(self._plan, answering, relay.usage, relay.said) if answering is not None else None
        if left and usage is None:  # which attempt was under way nobody says here: the first one, mostly
            answering, usage = self._plan.attempts[0], settlement.left_unanswered(self._plan)
        self._worker.finish(
            Record(
                plan=self._with_past(head.get(PAST)),
                number=int(head.get(ATTEMPTS, "0")),
                attempt=answering,
                outcome=settlement.CLIENT_LEFT if left else relay.outcome.value,
                usage=usage,
                finish_reasons=relay.finish_reasons,
                moments=self._moments(relay, head),
                status=_OPEN if self._first_token else 0,
                response_model=relay.named,
                content=self._captured(),
            )
        )

    def _captured(self) -> dict[str, str] | None:
        if self._content is None or not self._said:
            return self._content
        return self._content | captured.streamed(self._plan.endpoint, bytes(self._said))

    def _moments(self, relay: Relay, head: Mapping[str, str]) -> Moments:
        return Moments(
            began=int(head.get(BEGAN, "0")),
            first_token=self._first_token,
            opened=self._opened,
            ended=time.time_ns(),
            keepalives=relay.kept_alive,
            gaps=relay.gaps,
        )

    def _with_past(self, told: str | None) -> Plan:
        return msgspec.structs.replace(self._plan, past=decode_past(told)) if told else self._plan


def wants_keepalive(head: Head) -> bool:
    """Read x-zurelay-keepalive."""
    value = head.headers.get(headers.KEEPALIVE, "on").strip().lower()
    if value not in ("on", "off"):
        raise InvalidRequest(f"{headers.KEEPALIVE} is {value[:20]!r}: send on or off.", param=headers.KEEPALIVE)
    return value == "on"


def asks_for_keepalive(head: Head) -> bool:
    """Tell a client that won't have a stream without them, from one that takes what comes."""
    return headers.KEEPALIVE in head.headers and wants_keepalive(head)
