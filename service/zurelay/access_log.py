"""What Envoy's access log tells of a request's end, read: for the ends that no attempt has judged (decision 9)."""

from __future__ import annotations

import msgspec

from zurelay import settlement
from zurelay.moments import Moments
from zurelay.plan import Plan
from zurelay.ports import Record

_ENVOY_CLOSED = "downstream_local_disconnect"  # how Envoy's details begin where it closed the connection itself


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's facts. `status` is 0 where no answer began, `cut` whether the connection or stream was.

    `tries` counts attempts, those too that connected to nobody; `sent`: the last one had the whole request. `ended` is
    the request's end, `began` when the last attempt sent its first byte, in nanoseconds since 1970, 0 for never.
    """

    plan: Plan
    tries: int
    status: int
    cut: bool
    sent: bool
    details: str
    ended: int = 0
    began: int = 0

    @property
    def client_left(self) -> bool:
        """Whether the client went before there was an answer for it."""
        return self.cut and not self.status and not self.details.startswith(_ENVOY_CLOSED)


def record(entry: Entry) -> Record:
    """Make the record of a request that ended so."""
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
