"""Opens the store that a configuration names: an SQLite file or a Redis."""
# ruff: noqa: PLC0415  # the Redis client takes long to import, and most don't use it

from __future__ import annotations

import asyncio

from zurelay import model, sqlite_file, sqlite_reader
from zurelay.store import Line, Store
from zurelay.store_sqlite import SqliteStore


def place(found: model.Store) -> tuple[str | None, str | None]:
    """Tell two stores apart, whatever else is said of them."""
    return found.sqlite if found.redis is None else None, found.redis


async def open_store(found: model.Store) -> Store:
    """Open it for reserving and settling; a StoreError says why it can't be used."""
    if found.redis is not None:
        from zurelay.store_redis import RedisStore

        return await RedisStore.open(found.redis)
    return await SqliteStore.open(_path(found))


def check(found: model.Store) -> None:
    """See that a file can be used, and make it; a Redis that is away is waited for."""
    if found.redis is None:
        sqlite_file.open_file(_path(found)).close()


def spending(found: model.Store, first: str, last: str) -> list[Line]:
    """Read the spend of some days while whoever writes there goes on."""
    if found.redis is not None:
        from zurelay.store_redis import read_spending

        return asyncio.run(read_spending(found.redis, first, last))
    connection = sqlite_reader.open_to_read(_path(found))
    try:
        return sqlite_file.read_usage(connection, first, last)
    finally:
        connection.close()


def _path(found: model.Store) -> str:
    if found.sqlite is None:
        raise ValueError("a store is a file or a Redis")
    return found.sqlite
