"""The gRPC health protocol (grpc.health.v1), for whoever watches over the workers: Kubernetes, a load balancer."""

from __future__ import annotations

import asyncio
from typing import Any

from grpc_health.v1 import health_pb2

from zurelay.grpcwire.calls import Call, CallError, Code, Method, bidirectional, unary

_SERVICE = "/grpc.health.v1.Health/"
_Request = health_pb2.HealthCheckRequest
_Response = health_pb2.HealthCheckResponse


class Health:
    """Whether this server takes requests. It has one answer, for the server as a whole (the service "")."""

    def __init__(self) -> None:
        self._serving = False
        self._changed = asyncio.Event()

    def set(self, *, serving: bool) -> None:
        """Change it, and tell those who watch."""
        self._serving = serving
        self._changed.set()
        self._changed = asyncio.Event()

    def methods(self) -> list[Method[Any]]:
        """Check and Watch."""
        return [
            unary(_SERVICE + "Check", _Request.FromString, self._check),
            bidirectional(_SERVICE + "Watch", _Request.FromString, self._watch),
        ]

    async def _check(self, question: health_pb2.HealthCheckRequest) -> bytes:
        if question.service:
            raise CallError(Code.NOT_FOUND, "health is known of the server as a whole: ask for the service ''")
        return self._answer()

    async def _watch(self, call: Call[health_pb2.HealthCheckRequest]) -> None:
        question = await call.read()
        if question is None:
            raise CallError(Code.INVALID_ARGUMENT, "a call without a message")
        while True:
            changed = self._changed
            known = not question.service
            await call.write(
                self._answer() if known else _Response(status=_Response.SERVICE_UNKNOWN).SerializeToString()
            )
            await changed.wait()

    def _answer(self) -> bytes:
        return _Response(status=_Response.SERVING if self._serving else _Response.NOT_SERVING).SerializeToString()
