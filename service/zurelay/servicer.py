"""The external processor: each of Envoy's streams says its phase, and goes to the room that serves it."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
import grpc.aio

from zurelay import plan, wire
from zurelay.attempts import StreamProcessor, WholeProcessor
from zurelay.errors import GatewayUnavailable, error_body
from zurelay.ingress import Ingress
from zurelay.model import Endpoint
from zurelay.worker import Worker

Context = grpc.aio.ServicerContext[Any, Any]

_SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
_log = logging.getLogger("zurelay")


class Processor:
    """Serves ExternalProcessor.Process for one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._phases: dict[str, Callable[[Context], Awaitable[None]]] = {
            "ingress": lambda context: Ingress(worker, context).serve(),
            "egress": self._egress,
            "first": lambda context: WholeProcessor(worker, context, first=True).serve(),
            "whole": lambda context: WholeProcessor(worker, context, first=False).serve(),
            "stream": lambda context: StreamProcessor(worker, context).serve(),
        }

    async def process(self, _: object, context: Context) -> None:
        """Serve one stream of Envoy's. A bug ends this stream alone: Envoy answers 503 gateway_unavailable."""
        phase = next((str(value) for name, value in context.invocation_metadata() or () if name == "phase"), "")
        serve = self._phases.get(phase)
        if serve is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no such phase: {phase}")
        else:
            try:
                await serve(context)
            except Exception:
                _log.exception("phase %s failed", phase)
                raise

    async def _egress(self, context: Context) -> None:
        """Give Envoy the plan that the relay sent along; whoever doesn't know the token is refused."""
        message = await context.read()
        if message is grpc.aio.EOF:
            return
        token, _, text = wire.head(message.request_headers).headers.get(wire.PLAN, "").partition(" ")
        if not hmac.compare_digest(token.encode(), self._worker.egress_token.encode()):
            error = GatewayUnavailable("This listener serves the gateway alone.")
            body = error_body(error, Endpoint.CHAT, "")
            await context.write(wire.immediate(403, {"content-type": "application/json"}, body))
            return
        planned = plan.decode(text)
        answer = wire.planned(planned, plan.groups(planned, ".stream"), {}, [wire.PLAN], planned.first_token)
        await context.write(answer)

    def handlers(self) -> grpc.GenericRpcHandler:
        """The gRPC method; answers are bytes already."""
        method: grpc.RpcMethodHandler[wire.Request, bytes] = grpc.stream_stream_rpc_method_handler(
            cast("Any", self.process),  # grpc.aio takes coroutines here; the stubs know threads alone
            request_deserializer=wire.Request.FromString,
            response_serializer=None,
        )
        return grpc.method_handlers_generic_handler(_SERVICE, {"Process": method})
