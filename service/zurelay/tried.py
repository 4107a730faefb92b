"""The attempts of a request that is over, one by one: those that were judged, and those that no filter saw.

A connection that fails, a reset and a timeout reach no filter. That there was such an attempt shows in the numbers: an
answer by the third of which only the second is on record had a first as well.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from zurelay import money, settlement
from zurelay.model import Endpoint
from zurelay.plan import Attempt, Past, Plan
from zurelay.ports import Record
from zurelay.settlement import ANSWERED, CLIENT_LEFT, FAILED

UNSEEN = "no_answer"
_CLIENT_ERROR = 400


class Tried(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt. `ends` marks the one that ended the request; `error` is its error.type, empty where it is none."""

    attempt: Attempt
    number: int
    began: int
    ended: int
    reason: str = ""
    status: int = 0
    error: str = ""
    ends: bool = False
    discarded: Decimal | None = None


def tried(record: Record) -> list[Tried]:
    """List the attempts that were made, in order."""
    plan = record.plan
    by_number = {past.number: past for past in plan.past}
    # A client that leaves before any answer leaves an attempt under way whose number nobody says: the first, mostly.
    last = record.number or (1 if record.attempt is not None else 0)
    made = max([last, *by_number], default=0)
    found: list[Tried] = []
    then = plan.decided or plan.began
    for number in range(1, made + 1):
        past = by_number.get(number)
        if number == last and record.attempt is not None:
            found.append(_last(record, record.attempt, past, (number, then)))
        elif past is not None:
            found.append(_given_up(plan, past, then, ends=number == last))
        else:
            found.append(_unseen(record, number, then, by_number.get(number + 1)))
        then = found[-1].ended
    return found


def _last(record: Record, attempt: Attempt, past: Past | None, place: tuple[int, int]) -> Tried:
    number, then = place
    failed = record.outcome not in (ANSWERED, CLIENT_LEFT)
    reason = past.reason.value if past is not None else record.reason
    status = past.status if past is not None else record.status
    unseen = UNSEEN if record.outcome == FAILED else record.outcome
    return Tried(
        attempt=attempt,
        number=number,
        began=(past.began if past is not None else 0) or record.moments.began or then,
        ended=record.moments.ended,
        reason=(reason or unseen) if failed else "",
        status=status,
        error=error_type(status, reason or unseen) if failed else "",
        ends=True,
    )


def _given_up(plan: Plan, past: Past, then: int, *, ends: bool) -> Tried:
    attempt = at(plan, past.cluster, past.number)
    began = past.began or then
    return Tried(
        attempt=attempt,
        number=past.number,
        began=began,
        ended=past.ended or began,
        reason=past.reason.value,
        status=past.status,
        error=error_type(past.status, past.reason.value),
        ends=ends,
        discarded=_discarded(plan, attempt, past),
    )


def _discarded(plan: Plan, attempt: Attempt, past: Past) -> Decimal | None:
    """Give what a given-up attempt cost, as it is settled; None where that isn't known, and where no model ran."""
    if past.usage is None or attempt.price is None or plan.endpoint is Endpoint.COUNT_TOKENS:
        return None
    return money.cost(attempt.price, settlement.used(plan, attempt, past.usage, 0))


def _unseen(record: Record, number: int, then: int, following: Past | None) -> Tried:
    """An attempt of which only the number is known: it ended when the next one began."""
    after = following.began if following is not None else 0
    if number == record.number - 1:
        after = after or record.moments.began
    attempts = record.plan.attempts
    return Tried(
        attempt=attempts[min(number, len(attempts)) - 1],
        number=number,
        began=then,
        ended=after or record.moments.ended,
        reason=UNSEEN,
        error=UNSEEN,
        ends=number == record.number,
    )


def at(plan: Plan, cluster: str, number: int) -> Attempt:
    """Find the attempt that a route and a number mean; a plan may have got shorter on the way."""
    place = min(number, len(plan.attempts)) - 1
    if plan.attempts[place].cluster == cluster:
        return plan.attempts[place]
    return next((one for one in plan.attempts if one.cluster == cluster), plan.attempts[place])


def error_type(status: int, reason: str) -> str:
    """Give error.type: the status where that is the error, else our word for it."""
    return str(status) if status >= _CLIENT_ERROR else reason
