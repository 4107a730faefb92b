"""A large request: how long it takes, whole answer included, and the memory that it needs on the way."""

from __future__ import annotations

import asyncio
import http
import http.client
import time
from collections.abc import Sequence

import msgspec

from bench import proc
from bench.figures import LARGE, Figures, Quantity
from bench.servers import PATH
from bench.targets import Target

SIZE = 20_000_000  # bytes
_PATIENCE = 60.0  # seconds
_TEXT = "All work and no play makes a long prompt. "


async def measure(targets: Sequence[Target], rounds: int, figures: Figures) -> list[str]:
    """Send it to each target in turn, and name those that don't take it."""
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for target in targets:
            if target.name in failed:
                continue
            for pids in target.roles.values():
                proc.reset_peak(pids)
            said, took = await asyncio.to_thread(_sent, target)
            if said is not None:
                failed[target.name] = said
                continue
            figures.add(Quantity(title=LARGE, name="time", unit="ms"), target.name, took * 1000)
            for role, pids in target.roles.items():
                name = f"{role}, most memory by size of the request"
                figures.add(Quantity(title=LARGE, name=name, unit="x"), target.name, proc.peak(pids) * (1 << 20) / SIZE)
    return [f"{name}, a request of {SIZE // 1_000_000} MB: {said}" for name, said in failed.items()]


def _sent(target: Target) -> tuple[str | None, float]:
    """Send it; gives what went wrong, or nothing, and the seconds that it took."""
    text = _TEXT * (SIZE // len(_TEXT))
    body = msgspec.json.encode({**target.chat, "messages": [{"role": "user", "content": text}]})
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=_PATIENCE)
    headers = {"content-type": "application/json", **target.headers}
    try:
        connection.connect()
        began = time.monotonic()
        connection.request("POST", PATH, body, headers)
        answer = connection.getresponse()
        answer.read()
        took = time.monotonic() - began
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__, 0.0
    finally:
        connection.close()
    return (None if answer.status == http.HTTPStatus.OK else f"status {answer.status}"), took
