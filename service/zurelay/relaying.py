"""Carries out a streamed request: the egress listener on one side, the client on the other, the relay between."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio

from zurelay import headers, rewrite, sse, wire
from zurelay.catalog import Catalog
from zurelay.chat_stream import ChatStream
from zurelay.egress_client import Answer, EgressCall, Event
from zurelay.errors import InvalidRequest
from zurelay.plan import Plan, encode
from zurelay.ports import Record
from zurelay.relay import Outcome, Output, Relay, Times
from zurelay.request import ChatRequest
from zurelay.wire import Head
from zurelay.worker import Held, Worker

Context = grpc.aio.ServicerContext[Any, Any]


class Relaying:
    """One streamed request."""

    def __init__(
        self, worker: Worker, context: Context, catalog: Catalog, plan: Plan, request: ChatRequest, held: Held
    ) -> None:
        self._worker = worker
        self._context = context
        self._settings = catalog.settings
        self._plan = plan
        self._request: ChatRequest | None = request
        self._held = held
        self._prompt_tokens = 0
        self._loop = asyncio.get_running_loop()
        self._answer: Answer | None = None

    async def run(self, head: Head) -> None:
        """Relay until the end, or until the client leaves; then the provider's request ends too."""
        relay = self._relay(keepalive=_keepalive(head))
        call: EgressCall | None = None
        try:
            call = await self._open(head)
            while relay.outcome is Outcome.UNDER_WAY:
                await self._write(self._step(relay, await call.next(relay.deadline)))
                if self._answer is not None:
                    self._let_go()
        except OSError:
            await self._write(relay.end(self._loop.time(), clean=False))
        finally:
            if call is not None:
                call.leave() if relay.outcome is Outcome.ANSWERED else call.close()
            self._record(relay)

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
        times = Times(
            open_after=streaming.open_after if keepalive else None,
            keepalive=streaming.keepalive if keepalive else None,
            total=timeouts.total,
            idle=timeouts.idle,
        )
        request = self._asked()
        ask_usage, choices = request.include_usage, request.choices
        return Relay(
            self._plan,
            times,
            self._loop.time(),
            heartbeat=sse.KEEP_ALIVE,
            make_stream=lambda model: ChatStream(model, ask_usage=ask_usage, choices=choices),
            estimate_prompt=self._estimate_prompt,
            limit=self._settings.limits.response_body,
        )

    def _asked(self) -> ChatRequest:
        if self._request is None:
            raise RuntimeError("the request is gone: a provider has answered")
        return self._request

    async def _open(self, head: Head) -> EgressCall:
        sent = headers.to_provider(head.headers)
        sent.pop("content-length", None)
        sent["content-type"] = "application/json"
        sent["accept"] = "text/event-stream"
        sent[wire.PLAN] = f"{self._worker.egress_token} {encode(self._plan).decode()}"
        body = rewrite.common(self._asked().document, stream=True)
        return await EgressCall.open(self._worker.egress_socket, "/", sent, body)

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
            else:
                outputs += relay.end(now, clean=event.clean)
        return outputs

    async def _write(self, outputs: list[Output]) -> None:
        for output in outputs:
            if output.status is not None:
                await self._context.write(wire.stream_head(output.status, output.headers))
            if output.data or output.end:
                await self._context.write(wire.stream_body(output.data, end=output.end))

    def _record(self, relay: Relay) -> None:
        left = relay.outcome is Outcome.UNDER_WAY
        number = self._answer.headers.get("x-zurelay-attempts", "0") if self._answer is not None else "0"
        self._worker.recorder.finished(
            Record(
                plan=self._plan,
                number=int(number),
                outcome="client_left" if left else relay.outcome.value,
                usage=relay.usage,
                finish_reasons=relay.finish_reasons,
            )
        )


def _keepalive(head: Head) -> bool:
    value = head.headers.get(headers.KEEPALIVE, "on").strip().lower()
    if value not in ("on", "off"):
        raise InvalidRequest(f"{headers.KEEPALIVE} is {value[:20]!r}: send on or off.", param=headers.KEEPALIVE)
    return value == "on"
