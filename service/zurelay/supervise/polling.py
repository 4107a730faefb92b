"""Waits for what can only be asked: Envoy's view of its files, a port that opens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

LOOK = 0.05  # seconds between two looks


async def until(met: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Look again and again until it is met; TimeoutError when that takes too long."""
    async with asyncio.timeout(seconds):
        while not await met():  # noqa: ASYNC110  # nobody here could set an event
            await asyncio.sleep(LOOK)
