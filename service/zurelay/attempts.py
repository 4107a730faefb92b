"""The provider clusters' side: each attempt's request is made the route's, its answer judged, a failed one marked."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from zurelay import attempt, captured, exchange, failure, heard, plan, settlement, wire
from zurelay.attempt import StreamAttempt
from zurelay.attempt_answers import moving_on, ours, refused, stale, target, tried
from zurelay.errors import InvalidRequest
from zurelay.grpcwire.calls import Call
from zurelay.heard import Head
from zurelay.jsonedit import Document
from zurelay.moments import Moments
from zurelay.plan import Attempt, Plan
from zurelay.ports import Record
from zurelay.relay_words import BEGAN, ROUTE, SSE
from zurelay.verdict import Answered, Kind, Verdict, timed, unavailable
from zurelay.wire import Mutation
from zurelay.worker import Worker


class WholeProcessor:
    """An attempt whose answer comes whole. `first`: the ingress has made its request ready."""

    suffix = ".whole"

    def __init__(self, worker: Worker, call: Call[heard.Request], *, first: bool) -> None:
        self._worker = worker
        self._call = call
        self._number = 1 if first else 0
        self._plan: Plan | None = None
        self._began = 0
        self._asked = b""  # the request's body, where content is captured

    async def serve(self) -> None:
        """See the attempt through."""
        head = Head(headers={}, end=False)
        while (message := await self._call.read()) is not None:
            if message.HasField("request_headers"):
                await self._request_headers(message)
            elif message.HasField("request_body"):
                body = heard.body(message.request_body)
                del message  # a large body is not to be held once more
                await self._call.write(self._made_ready(body))
            elif message.HasField("response_headers"):
                head = heard.head(message.response_headers)
                self._read_plan(message)
                await self._call.write(self._judge_head(head))
            elif message.HasField("response_body"):
                await self._call.write(self._judge(head, message.response_body.body, wire.response_body))

    async def _request_headers(self, message: heard.Request) -> None:
        self._began = time.time_ns()
        sent = heard.head(message.request_headers).headers
        self._number = int(sent["x-envoy-attempt-count"])
        self._read_plan(message)
        await self._call.write(wire.attempt_request(target(self._current(), sent)))

    def _made_ready(self, body: bytes) -> bytes:
        """Make the attempt's request body from the one that all attempts start from.

        What a model that the client named can't take ends the request here; the plan has no others that can't take it.
        """
        planned = self._planned()
        if self._captures(planned):
            self._asked = body
        try:
            return wire.attempt_body(exchange.request_body(Document.parse(body), self._current(), planned.endpoint))
        except InvalidRequest as error:
            self._note(Verdict(kind=Kind.FAIL, error=error, status=error.status))
            return refused(planned, self._number, error)

    def _read_plan(self, message: heard.Request) -> None:
        if self._plan is None:
            self._plan = heard.plan_of(message)

    def _planned(self) -> Plan:
        if self._plan is None:
            raise RuntimeError("an attempt without a plan: Envoy's configuration is not ours")
        return self._plan

    def _current(self) -> Attempt:
        return self._planned().attempts[self._number - 1]

    def _judge_head(self, head: Head) -> bytes:
        """Judge an answer without a body, and one that needs none; let Envoy wait for the others'."""
        if head.end:
            return self._judge(head, b"", wire.response_headers)
        answered = Answered.read(head.headers, time.time())
        verdict = attempt.judge_head(self._planned(), self._number, answered, limit=self._limit())
        return self._told(verdict, head, wire.response_head_alone) if verdict is not None else wire.PASS_HEADERS

    def _judge(self, head: Head, body: bytes, reply: Callable[[Mutation], bytes]) -> bytes:
        """Judge the whole answer, and write what Envoy is told in this phase."""
        now = time.time()
        answered = Answered.read(head.headers, now)
        limit = self._limit()
        verdict = attempt.judge_whole(self._planned(), self._number, answered, body, limit=limit, created=int(now))
        return self._told(verdict, head, reply, body)

    def _told(self, verdict: Verdict, head: Head, reply: Callable[[Mutation], bytes], body: bytes = b"") -> bytes:
        """Put a verdict on record, and write it for Envoy."""
        planned = self._planned()
        verdict = self._note(verdict, body)
        if verdict.kind is Kind.MOVE_ON:
            return reply(moving_on(verdict, head, self._number, self.suffix))
        if verdict.error is not None:
            return refused(planned, self._number, verdict.error)
        shown = ours(planned, self._number, self._current())
        shown |= {":status": "200", "content-type": "application/json"}
        return wire.judged(reply(Mutation(headers=shown, removed=stale(head, shown), body=verdict.body)))

    def _note(self, verdict: Verdict, body: bytes = b"") -> Verdict:
        """Put a verdict on record, with its times; `body` is the provider's answer, where it came whole."""
        planned = self._planned()
        moments = Moments(began=self._began or planned.decided, ended=time.time_ns())
        verdict = timed(verdict, moments.began, moments.ended)
        record = note(self._worker, planned, self._number, verdict, moments, body)
        if record is not None:
            self._worker.finish(msgspec.structs.replace(record, content=self._content(planned, verdict)))
        return verdict

    def _captures(self, planned: Plan) -> bool:
        return planned.trace is not None and self._worker.catalog.settings.telemetry.capture_content

    def _content(self, planned: Plan, verdict: Verdict) -> dict[str, str] | None:
        if not self._asked:
            return None
        found = captured.asked(planned.endpoint, self._asked)
        return found | captured.answered(planned.endpoint, verdict.body) if verdict.body is not None else found

    def _limit(self) -> int:
        return self._worker.catalog.settings.limits.response_body


