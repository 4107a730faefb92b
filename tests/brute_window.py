"""The limits of a minute by brute force: all that ever came is kept, and times are found by trying them one by one."""

from __future__ import annotations

import random

import msgspec

from zurelay.limits import MINUTE, SECOND, Standing

PAUSES = (0, 1, SECOND // 3, SECOND, 7 * SECOND, 20 * SECOND, MINUTE - 1, MINUTE)


class Step(msgspec.Struct, frozen=True):
    """A pause in microseconds, then a request of so many tokens; `closes` says which one ends before, and used what."""

    pause: int
    tokens: int
    closes: tuple[int, int] | None = None


def steps(seed: int, count: int) -> list[Step]:
    dice = random.Random(seed)
    return [
        Step(
            dice.choice(PAUSES[: dice.choice((3, 5, len(PAUSES)))]),
            dice.choice((0, 1, 10, 40, 100, 101)),
            (dice.randrange(99), dice.choice((0, 5, 60, 300))) if dice.random() < 0.4 else None,
        )
        for _ in range(count)
    ]


class _Came:
    def __init__(self, at: int, requests: int, tokens: int) -> None:
        self.at = at
        self.requests = requests
        self.tokens = tokens


class BruteWindow:
    """One scope with a limit of requests and one of tokens."""

    def __init__(self, requests: int, tokens: int) -> None:
        self._limits = requests, tokens
        self._came: list[_Came] = []

    def _used(self, now: int) -> tuple[int, int]:
        counting = [came for came in self._came if now - came.at < MINUTE]
        return sum(came.requests for came in counting), sum(came.tokens for came in counting)

    def admits(self, now: int, tokens: int) -> bool:
        used = self._used(now)
        return used[0] + 1 <= self._limits[0] and used[1] + tokens <= self._limits[1]

    def take(self, now: int, tokens: int) -> _Came:
        came = _Came(now, 1, tokens)
        self._came.append(came)
        return came

    def close(self, came: _Came, used: int, now: int) -> None:
        if used > came.tokens:
            self._came.append(_Came(now, 0, used - came.tokens))
        else:
            came.tokens = used

    def retry_after(self, now: int, tokens: int) -> int | None:
        """The first whole second after which it passes, if nothing else comes."""
        return next((wait for wait in range(1, 61) if self.admits(now + wait * SECOND, tokens)), None)

    def standings(self, now: int) -> tuple[Standing, Standing]:
        used = self._used(now)
        counting = [came for came in self._came if now - came.at < MINUTE]
        last_request = max((came.at for came in counting if came.requests), default=now - MINUTE)
        last_token = max((came.at for came in counting if came.tokens), default=now - MINUTE)
        return (
            Standing(self._limits[0], max(self._limits[0] - used[0], 0), last_request + MINUTE - now),
            Standing(self._limits[1], max(self._limits[1] - used[1], 0), last_token + MINUTE - now),
        )
