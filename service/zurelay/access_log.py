"""What Envoy's access log tells of a request's end, read: for the ends that no attempt has judged (decision 9)."""

from __future__ import annotations

import msgspec

from zurelay import passthrough, settlement
from zurelay.moments import Moments
from zurelay.passthrough import Counted
from zurelay.plan import Plan
from zurelay.ports import Record

_OK = 200
_ENVOY_CLOSED = "downstream_local_disconnect"  # how Envoy's details begin where it closed the connection itself


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's facts. `status` is 0 where no answer began, `cut` whether the connection or stream was.

    `tries` counts attempts, those too that connected to nobody; `sent`: the last one had the whole request. `ended` is
    the request's end, `began` when the last attempt sent its first byte, `answered` when the client was sent its first
    one, in nanoseconds since 1970, 0 for never.
    """

    plan: Plan
    tries: int
    status: int
    cut: bool
    sent: bool
    details: str
    counted: Counted = Counted()
    ended: int = 0
    began: int = 0
    answered: int = 0

    @property
    def client_left(self) -> bool:
        """Whether the client went before there was an answer for it."""
        return self.cut and not self.status and not self.details.startswith(_ENVOY_CLOSED)


def record(entry: Entry) -> Record:
    """Make the record of a request that ended so."""
    if entry.counted.number:
        return _passed(entry)
    plan = entry.plan
    number = min(entry.tries, len(plan.attempts), plan.length)  # tries beyond a shortened plan reach nobody
    attempt = plan.attempts[number - 1] if number else None
    paid = entry.client_left and entry.sent
    return Record(
        plan=plan,
        number=number,
        attempt=attempt,
        outcome=settlement.CLIENT_LEFT if entry.client_left else settlement.FAILED,
        usage=settlement.left_unanswered(plan) if paid else None,
        why=entry.details,
        moments=Moments(began=entry.began, ended=entry.ended),
    )


def _passed(entry: Entry) -> Record:
    """Make the record of a stream that passed through; of one that broke off the last few events are not counted."""
    plan, counted = entry.plan, entry.counted
    attempt = plan.attempts[counted.number - 1]
    broken = settlement.CLIENT_LEFT if entry.cut else settlement.BROKEN
    return Record(
        plan=plan,
        number=counted.number,
        attempt=attempt,
        outcome=settlement.ANSWERED if counted.whole else broken,
        usage=settlement.used(plan, attempt, passthrough.used(counted, attempt), counted.events),
        why="" if counted.whole else entry.details,
        status=_OK,
        # The attempt holds the head back until there is a token.
        moments=Moments(began=entry.began, first_token=entry.answered, ended=entry.ended),
    )
