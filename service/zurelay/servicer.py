"""The external processor: each of Envoy's streams says its phase, and goes to the room that serves it."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from zurelay import heard, plan, wire
from zurelay.attempts import StreamProcessor, WholeProcessor
from zurelay.errors import GatewayUnavailable, error_body
from zurelay.grpcwire.calls import Call, CallError, Code, Method, bidirectional
from zurelay.ingress import Ingress
from zurelay.model import Endpoint
from zurelay.worker import Worker

_PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"


class Processor:
    """Serves ExternalProcessor.Process for one worker."""

    def __init__(self, worker: Worker) -> None:
        self.open = 0  # calls under way
        self._worker = worker
        self._phases: dict[str, Callable[[Call[heard.Request]], Awaitable[None]]] = {
            "ingress": lambda call: Ingress(worker, call).serve(),
            "egress": self._egress,
            "first": lambda call: WholeProcessor(worker, call, first=True).serve(),
            "whole": lambda call: WholeProcessor(worker, call, first=False).serve(),
            "stream": lambda call: StreamProcessor(worker, call).serve(),
        }

    async def process(self, call: Call[heard.Request]) -> None:
        """Serve one stream of Envoy's. A bug ends this stream alone: Envoy answers 503 gateway_unavailable."""
        phase = call.metadata.get("phase", "")
        serve = self._phases.get(phase)
        if serve is None:
            raise CallError(Code.INVALID_ARGUMENT, f"no such phase: {phase}")
        self.open += 1
        try:
            await serve(call)
        finally:
            self.open -= 1

    async def _egress(self, call: Call[heard.Request]) -> None:
        """Give Envoy the plan that the relay sent along; whoever doesn't know the token is refused."""
        message = await call.read()
        if message is None:
            return
        token, _, text = heard.head(message.request_headers).headers.get(heard.PLAN, "").partition(" ")
        if not hmac.compare_digest(token.encode(), self._worker.egress_token.encode()):
            error = GatewayUnavailable("This listener serves the gateway alone.")
            body = error_body(error, Endpoint.CHAT, "")
            await call.write(wire.immediate(403, {"content-type": "application/json"}, body))
            return
        planned = plan.decode(text)
        answer = wire.planned(planned, plan.groups(planned, ".stream"), {}, [heard.PLAN], planned.first_token)
        await call.write(answer)

    def methods(self) -> list[Method[Any]]:
        """What is served; answers are bytes already."""
        return [bidirectional(_PROCESS, heard.Request.FromString, self.process)]
