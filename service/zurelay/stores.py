"""Opens the store that a configuration names: an SQLite file or a Redis."""
# ruff: noqa: PLC0415  # the Redis client takes long to import, and most don't use it

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from zurelay import model, sqlite_file, sqlite_reader
from zurelay.settings import redis
from zurelay.store import Line, Store, StoreError
from zurelay.store_sqlite import SqliteStore


def place(found: model.Store) -> tuple[str | None, str | None]:
    """Tell two stores apart, whatever else is said of them; a StoreError says that its address isn't there."""
    url = _redis(found)
    return found.sqlite if url is None else None, url


async def open_store(found: model.Store) -> Store:
    """Open it for reserving and settling; a StoreError says why it can't be used."""
    url = _redis(found)
    if url is not None:
        from zurelay.store_redis import RedisStore

        return await RedisStore.open(url)
    return await SqliteStore.open(_path(found))


def check(found: model.Store) -> None:
    """See that a file can be used, and make it; a Redis that is away is waited for."""
    if _redis(found) is None:
        sqlite_file.open_file(_path(found)).close()


def spending(found: model.Store, first: str, last: str) -> list[Line]:
    """Read the spend of some days while whoever writes there goes on."""
    url = _redis(found)
    if url is not None:
        from zurelay.store_redis import read_spending

        return asyncio.run(read_spending(url, first, last))
    connection = sqlite_reader.open_to_read(_path(found))
    try:
        return sqlite_file.read_usage(connection, first, last)
    finally:
        connection.close()


def _path(found: model.Store) -> str:
    if found.sqlite is None:
        raise ValueError("a store is a file or a Redis")
    return found.sqlite


def _redis(found: model.Store) -> str | None:
    """Give the URL, read from where it is kept secret; never shown, it may hold a password."""
    secret = found.redis_secret
    if secret is None:
        return found.redis
    where = f"the environment variable {secret.env}" if secret.file is None else f"the file {secret.file}"
    try:
        url = os.environ.get(str(secret.env), "") if secret.file is None else Path(secret.file).read_text()
    except OSError as error:
        raise StoreError(f"store.redis: {where} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StoreError(f"store.redis: {where} holds no text") from None
    if not url.strip():
        raise StoreError(f"store.redis: {where} is empty or not set")
    if (problem := redis.problem(url.strip())) is not None:
        raise StoreError(f"store.redis: {where}: {problem}")
    return url.strip()
