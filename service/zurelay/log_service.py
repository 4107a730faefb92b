"""Envoy's access log service: the ends of requests that no attempt has judged come in here, and go on record.

Each of Envoy's threads keeps one stream open for as long as both live, and opens another where a worker has died.
"""

from __future__ import annotations

import logging
from typing import Any

from zurelay import access_log, heard
from zurelay.grpcwire.calls import Call, Method, client_streaming
from zurelay.protos import accesslog_service_pb2
from zurelay.worker import Worker

Message = accesslog_service_pb2.StreamAccessLogsMessage

_STREAM = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
_NOTHING = accesslog_service_pb2.StreamAccessLogsResponse().SerializeToString()
_log = logging.getLogger("zurelay")


class LogService:
    """Serves AccessLogService.StreamAccessLogs for one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def listen(self, call: Call[Message]) -> bytes:
        """Take in one stream, to its end."""
        while (message := await call.read()) is not None:
            self._take(message)
        return _NOTHING

    def _take(self, message: Message) -> None:
        for logged in message.http_logs.log_entry:
            try:
                self._worker.finish_unjudged(access_log.record(heard.entry(logged)))
            except Exception:  # noqa: BLE001  # the entries behind it must not be lost with it
                _log.exception("an entry of the access log can't be put on record")

    def methods(self) -> list[Method[Any]]:
        """What is served."""
        return [client_streaming(_STREAM, Message.FromString, self.listen)]
