"""What goes on from an attempt: where its request is sent, the headers that its answer gets, the mark for a retry."""

from __future__ import annotations

from collections.abc import Mapping

from zurelay import failure, headers, plan, wire
from zurelay.errors import ZurelayError, error_body
from zurelay.heard import Head
from zurelay.model import Format
from zurelay.plan import Attempt, Plan
from zurelay.relay_words import PAST
from zurelay.verdict import Verdict, unavailable
from zurelay.wire import Mutation


def target(current: Attempt, sent: Mapping[str, str]) -> dict[str, str]:
    """Where the provider's request goes, and what its format wants in the headers."""
    found = {":path": current.path}
    if current.format is Format.ANTHROPIC and headers.ANTHROPIC_VERSION not in sent:
        found[headers.ANTHROPIC_VERSION] = headers.DEFAULT_VERSION
    return found


def refused(planned: Plan, number: int, error: ZurelayError) -> bytes:
    """Answer the client with an error. It is final, and has a body also where the provider's answer had none."""
    shown = {"content-type": "application/json", **ours(planned, number, None), **error.headers()}
    if planned.relayed:
        shown |= {wire.FAILURE: failure.encode(error), **tried(planned)}
    return wire.immediate(error.status, shown, error_body(error, planned.endpoint, planned.request_id))


def ours(planned: Plan, number: int, current: Attempt | None) -> dict[str, str]:
    """The x-zurelay headers of an answer (SPEC 7); without an attempt, those of a failure."""
    found = {
        **headers.request_ids(planned.endpoint, planned.request_id),
        **planned.standing,
        "x-zurelay-attempts": str(number),
    }
    if current is None:
        return found
    found["x-zurelay-model"] = current.model
    routed_from = plan.routed_from(planned, current)
    if routed_from is not None:
        found["x-zurelay-routed-from"] = routed_from
    if planned.explained is not None:
        found[headers.EXPLAIN] = planned.explained
    if current.shown_effort is not None:
        found["x-zurelay-reasoning-effort"] = current.shown_effort
    return found


def tried(planned: Plan) -> dict[str, str]:
    """Tell the relay what was given up."""
    return {PAST: plan.encode_past(planned.past)} if planned.past else {}


def stale(head: Head, shown: dict[str, str]) -> list[str]:
    """The provider's headers that must go."""
    return [name for name in headers.kept_from_client(head.headers) if name not in shown]


def moving_on(verdict: Verdict, head: Head, number: int, suffix: str) -> Mutation:
    """Mark the answer for Envoy's retry and hand the plan on.

    The provider's own headers go: x-envoy-ratelimited, from one behind an Envoy, forbids the retry. After a 1xx Envoy
    doesn't retry whatever we say; so that no failed answer gets out as if it were one, it is made an error of ours.
    """
    following = verdict.plan
    if following is None:
        raise RuntimeError("a move on carries the plan that follows")
    error = unavailable(following.past, number)
    shown = {
        ":status": str(error.status),
        "content-type": "application/json",
        wire.MOVE_ON: "1",
        **ours(following, number, None),
        **error.headers(),
    }
    if following.relayed:
        shown |= {wire.FAILURE: failure.encode(error), **tried(following)}
    return Mutation(
        headers=shown,
        removed=stale(head, shown),
        body=None if following.stream or head.end else error_body(error, following.endpoint, following.request_id),
        plan=following,
        groups=plan.groups(following, suffix),
    )
