"""HTTP/2 (RFC 9113), the server's side of one connection, as far as gRPC needs it: bytes in, events out.

Left out, as gRPC has no use for it: push, priorities, a table for answers' headers, the upgrade from HTTP/1.1.
"""

from __future__ import annotations

from zurelay.http2.connection import Connection
from zurelay.http2.events import Ended, Event, Opened, Received, Reset, Writable
from zurelay.http2.frames import ConnectionFault

__all__ = ["Connection", "ConnectionFault", "Ended", "Event", "Opened", "Received", "Reset", "Writable"]
