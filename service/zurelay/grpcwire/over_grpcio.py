"""The same methods served by grpcio, on TCP, for an Envoy that shares no directory with the sidecar."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import grpc
import grpc.aio

from zurelay.grpcwire.calls import CallError, Method

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]

_log = logging.getLogger("zurelay")
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class CannotListenError(Exception):
    """The address can't be listened on."""


class GrpcioCall(Generic[T]):
    """A `Call`."""

    __slots__ = ("_context", "metadata")

    def __init__(self, context: Context) -> None:
        self._context = context
        self.metadata = _metadata(context)

    async def read(self) -> T | None:
        """Give the next message, waiting for it; None when there are no more."""
        message = await self._context.read()
        return None if message is grpc.aio.EOF else message

    async def write(self, message: bytes) -> None:
        """Send a message; waits while the client has no room."""
        await self._context.write(message)


class GrpcioServer:
    """Serves methods until it is stopped. `limit` bounds a message, in bytes; `shared`: others listen there too."""

    def __init__(self, methods: Iterable[Method[Any]], limit: int, *, shared: bool = False) -> None:
        options = [
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", -1),
            # Envoy pings each second to notice a frozen worker; without these the server would call it abuse.
            ("grpc.http2.min_ping_interval_without_data_ms", 100),
            ("grpc.http2.max_ping_strikes", 0),
            ("grpc.so_reuseport", int(shared)),
        ]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((_Handlers(methods),))

    async def start(self, address: str) -> int:
        """Listen on HOST:PORT, port 0 for a free one; gives the port."""
        try:
            port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise CannotListenError(f"{address} can't be listened on: choose another address") from error
        await self._server.start()
        return port

    async def stop(self, grace: float = 0) -> None:
        """Stop listening; calls under way have `grace` seconds, then they are cancelled."""
        await self._server.stop(grace or None)


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, methods: Iterable[Method[Any]]) -> None:
        self._handlers = {method.path: _handler(method) for method in methods}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._handlers.get(handler_call_details.method)


def _handler(method: Method[Any]) -> grpc.RpcMethodHandler[Any, bytes]:
    async def serve(_: object, context: Context) -> None:
        try:
            await method.serve(GrpcioCall(context))
        except CallError as error:
            _log.warning("a call is refused: %s", error)
            await context.abort(_CODES[error.code], str(error))
        except Exception:
            _log.exception("a call failed")
            raise

    # Of the four kinds this one can be all: they differ in what a client sends, not on the wire.
    return grpc.stream_stream_rpc_method_handler(
        cast("Callable[..., Any]", serve),  # grpc.aio takes coroutines here; the stubs know threads alone
        request_deserializer=method.parse,
        response_serializer=None,
    )


def _metadata(context: Context) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            found[name] = f"{found[name]},{value}" if name in found else value
    return found
