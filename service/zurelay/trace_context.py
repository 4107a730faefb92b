"""W3C Trace Context, and which traces are kept: what a client sent, and what Envoy decides from it.

https://www.w3.org/TR/trace-context/ (level 2). Envoy's sampler is repeated here to the bit, since Envoy tells the
sidecar which span it made but not whether it keeps it; `tests/e2e/test_traces.py` asks Envoy.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

# Later versions may append fields (4.3), and 00 is exactly this long. Capitals and version ff are forbidden, but Envoy
# goes on with them, and with the first of several headers: who doesn't would have spans whose parent nobody sends.
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?(?:,.*)?", re.IGNORECASE)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_DASH = 32  # where it stands in TRACE-SPAN
_SAMPLED = 0x01
_MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x7e]{1,256}"
)
_MOST_MEMBERS = 32
_LONGEST_STATE = 512  # what a vendor should pass on at least (3.3.1.5); longer ones would only cost
_MILLION = 1_000_000
_TRACE_BYTES, _SPAN_BYTES = 16, 8

Fresh = Callable[[int], str]
"""Gives an id of so many bytes, in hexadecimal, that nobody has used."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A span that others may be children of. Ids are lower-case hexadecimal."""

    trace: str
    span: str
    sampled: bool
    state: str = ""


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The trace of one request, as it travels with the plan. `server` is the span that the request is in.

    `kept` is whether its spans are sent from the start. `ours` says that nobody else sends the server span, whose
    parent is `parent`; it is the sidecar's to send where Envoy has none, or doesn't keep it and a rule does. `relay` is
    the span of a stream's relay.
    """

    id: str
    server: str
    parent: str = ""
    state: str = ""
    relay: str = ""
    kept: bool = False
    ours: bool = False

    @property
    def above(self) -> str:
        """The span that the attempts stand below."""
        return self.relay or self.server


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are kept: the parent's decision where there is one and it counts, else a share of all."""

    ratio: float
    heed_parent: bool = True

    @property
    def millionths(self) -> int:
        """The share as Envoy has it."""
        return round(self.ratio * _MILLION)

    def keeps(self, trace: str, parent: Context | None) -> bool:
        """Decide about a trace, as Envoy does."""
        if parent is not None and self.heed_parent:
            return parent.sampled
        return int.from_bytes(bytes.fromhex(trace[:16]), "little") % _MILLION < self.millionths


def parse(traceparent: str, tracestate: str | None = None) -> Context | None:
    """Read what a client sent, as Envoy does; None for what is no context, which starts a new trace (3.2.2.5)."""
    found = _PARENT.fullmatch(traceparent)
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if (version == "00" and more is not None) or trace == _NO_TRACE or span == _NO_SPAN:
        return None
    sampled = bool(int(flags, 16) & _SAMPLED)
    return Context(trace=trace.lower(), span=span.lower(), sampled=sampled, state=state(tracestate))


def state(tracestate: str | None) -> str:
    """Give a tracestate as it may be sent on: empty where any of it is wrong (3.3.1)."""
    if not tracestate or len(tracestate) > _LONGEST_STATE:
        return ""
    members = [member.strip(" \t") for member in tracestate.split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > _MOST_MEMBERS or len(keys) < len(members) or not all(map(_is_member, members)):
        return ""
    return ",".join(members)


def _is_member(text: str) -> bool:
    value = text.partition("=")[2]
    return _MEMBER.fullmatch(text) is not None and "=" not in value and not value.endswith(" ")


def traceparent(context: Context) -> str:
    """Write a context as a header."""
    return f"00-{context.trace}-{context.span}-{_SAMPLED if context.sampled else 0:02x}"


def began(marked: str, sent: Context | None, sampling: Sampling, fresh: Fresh, *, relayed: bool = False) -> Trace:
    """Give the trace of a request that comes in.

    `marked` is TRACE-SPAN of Envoy's server span, or anything else where it made none; `sent` is what the client sent.
    """
    relay = fresh(_SPAN_BYTES) if relayed else ""
    trace, dash, span = marked[:_DASH], marked[_DASH : _DASH + 1], marked[_DASH + 1 :]
    if dash == "-" and len(span) == len(_NO_SPAN):
        if sent is None:  # nearly always, and every request pays for what is done here
            return Trace(id=trace, server=span, relay=relay, kept=sampling.keeps(trace, None))
        trace, span = trace.lower(), span.lower()
        # Envoy goes on with what it could read; where it couldn't, the trace is its own.
        parent = sent if sent.trace == trace else None
        return Trace(
            id=trace,
            server=span,
            parent=parent.span if parent is not None else "",
            state=parent.state if parent is not None else "",
            relay=relay,
            kept=sampling.keeps(trace, parent),
        )
    made = sent.trace if sent is not None else fresh(_TRACE_BYTES)
    return Trace(
        id=made,
        server=fresh(_SPAN_BYTES),
        parent=sent.span if sent is not None else "",
        state=sent.state if sent is not None else "",
        relay=relay,
        kept=sampling.keeps(made, sent),
        ours=True,
    )
