"""Envoy's access log service: the ends of requests that no attempt has judged come in here, and go on record.

Each of Envoy's threads keeps one stream open for as long as both live, and opens another where a worker has died.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import grpc
import grpc.aio

from zurelay import access_log, wire
from zurelay.protos import accesslog_service_pb2
from zurelay.worker import Worker

Context = grpc.aio.ServicerContext[Any, Any]
Message = accesslog_service_pb2.StreamAccessLogsMessage

_SERVICE = "envoy.service.accesslog.v3.AccessLogService"
_log = logging.getLogger("zurelay")


class LogService:
    """Serves AccessLogService.StreamAccessLogs for one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def listen(self, _: object, context: Context) -> None:
        """Take in one stream; nothing is ever answered."""
        while (message := await context.read()) is not grpc.aio.EOF:
            self._take(message)

    def _take(self, message: Message) -> None:
        for logged in message.http_logs.log_entry:
            try:
                self._worker.finish(access_log.record(wire.entry(logged)))
            except Exception:  # noqa: BLE001  # the entries behind it must not be lost with it
                _log.exception("an entry of the access log can't be put on record")

    def handlers(self) -> grpc.GenericRpcHandler:
        """The gRPC method. It is the client's stream alone, but is read as the processors' are."""
        method: grpc.RpcMethodHandler[Message, bytes] = grpc.stream_stream_rpc_method_handler(
            cast("Any", self.listen),  # grpc.aio takes coroutines here; the stubs know threads alone
            request_deserializer=Message.FromString,
            response_serializer=None,
        )
        return grpc.method_handlers_generic_handler(_SERVICE, {"StreamAccessLogs": method})
