"""Stores for tests: several on the same data, as several processes have them, with one clock that tests set."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from zurelay.limits import SECOND, Granted, Need, Refused, Reservation, Scope
from zurelay.model import UsageLimits
from zurelay.store import Spent, Store
from zurelay.store_redis import RedisStore
from zurelay.store_sqlite import SqliteStore
from zurelay.usage import Usage

NOON = 1_796_040_000 * SECOND  # 2026-11-30, 12:00 UTC
DAY, MONTH = "2026-11-30", "2026-11"


class FakeClock:
    """A Clock that stands still until it is moved."""

    def __init__(self, at: int = NOON) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += round(seconds * SECOND)


class Stores:
    """Opens stores on one SQLite file or one Redis, and closes them all."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.clock = FakeClock()
        self._open: list[Store] = []

    async def open(self) -> Store:
        return self.keep(await self._make())

    async def _make(self) -> Store:
        if self.where.startswith("unix:"):
            return await RedisStore.open(self.where, self.clock)
        return await SqliteStore.open(self.where, self.clock)

    def keep(self, store: Store) -> Store:
        self._open.append(store)
        return store

    async def close(self) -> None:
        for store in self._open:
            await store.close()
        self._open.clear()


def sqlite(folder: Path) -> Stores:
    return Stores(str(folder / "zurelay.db"))


def scope(name: str = "key:a", *, enforced: bool = True, **limits: Any) -> Scope:
    """A scope with these limits; USD as text."""
    exact: dict[str, Any] = {
        kind: Decimal(limit) if kind.startswith("usd") else limit for kind, limit in limits.items()
    }
    return Scope(name=name, label="This key", limits=UsageLimits(**exact), enforced=enforced)


def need(tokens: int = 0, usd: str = "0") -> Need:
    return Need(tokens=tokens, usd=Decimal(usd))


def spent(usd: str | None = "0", *, prompt: int = 0, completion: int = 0, **facts: Any) -> Spent:
    usage = Usage(prompt=prompt, completion=completion, **facts.pop("usage", {}))
    whole = {"key": "a", "model": "gpt", "usage": usage, "usd": None if usd is None else Decimal(usd), **facts}
    return Spent(**whole)


async def granted(store: Store, *scopes: Scope, tokens: int = 0, usd: str = "0") -> Reservation:
    """Reserve what must fit."""
    outcome = await store.reserve(scopes, need(tokens, usd))
    assert isinstance(outcome, Granted), outcome
    return outcome.reservation


async def refused(store: Store, *scopes: Scope, tokens: int = 0, usd: str = "0") -> Refused:
    """Reserve what must not fit."""
    outcome = await store.reserve(scopes, need(tokens, usd))
    assert isinstance(outcome, Refused), outcome
    return outcome
