"""The seams: what the house needs of the world, as small protocols. Shells implement them, tests do too."""

from __future__ import annotations

from typing import Protocol

import msgspec

from zurelay.limits import Refused
from zurelay.moments import Moments
from zurelay.plan import Attempt, Plan
from zurelay.rules import Finding
from zurelay.store import Spent
from zurelay.trace_context import Context, Trace
from zurelay.usage import Usage


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one request.

    `attempt` ended it, as number `number` (0: it is not known which); `outcome` is one of settlement's words, `why` is
    what Envoy says of it; `spent` is who pays. `reason` is why the last attempt failed, `status` its provider's;
    `response_model` is what the provider calls the model; `content` is what was asked and answered, where that is
    captured.
    """

    plan: Plan
    number: int
    outcome: str
    attempt: Attempt | None = None
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    spent: Spent | None = None
    why: str = ""
    moments: Moments = Moments()
    reason: str = ""
    status: int = 0
    response_model: str = ""
    content: dict[str, str] | None = None


class Unplanned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request that is over and had no plan.

    `outcome` is one of settlement's words: it was turned away with `status` and `code`, answered by us (a list of
    models), or its client left. `asked` and `path` are the client's own words, cut short: they may be anything.
    """

    request_id: str
    method: str
    path: str
    outcome: str
    began: int
    ended: int
    status: int = 0
    code: str = ""
    asked: str = ""
    key: str | None = None
    workload: str = ""
    trace: Trace | None = None


class Ends(Protocol):
    """Where it is known which requests have been put on record, whoever did it."""

    def claim(self, name: str) -> bool:
        """Claim a request that was judged; False where somebody has, or has announced its end."""

    def announce(self, name: str) -> bool:
        """Say that a request is over; False where somebody has claimed it, or said so."""

    def is_claimed(self, name: str) -> bool:
        """Tell whether a request was judged."""


class Recorder(Protocol):
    """Where requests are put on record."""

    def finished(self, record: Record) -> None:
        """Take note of a request that has ended."""

    def trace(self, marked: str, sent: Context | None, *, stream: bool = False) -> Trace | None:
        """Begin the trace of a request, as `trace_context.began` says; None where nothing is traced."""

    def may_keep(self, trace: Trace) -> bool:
        """Tell whether a request that is under way may come to have spans."""

    def decided(self, plan: Plan, took: float) -> None:
        """Take note of a plan; `took` is the sidecar's time for it in seconds."""

    def unplanned(self, given: Unplanned) -> None:
        """Take note of a request that has ended without a plan."""

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        """Take note of an attempt that failed."""

    def limited(self, plan: Plan, refused: Refused, *, shadow: bool) -> None:
        """Take note of a request that a limit refused, or would have refused."""

    def ruled(self, request_id: str, finding: Finding, *, shadow: bool) -> None:
        """Take note of what a policy had against a request, or would have had."""
