"""Repeated work goes on whatever happens, and its trouble is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

import pytest

from zurelay.chores import Chores
from zurelay.store import StoreUnavailableError


def playing(outcomes: Iterator[Exception | None]) -> tuple[Callable[[], Awaitable[None]], asyncio.Event]:
    """Work that fails as told, and what says that all was played."""
    over = asyncio.Event()

    async def work() -> None:
        error = next(outcomes, over)
        if error is over:
            over.set()
        elif isinstance(error, Exception):
            raise error

    return work, over


async def played(chores: Chores, *outcomes: Exception | None) -> None:
    work, over = playing(iter(outcomes))
    chores.start(0.001, work)
    async with asyncio.timeout(10):
        await over.wait()


async def test_trouble_is_told_when_it_begins_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    chores, away = Chores("here"), StoreUnavailableError("no answer")
    await played(chores, None, away, away, None, None, away)
    await chores.stop()
    begun, over = "the store here fails: no answer; what is settled is kept and tried again", "the store here is back"
    assert [begun, over, begun, over] == [record.message for record in caplog.records]
    assert "Traceback" not in caplog.text


async def test_what_no_one_foresaw_is_told_in_full_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    chores = Chores("here")
    await played(chores, ZeroDivisionError("a mistake"), None)
    await chores.stop()
    assert "ZeroDivisionError: a mistake" in caplog.text


async def test_two_chores_in_trouble_are_one_trouble(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    chores, away = Chores("here"), StoreUnavailableError("no answer")
    first, first_over = playing(iter([away] * 20))
    second, second_over = playing(iter([away] * 20))
    chores.start(0.001, first)
    chores.start(0.001, second)
    async with asyncio.timeout(10):
        await first_over.wait()
        await second_over.wait()
    await chores.stop()
    assert ["ERROR", "WARNING"] == [record.levelname for record in caplog.records]


async def test_stopping_lets_work_come_to_its_end() -> None:
    begun, ended, chores = asyncio.Event(), [], Chores("here")

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0.01)
        ended.append(True)

    chores.start(0.001, work)
    await begun.wait()
    await chores.stop()
    assert ended
