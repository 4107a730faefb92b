"""The store that a configuration names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from zurelay import stores
from zurelay.limits import Need
from zurelay.model import Secret, Store
from zurelay.store import Spent, StoreError


def test_what_is_settled_in_a_file_is_read_beside_its_writer(tmp_path: Path) -> None:
    named = Store(sqlite=str(tmp_path / "z.db"))

    async def use() -> int:
        store = await stores.open_store(named)
        granted = await store.reserve((), Need())
        store.settle(granted.reservation, Spent(key="a"))  # type: ignore[union-attr]  # no limit refuses it
        await store.flush()
        lines = await asyncio.to_thread(stores.spending, named, "2000-01-01", "2999-12-31")
        await store.close()
        return sum(line.counts.requests for line in lines)

    assert 1 == asyncio.run(use())


def test_a_file_that_is_none_of_ours_is_an_error_that_says_so(tmp_path: Path) -> None:
    file = tmp_path / "z.db"
    file.write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="no SQLite database"):
        stores.check(Store(sqlite=str(file)))
    with pytest.raises(StoreError, match="isn't there"):
        stores.spending(Store(sqlite=str(tmp_path / "none.db")), "2026-01-01", "2026-01-02")


def test_a_check_makes_the_file_and_leaves_a_redis_alone(tmp_path: Path) -> None:
    stores.check(Store(sqlite=str(tmp_path / "z.db")))
    assert (tmp_path / "z.db").exists()
    stores.check(Store(sqlite=None, redis="redis://127.0.0.1:1"))


def test_a_redis_that_does_not_answer_is_an_error_to_who_reads() -> None:
    with pytest.raises(StoreError, match="doesn't answer"):
        stores.spending(Store(sqlite=None, redis="redis://127.0.0.1:1"), "2026-01-01", "2026-01-02")


def test_the_place_of_a_store_is_its_file_or_its_server() -> None:
    assert stores.place(Store()) == ("zurelay.db", None)
    assert stores.place(Store(sqlite=None, redis="redis://r")) == (None, "redis://r")


def test_the_address_of_a_server_is_read_from_where_it_is_kept_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text("rediss://:pw@r\n")
    monkeypatch.setenv("REDIS_URL", "redis://e")
    assert (None, "rediss://:pw@r") == stores.place(Store(sqlite=None, redis_secret=Secret(file=str(file))))
    assert (None, "redis://e") == stores.place(Store(sqlite=None, redis_secret=Secret(env="REDIS_URL")))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read: No such file"),
        (b" \n", "is empty or not set"),
        (b"\xff", "holds no text"),
        (b"http://:pw@r", "expected a URL that begins with redis://"),
    ],
    ids=["missing", "empty", "no text", "another URL"],
)
def test_a_secret_that_holds_no_address_is_told_without_showing_it(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "url").write_bytes(content)
    with pytest.raises(StoreError, match=said) as raised:
        stores.check(Store(sqlite=None, redis_secret=Secret(file=str(tmp_path / "url"))))
    assert "pw" not in str(raised.value)


def test_a_variable_that_is_not_set_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with pytest.raises(StoreError, match="the environment variable REDIS_URL is empty or not set"):
        stores.check(Store(sqlite=None, redis_secret=Secret(env="REDIS_URL")))
