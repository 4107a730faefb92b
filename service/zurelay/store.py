"""The store: where limits are checked and spend is kept, as the house sees it, and what waits to be written there.

A request is reserved before its first attempt and settled, once, when it is over. Settling only takes note; what was
noted is written together, several times a second, so that a crash costs a second of spend at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

import msgspec

from zurelay import limits, money
from zurelay.limits import Granted, Need, Refused, Reservation, Scope
from zurelay.news import Closed
from zurelay.usage import Usage

FLUSH_EVERY = 0.2  # seconds, a fifth of what may be lost
BEAT_EVERY = 1.0  # seconds between two signs of life of a process
DEAD_AFTER = 6.0  # seconds without one: what the process's requests held is given back


class StoreError(Exception):
    """The store can't be used as it is: what is wrong with it, and what to do. Nothing starts."""


class StoreUnavailableError(Exception):
    """The store can't be reached now. Whether requests go on is for `store.on_failure` to say."""


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> int:
        """Give the microseconds since 1970, UTC."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What one request came to. `usd` is None where the model has no price; `ours` is what the client doesn't pay.

    `model` is the one that answered, empty where none did; `workload` is written NAMESPACE/SERVICE_ACCOUNT.
    """

    key: str = ""
    workload: str = ""
    model: str = ""
    usage: Usage = Usage()
    usd: Decimal | None = money.ZERO
    ours: Decimal = money.ZERO
    failed: bool = False


class Place(msgspec.Struct, frozen=True, order=True):
    """What spend is counted by."""

    day: str
    key: str
    workload: str
    model: str


class Counts(msgspec.Struct, kw_only=True):
    """Sums over requests. `estimated` and `unpriced` are how many had no usage from their provider, or no price."""

    requests: int = 0
    failed: int = 0
    estimated: int = 0
    unpriced: int = 0
    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    completion: int = 0
    reasoning: int = 0
    usd: int = 0
    ours: int = 0

    def add(self, other: Counts) -> None:
        """Add another's figures."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTS = Counts.__struct_fields__
MONEY = ("usd", "ours")  # whole numbers of 1e-18 USD, too long for 64 bits


class Line(msgspec.Struct, frozen=True):
    """The sums of one place."""

    place: Place
    counts: Counts


class Store(Protocol):
    """Where limits are checked and spend is kept."""

    async def reserve(self, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
        """Let a request in if it fits in every scope's limits, and hold what it needs in all of them, or in none."""

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Put the true figures in a reservation's place. Call it once for each, in whichever process; never waits."""

    def release(self, reservation: Reservation) -> None:
        """Give back the money held, if nothing was settled: for a request that is over, whatever became of it."""

    async def spending(self, first: str, last: str) -> list[Line]:
        """Give the spend of the days from `first` to `last`, in order."""

    async def flush(self) -> None:
        """Write what was settled so far."""

    async def close(self) -> None:
        """Write what was settled and let go."""


class Batch(msgspec.Struct, kw_only=True):
    """What was settled and isn't written yet. Sums, so that it stays small however long the store is away.

    `given_up` are reservations of which nobody knows whether they were made.
    """

    closed: list[Closed] = []
    spent: dict[tuple[str, str], int] = {}
    lines: dict[Place, Counts] = {}
    released: list[Reservation] = []
    given_up: list[Reservation] = []

    def __bool__(self) -> bool:
        return bool(self.closed or self.spent or self.lines or self.released or self.given_up)

    def note(self, reservation: Reservation, spent: Spent, at: int) -> tuple[Closed | None, int]:
        """Take note of a request that is over; give what closes its reservation, if it held one, and the amount."""
        usage, amount = spent.usage, money.units(spent.usd or money.ZERO)
        for place in purses(reservation) if amount else ():
            self.spent[place] = self.spent.get(place, 0) + amount
        where = Place(reservation.day, spent.key, spent.workload, spent.model)
        self.lines.setdefault(where, Counts()).add(
            Counts(
                requests=1,
                failed=int(spent.failed),
                estimated=int(usage.estimated),
                unpriced=int(spent.usd is None),
                prompt=usage.prompt,
                cached=usage.cached,
                cache_written=usage.cache_written,
                completion=usage.completion,
                reasoning=usage.reasoning,
                usd=amount,
                ours=money.units(spent.ours),
            )
        )
        return self.close(reservation, usage.total, at), amount

    def close(self, reservation: Reservation, used: int, at: int) -> Closed | None:
        """Take note of the tokens that a reservation came to; None if it held nothing."""
        if not reservation.id:
            return None
        closed = Closed(reservation.id, at, reservation.day, reservation.tokens, used, reservation.scopes)
        self.closed.append(closed)
        return closed


def purses(reservation: Reservation) -> list[tuple[str, str]]:
    """List what a request's money counts in, by scope and period."""
    periods = (reservation.day, limits.month_of(reservation.day))
    return [(scope, period) for scope in reservation.scopes for period in periods]
