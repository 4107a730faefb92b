"""OTLP's messages as bytes: what `spans` and `tally` make, written as protobuf by hand.

A message object for every attribute would cost more than all else that a request does; tests/test_otlp.py reads what is
written here with the official classes. https://github.com/open-telemetry/opentelemetry-proto (v1).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence

import msgspec

Value = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Value]

_double = struct.Struct("<d").pack
_fixed64 = struct.Struct("<Q").pack
_LOW = 0x80


def varint(value: int) -> bytes:
    """Write a varint; a negative number is its 64-bit two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    if value < _LOW:
        return _SMALL[value]
    out = bytearray()
    while value >= _LOW:
        out.append(value & 0x7F | _LOW)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [bytes([value]) for value in range(_LOW)]


def field(tag: bytes, data: bytes) -> bytes:
    """Write a field that has a length. `tag` is its number * 8 + 2."""
    return tag + varint(len(data)) + data


def any_value(value: Value) -> bytes:
    """Write an AnyValue."""
    if isinstance(value, str):
        return field(b"\x0a", value.encode("utf-8", "replace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + varint(value)
    if isinstance(value, float):
        return b"\x21" + _double(value)
    return field(b"\x2a", b"".join(field(b"\x0a", any_value(one)) for one in value))


def key_value(name: str, value: Value) -> bytes:
    """Write a KeyValue."""
    return field(b"\x0a", name.encode()) + field(b"\x12", any_value(value))


# Most attributes come again and again: names of models and routes, states, small numbers. A request's id doesn't.
_LONGEST_CACHED, _LARGEST_CACHED = 35, 1 << 16


@functools.lru_cache(16_384, typed=True)
def _again(tag: bytes, name: str, value: Value) -> bytes:
    return field(tag, key_value(name, value))


def attributes(tag: bytes, given: Attributes) -> bytes:
    """Write attributes, each as the field `tag`."""
    return b"".join(
        [
            _again(tag, name, value) if _comes_again(value) else field(tag, key_value(name, value))
            for name, value in given.items()
        ]
    )


def _comes_again(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_CACHED
    if isinstance(value, int):
        return -1 <= value < _LARGEST_CACHED
    return isinstance(value, tuple)


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something that happened within a span, at a time in nanoseconds since 1970."""

    name: str
    at: int
    attributes: dict[str, Value] = {}


_OF_SPAN = b"\x4a"


class Written(msgspec.Struct, frozen=True, gc=False):
    """Attributes that many spans have, as bytes; `written` makes it."""

    attributes: Attributes = {}
    data: bytes = b""


def written(given: Attributes) -> Written:
    """Write attributes once, for all the spans that have them."""
    return Written(given, attributes(_OF_SPAN, given))


_NOTHING = Written()
INTERNAL, SERVER, CLIENT = 1, 2, 3  # SpanKind
ERROR = 2  # StatusCode


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One span. Ids are hexadecimal, times nanoseconds since 1970; `error` is what went wrong, None if nothing did.

    `common` are attributes that other spans have too, `own` are its alone.
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    own: Attributes
    common: Written = _NOTHING
    events: tuple[Event, ...] = ()
    error: str | None = None
    state: str = ""

    @property
    def attributes(self) -> Attributes:
        """All that it says."""
        return {**self.common.attributes, **self.own}


def span(given: Span) -> bytes:
    """Write a span as the `spans` of its ScopeSpans."""
    parts = [
        b"\x0a\x10",
        bytes.fromhex(given.trace),
        b"\x12\x08",
        bytes.fromhex(given.id),
        field(b"\x1a", given.state.encode()) if given.state else b"",
        b"\x22\x08" + bytes.fromhex(given.parent) if given.parent else b"",
        field(b"\x2a", given.name.encode("utf-8", "replace")),
        b"\x30" + _SMALL[given.kind],
        b"\x39" + _fixed64(given.start),
        b"\x41" + _fixed64(given.end),
        given.common.data,
        attributes(_OF_SPAN, given.own),
    ]
    for event in given.events:
        told = (
            b"\x09" + _fixed64(event.at) + field(b"\x12", event.name.encode()) + attributes(b"\x1a", event.attributes)
        )
        parts.append(field(b"\x5a", told))
    if given.error is not None:
        message = field(b"\x12", given.error.encode("utf-8", "replace")) if given.error else b""
        parts.append(field(b"\x7a", message + b"\x18" + _SMALL[ERROR]))
    return field(b"\x12", b"".join(parts))


def resource(given: Attributes) -> bytes:
    """Write the resource, as the first field of what is sent."""
    return field(b"\x0a", attributes(b"\x0a", given))


def scope(name: str, version: str) -> bytes:
    """Write the instrumentation scope, as the first field of what is in it."""
    return field(b"\x0a", field(b"\x0a", name.encode()) + field(b"\x12", version.encode()))


def request(resource: bytes, scope: bytes, items: Iterable[bytes]) -> bytes:
    """Write an Export*ServiceRequest of one resource and one scope; spans, metrics and logs have the same numbers."""
    return field(b"\x0a", resource + field(b"\x12", scope + b"".join(items)))


def rejected(answer: bytes) -> int:
    """Read how many items an Export*ServiceResponse says it didn't take: field 1 of its field 1, `partial_success`."""
    inner = _first(answer, _PARTIAL)
    count = _first(inner, _COUNT) if isinstance(inner, bytes) else 0
    return count if isinstance(count, int) else 0


_PARTIAL, _COUNT = 0x0A, 0x08  # tags: their number * 8 + 2 (has a length), + 0 (a varint)


def _first(message: bytes, tag: int) -> bytes | int:
    """Read a message's first field, which is that of the lowest number as all write it; 0 where it is another."""
    if not message or message[0] != tag:
        return 0
    value, place = 0, 1
    for shift in range(0, 64, 7):
        if place >= len(message):
            return 0
        byte = message[place]
        value, place = value | (byte & 0x7F) << shift, place + 1
        if byte < _LOW:
            break
    return value if tag == _COUNT else message[place : place + value]


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """One log record. `severity` is its number (9 is INFO, 13 WARN); `event` names what it tells."""

    at: int
    body: str = ""
    severity: int = 9
    event: str = ""
    trace: str = ""
    span: str = ""
    attributes: Attributes = {}


def log(given: Log) -> bytes:
    """Write a log record as the `log_records` of its ScopeLogs."""
    parts = [
        b"\x09" + _fixed64(given.at),
        b"\x10" + varint(given.severity),
        field(b"\x2a", any_value(given.body)) if given.body else b"",
        attributes(b"\x32", given.attributes),
        field(b"\x4a", bytes.fromhex(given.trace)) if given.trace else b"",
        field(b"\x52", bytes.fromhex(given.span)) if given.span else b"",
        b"\x59" + _fixed64(given.at),
        field(b"\x62", given.event.encode()) if given.event else b"",
    ]
    return field(b"\x12", b"".join(parts))


class Point(msgspec.Struct, frozen=True):
    """A metric's value for one set of attributes: one number, or a histogram's counts and, last, its sum."""

    attributes: Attributes
    values: Sequence[float]


_CUMULATIVE = b"\x10\x02"  # AggregationTemporality


def _head(name: str, described: str, unit: str) -> bytes:
    return field(b"\x0a", name.encode()) + field(b"\x12", described.encode()) + field(b"\x1a", unit.encode())


def _number(point: Point, start: int, now: int) -> bytes:
    begun = b"\x11" + _fixed64(start) if start else b""
    written = (
        begun + b"\x19" + _fixed64(now) + b"\x21" + _double(point.values[0]) + attributes(b"\x3a", point.attributes)
    )
    return field(b"\x0a", written)


def gauge(name: str, described: str, unit: str, points: Iterable[Point], now: int) -> bytes:
    """Write a gauge as the `metrics` of its ScopeMetrics."""
    data = b"".join(_number(point, 0, now) for point in points)
    return field(b"\x12", _head(name, described, unit) + field(b"\x2a", data))


def counter(name: str, described: str, unit: str, points: Iterable[Point], start: int, now: int) -> bytes:
    """Write a sum that only grows, since `start`."""
    data = b"".join(_number(point, start, now) for point in points) + _CUMULATIVE + b"\x18\x01"
    return field(b"\x12", _head(name, described, unit) + field(b"\x3a", data))


def histogram(
    name: str, described: str, unit: str, bounds: Sequence[float], points: Iterable[Point], times: tuple[int, int]
) -> bytes:
    """Write a histogram with these upper bounds; `times` are its start and now."""
    start, now = times
    limits = b"".join(map(_double, bounds))
    data = []
    for point in points:
        *counts, total = point.values
        whole = [int(count) for count in counts]
        written = (
            b"\x11" + _fixed64(start) + b"\x19" + _fixed64(now)
            + b"\x21" + _fixed64(sum(whole))
            + b"\x29" + _double(total)
            + field(b"\x32", b"".join(map(_fixed64, whole)))
            + field(b"\x3a", limits)
            + attributes(b"\x4a", point.attributes)
        )  # fmt: skip
        data.append(field(b"\x0a", written))
    return field(b"\x12", _head(name, described, unit) + field(b"\x4a", b"".join(data) + _CUMULATIVE))
