"""Waits until an instance serves, and says where."""

from __future__ import annotations

import asyncio
import http.client

from zurelay.model import AUTO_ID, Listen, Require, Settings
from zurelay.supervise import polling
from zurelay.supervise.fleet import Fleet
from zurelay.supervise.rollout import Rollout

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not listened on
_SECONDS = 5.0


class NotReadyError(Exception):
    """It isn't ready in time; says what is missing."""


async def wait(settings: Settings, rollout: Rollout, seconds: float) -> None:
    """Wait until the status listener says that all is well and the public one listens."""
    missing = ""

    async def serves() -> bool:
        nonlocal missing
        if await rollout.rejected():
            raise NotReadyError("Envoy refuses its configuration; it says why above.")
        missing = await asyncio.to_thread(_probe, settings.status)
        return not missing and await _listens(settings.listen)

    try:
        await polling.until(serves, seconds)
    except TimeoutError:
        raise NotReadyError(f"Not ready within {seconds:g} s: {missing or 'the public port is closed'}") from None


async def wait_for_workers(fleet: Fleet, seconds: float) -> None:
    """Wait until every worker serves."""

    async def serve() -> bool:
        return fleet.serving == fleet.size

    try:
        await polling.until(serve, seconds)
    except TimeoutError:
        raise NotReadyError(f"Not ready within {seconds:g} s: the workers don't start; they say why above.") from None


def greeting(settings: Settings) -> list[str]:
    """Say where it listens, and how to try it. The first line is what scripts wait for."""
    address = url(settings)
    model = AUTO_ID if settings.auto else next(iter(settings.models))
    key = "" if settings.auth.require is Require.NONE else ' -H "authorization: Bearer $ZURELAY_KEY"'
    body = f'{{"model": "{model}", "messages": [{{"role": "user", "content": "Say hello"}}]}}'
    return [
        f"zurelay is ready on {address}",
        f"status: http://{_authority(settings.status)}/readyz",
        f"try:    curl {address}/v1/chat/completions{key} -H 'content-type: application/json' -d '{body}'",
    ]


def url(settings: Settings) -> str:
    """Give the public listener's address, as someone on this machine reaches it."""
    tls = settings.listen.tls is not None or settings.identity.cert is not None
    return f"{'https' if tls else 'http'}://{_authority(settings.listen)}"


def _authority(listen: Listen) -> str:
    host = _host(listen)
    return f"[{host}]:{listen.port}" if ":" in host else f"{host}:{listen.port}"


def _host(listen: Listen) -> str:
    return _ANY.get(listen.host, listen.host)


def _probe(status: Listen) -> str:
    """Ask for readiness; gives what is wrong, or nothing."""
    connection = http.client.HTTPConnection(_host(status), status.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"the status listener: {error}"
    finally:
        connection.close()
    return "" if answer.status == http.HTTPStatus.OK else body.strip()


async def _listens(listen: Listen) -> bool:
    try:
        _, writer = await asyncio.open_connection(_host(listen), listen.port)
    except OSError:
        return False
    writer.close()
    return True
