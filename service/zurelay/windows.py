"""What counts towards limits: a window of the last minute that slides, and a purse for each day or month.

Pure arithmetic on times in whole microseconds and amounts in whole units; `ledger.py` puts many of them together.
"""

from __future__ import annotations

from collections import deque

from zurelay.limits import MINUTE


class Entry:
    """Something that counts for a minute from `at`. `gone`: the minute is over."""

    __slots__ = ("at", "gone", "requests", "tokens")

    def __init__(self, at: int, requests: int, tokens: int) -> None:
        self.at = at
        self.requests = requests
        self.tokens = tokens
        self.gone = False


class Window:
    """The requests and tokens of the last minute, each until exactly a minute after it came.

    As every request is in it, two bursts at a boundary can't both pass: there is no boundary.
    """

    __slots__ = ("_entries", "_last_request", "requests", "tokens")

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._last_request = 0
        self.requests = 0
        self.tokens = 0

    def advance(self, now: int) -> None:
        """Let go what came a minute ago or earlier."""
        entries = self._entries
        while entries and entries[0].at <= now - MINUTE:
            gone = entries.popleft()
            gone.gone = True
            self.requests -= gone.requests
            self.tokens -= gone.tokens

    def turn_back(self, now: int) -> None:
        """The clock went back to `now`: what seems to come from the future counts for a minute from now."""
        for entry in reversed(self._entries):
            if entry.at <= now:
                break
            entry.at = now
        self._last_request = min(self._last_request, now)

    def add(self, at: int, requests: int, tokens: int) -> Entry:
        """Count requests and tokens."""
        entry = Entry(at, requests, tokens)
        self._entries.append(entry)
        self.requests += requests
        self.tokens += tokens
        if requests:
            self._last_request = at
        return entry

    def correct(self, entry: Entry, tokens: int) -> None:
        """Change an entry's tokens, if it still counts."""
        if not entry.gone:
            self.tokens += tokens - entry.tokens
            entry.tokens = tokens

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self._entries

    def requests_reset(self, now: int) -> int:
        """Give the time until no request counts any more."""
        return self._last_request + MINUTE - now if self.requests else 0

    def tokens_reset(self, now: int) -> int:
        """Give the time until no token counts any more."""
        newest = next((entry.at for entry in reversed(self._entries) if entry.tokens), now - MINUTE)
        return newest + MINUTE - now

    def wait_for_request(self, limit: int, now: int) -> int:
        """Give the time until one more request fits; 0 if it does now."""
        excess = self.requests + 1 - limit
        for entry in self._entries if excess > 0 else ():
            excess -= entry.requests
            if excess <= 0:
                return entry.at + MINUTE - now
        return 0

    def wait_for_tokens(self, needed: int, limit: int, now: int) -> int | None:
        """Give the time until these tokens fit; 0 if they do now, None if they never will."""
        if needed > limit:
            return None
        excess = self.tokens + needed - limit
        for entry in self._entries if excess > 0 else ():
            excess -= entry.tokens
            if excess <= 0:
                return entry.at + MINUTE - now
        return 0


class Purse:
    """The money of one scope in one day or month: what was spent, None where that isn't known yet, and what is held."""

    __slots__ = ("held", "spent")

    def __init__(self) -> None:
        self.spent: int | None = None
        self.held = 0

    @property
    def used(self) -> int:
        """What is spent or held."""
        return (self.spent or 0) + self.held
