"""Everything that counts towards limits, as one process knows it. Pure: the store brings what others did, and the time.

What happened is told in events, one's own and others' alike (`news.py`), so that all who take in the same come to the
same figures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import Decimal

import msgspec

from zurelay import limits, money
from zurelay.limits import Kind, Need, Refused, Scope, Standing
from zurelay.news import Closed, News, Taken, owner_of
from zurelay.windows import Entry, Purse, Window

_TIDIED = 1000  # windows looked at in one go: a fraction of a millisecond


class Considered(msgspec.Struct, frozen=True):
    """Whether a request fits: refusals of enforced scopes, those of shadows, and the scopes that would hold it."""

    refused: tuple[Refused, ...]
    shadow: tuple[Refused, ...]
    fitting: tuple[str, ...]


class _Open:
    __slots__ = ("amount", "entries", "purses")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.entries: dict[str, Entry] = {}
        self.purses: list[Purse] = []


class Ledger:
    """Windows and purses of all scopes, and the reservations that are open."""

    __slots__ = ("_day", "_now", "_open", "_purses", "_untidied", "_windows")

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}
        self._purses: dict[tuple[str, str], Purse] = {}
        self._open: dict[str, _Open] = {}
        self._untidied: list[str] = []
        self._day = ""
        self._now = 0

    def hear(self, news: News) -> None:
        """Take in what another process did."""
        for taken in news.taken:
            self.take(taken)
        for closed in news.closed:
            self.close(closed)
        for scope, period, amount in news.spent:
            self.spend(scope, period, amount)
        for reservation in news.released:
            self.give_back(reservation)

    def advance(self, now: int) -> None:
        """Tell the time. A clock that goes back lets no request in sooner, and makes none wait over a minute."""
        if now < self._now:
            for window in self._windows.values():
                window.advance(self._now)
                window.turn_back(now)
        self._now = now

    def unknown(self, scopes: Iterable[Scope], day: str) -> list[tuple[str, str]]:
        """List the purses, by scope and period, whose spend must be learned before these scopes are considered."""
        return [
            (scope.name, period)
            for scope in scopes
            for _, _, period in _spend_limits(scope, day)
            if self._purse(scope.name, period).spent is None
        ]

    def learn(self, scope: str, period: str, spent: int) -> None:
        """Take in what was spent so far in a day or month."""
        self._purse(scope, period).spent = spent

    def consider(self, scopes: Iterable[Scope], need: Need, day: str) -> Considered:
        """Tell whether a request fits in every limit now. Nothing changes."""
        refused: list[Refused] = []
        shadow: list[Refused] = []
        fitting: list[str] = []
        amount = money.units(need.usd)
        for scope in scopes:
            if not scope.limited:
                continue
            found = self._refusals(scope, need, amount, day)
            if found:
                (refused if scope.enforced else shadow).append(limits.binding(found))
            else:
                fitting.append(scope.name)
        return Considered(tuple(refused), tuple(shadow), tuple(fitting))

    def _refusals(self, scope: Scope, need: Need, amount: int, day: str) -> list[Refused]:
        found: list[Refused] = []
        window = self._window(scope.name)
        requests, tokens = scope.limits.requests_per_minute, scope.limits.tokens_per_minute
        if requests is not None:
            wait = window.wait_for_request(requests, self._now)
            if wait:
                found.append(_refused(scope, Kind.REQUESTS, requests, window.requests, 1, wait))
        if tokens is not None:
            until = window.wait_for_tokens(need.tokens, tokens, self._now)
            if until != 0:
                found.append(_refused(scope, Kind.TOKENS, tokens, window.tokens, need.tokens, until))
        for kind, limit, period in _spend_limits(scope, day):
            purse = self._purse(scope.name, period)
            used, room = purse.used, money.units(limit) - amount
            if used > room:
                held = used - purse.held <= room
                told = money.usd(used)
                found.append(limits.out_of_money(scope, kind, limit, told, need.usd, self._now, held=held))
        return found

    def take(self, taken: Taken) -> None:
        """Count a request that was let in."""
        self.advance(taken.at)
        held = self._open[taken.id] = _Open(taken.amount)
        for name in taken.scopes:
            held.entries[name] = self._window(name).add(taken.at, 1, taken.tokens)
            for period in (taken.day, limits.month_of(taken.day)) if taken.amount else ():
                purse = self._purse(name, period)
                purse.held += taken.amount
                held.purses.append(purse)

    def close(self, closed: Closed) -> None:
        """Put the true figure in a reservation's place; tokens beyond it count from when they are known."""
        held = self._open.pop(closed.id, None)
        if held is not None:
            _let_go(held)
        self._now = max(self._now, closed.at)
        more = closed.used - closed.reserved
        for name in closed.scopes if held is None else held.entries:
            if more > 0:
                self._window(name).add(self._now, 0, more)
            elif held is not None:
                self._window(name).correct(held.entries[name], closed.used)

    def spend(self, scope: str, period: str, amount: int) -> None:
        """Add to what was spent, where that is known."""
        purse = self._purses.get((scope, period))
        if purse is not None and purse.spent is not None:
            purse.spent += amount

    def give_back(self, reservation: str) -> None:
        """Let a reservation's money go. Its tokens stay until they are settled, or their minute is over."""
        held = self._open.get(reservation)
        if held is not None:
            _let_go(held)

    def sweep(self, alive: Collection[str]) -> None:
        """Give back the money held for processes that are no more; forget reservations that hold nothing."""
        for reservation, held in list(self._open.items()):
            if owner_of(reservation) not in alive:
                _let_go(held)
            if not held.purses and all(entry.gone for entry in held.entries.values()):
                del self._open[reservation]

    def tidy(self, day: str) -> None:
        """Drop some windows in which nothing counts, and the purses of days and months that are over."""
        self._untidied = self._untidied or list(self._windows)
        for name in self._untidied[-_TIDIED:]:
            window = self._windows.get(name)
            if window is not None:
                window.advance(self._now)
                if window.empty:
                    del self._windows[name]
        del self._untidied[-_TIDIED:]
        if day != self._day:
            self._day = day
            current = (day, limits.month_of(day))
            self._purses = {at: purse for at, purse in self._purses.items() if at[1] in current or purse.held}

    def standings(self, scopes: Iterable[Scope]) -> tuple[Standing | None, Standing | None]:
        """Give where a caller stands with requests and with tokens: in the enforced scope with the least left."""
        requests: list[Standing] = []
        tokens: list[Standing] = []
        for scope in scopes:
            if not (scope.enforced and scope.limited):
                continue
            window = self._window(scope.name)
            if (limit := scope.limits.requests_per_minute) is not None:
                left = max(limit - window.requests, 0)
                requests.append(Standing(limit, left, window.requests_reset(self._now)))
            if (limit := scope.limits.tokens_per_minute) is not None:
                left = max(limit - window.tokens, 0)
                tokens.append(Standing(limit, left, window.tokens_reset(self._now)))
        return limits.tightest(requests), limits.tightest(tokens)

    def _window(self, name: str) -> Window:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = Window()
        window.advance(self._now)
        return window

    def _purse(self, name: str, period: str) -> Purse:
        purse = self._purses.get((name, period))
        if purse is None:
            purse = self._purses[name, period] = Purse()
        return purse


def _spend_limits(scope: Scope, day: str) -> list[tuple[Kind, Decimal, str]]:
    found = []
    if scope.limits.usd_per_day is not None:
        found.append((Kind.USD_DAY, scope.limits.usd_per_day, day))
    if scope.limits.usd_per_month is not None:
        found.append((Kind.USD_MONTH, scope.limits.usd_per_month, limits.month_of(day)))
    return found


def _let_go(held: _Open) -> None:
    for purse in held.purses:
        purse.held -= held.amount
    held.purses.clear()


def _refused(scope: Scope, kind: Kind, limit: int, used: int, needed: int, wait: int | None) -> Refused:
    return Refused(scope=scope, kind=kind, limit=limit, used=used, needed=needed, wait=wait)