class StreamProcessor(WholeProcessor):
    """An attempt whose answer is streamed: held until the first token, then left to Envoy alone.

    Envoy 1.40 crashes when a filter like this one stays while more than a connection's buffer waits in it.
    """

    suffix = ".stream"

    def __init__(self, worker: Worker, call: Call[heard.Request]) -> None:
        super().__init__(worker, call, first=False)

    async def serve(self) -> None:
        """See the attempt through to its first token."""
        while (message := await self._call.read()) is not None:
            if message.HasField("request_headers"):
                await self._request_headers(message)
            elif message.HasField("request_body"):
                body = heard.body(message.request_body)
                del message  # a large body is not to be held once more
                await self._call.write(self._out_of_time() or self._made_ready(body))
            elif message.HasField("response_headers"):
                await self._hold(heard.head(message.response_headers))
                return

    def _out_of_time(self) -> bytes | None:
        """End a plan whose time is over; the relay does so by itself."""
        planned, made = self._planned(), self._number - 1
        if not made or planned.passes is None or time.time() < planned.begin_by:
            return None
        late = Record(plan=planned, number=made, outcome=settlement.FAILED, why="timed out")
        self._worker.finish(msgspec.structs.replace(late, moments=Moments(ended=time.time_ns())))
        return refused(planned, made, unavailable(planned.past, made))

    async def _hold(self, head: Head) -> None:
        """Hold the head until the body tells; answer every piece that came meanwhile, then leave."""
        planned = self._planned()
        held = StreamAttempt(planned, self._number, Answered.read(head.headers, time.time()))
        pieces = 0
        verdict = held.feed(b"", end=True) if head.end else None
        if verdict is None:
            await self._call.write(wire.more_time(planned.first_token + 60))
        while verdict is None:
            message = await self._call.read()
            if message is None:
                return
            if message.HasField("response_body"):
                pieces += 1
                verdict = held.feed(message.response_body.body, end=message.response_body.end_of_stream)
            else:  # trailers end a body
                verdict = held.feed(b"", end=True)
        verdict = self._note(verdict)
        if verdict.error is not None and not planned.relayed:
            await self._call.write(refused(planned, self._number, verdict.error))
            return
        await self._call.write(wire.response_headers(self._stream_mutation(verdict, head)))
        for _ in range(pieces):
            await self._call.write(wire.PASS_BODY)

    def _stream_mutation(self, verdict: Verdict, head: Head) -> Mutation:
        planned = self._planned()
        if verdict.kind is Kind.MOVE_ON:
            return moving_on(verdict, head, self._number, self.suffix)
        if verdict.error is not None:
            past = tried(plan.given_up(planned, verdict.past))
            shown = ours(planned, self._number, None) | {wire.FAILURE: failure.encode(verdict.error), **past}
            shown[":status"] = str(verdict.error.status)  # not the provider's: a 101 would end the talk here
            return Mutation(headers=shown, removed=stale(head, shown))
        current = self._current()
        shown = ours(planned, self._number, current)
        if planned.passes is None:
            shown |= {ROUTE: current.cluster, BEGAN: str(self._began), **tried(planned)}
        else:
            shown |= {wire.PASSES: planned.passes.value, "content-type": SSE, "cache-control": "no-cache"}
        kept = [name for name in stale(head, shown) if name != "content-encoding"]
        passing = wire.Passing(number=self._number, model=current.model) if planned.passes is not None else None
        return Mutation(headers=shown, removed=kept, passing=passing)


def note(worker: Worker, planned: Plan, number: int, verdict: Verdict, moments: Moments, body: bytes) -> Record | None:
    """Put a verdict on record, and set the route aside where the provider asked for it.

    Gives the request's record, where this is its end.
    """
    if verdict.aside is not None:
        worker.set_aside(planned.attempts[number - 1].cluster, verdict.aside)
    if verdict.kind is not Kind.ANSWER:
        worker.recorder.gave_up(planned, number, verdict.reason.value if verdict.reason is not None else "refused")
    if planned.relayed or verdict.kind is Kind.MOVE_ON:
        return None
    if planned.stream and verdict.kind is Kind.ANSWER:  # Envoy's access log tells of its end
        return None
    current = planned.attempts[number - 1]
    usage = None
    if verdict.body is not None:
        usage = settlement.used(planned, current, verdict.usage, settlement.tokens(len(verdict.body)))
    return Record(
        plan=plan.given_up(planned, verdict.past),
        number=number,
        attempt=current,
        outcome=settlement.ANSWERED if verdict.kind is Kind.ANSWER else settlement.REFUSED,
        usage=usage,
        finish_reasons=verdict.finish_reasons,
        moments=moments,
        status=verdict.status,
        response_model=exchange.named(body) if planned.trace is not None and verdict.body is not None else "",
    )
