import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from zurelay import http1
from zurelay.model import Auth, Auto, Identity, Listen, Require, Settings, Tls
from zurelay.supervise import ready
from zurelay.supervise.ready import NotReadyError


def settings(**known: Any) -> Settings:
    facts: dict[str, Any] = {
        "listen": Listen(port=8080),
        "status": Listen(port=8081),
        "providers": {},
        "models": {"gpt": None},
        "auth": Auth(require=Require.NONE),
    }
    return Settings(**{**facts, **known})


class Rollout:
    def __init__(self, *, refused: bool = False) -> None:
        self.refused = refused

    async def rejected(self) -> bool:
        return self.refused


class Doors:
    """A status listener and a public one."""

    def __init__(self) -> None:
        self.answers = [(200, b"")]
        self.server = http1.Server(self.answer)
        self.settings = settings()

    async def answer(self, request: http1.Request, reply: http1.Reply) -> None:
        assert request.path == "/readyz"
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        reply.whole(status, (), body)


@pytest.fixture(name="doors")
async def _doors() -> AsyncIterator[Doors]:
    doors = Doors()
    ports = [await doors.server.listen("127.0.0.1", 0) for _ in range(2)]
    doors.settings = settings(listen=Listen(port=ports[0], host="0.0.0.0"), status=Listen(port=ports[1]))
    yield doors
    await doors.server.stop()


async def test_it_waits_until_the_status_listener_says_so(doors: Doors) -> None:
    doors.answers = [(503, b"wait"), (503, b"wait"), (200, b"")]
    rollout: Any = Rollout()

    await ready.wait(doors.settings, rollout, 10)

    assert doors.answers == [(200, b"")]


async def test_what_is_missing_is_told_when_the_time_is_over(doors: Doors) -> None:
    doors.answers = [(503, b'{"problems": ["none of 2 workers serves yet"]}')]
    rollout: Any = Rollout()

    with pytest.raises(NotReadyError, match=r"within 0\.2 s: .*none of 2 workers serves yet"):
        await ready.wait(doors.settings, rollout, 0.2)


async def test_nothing_that_listens_is_told_too() -> None:
    rollout: Any = Rollout()

    with pytest.raises(NotReadyError, match=r"the status listener: .*refused"):
        await ready.wait(settings(status=Listen(port=1)), rollout, 0.1)


async def test_the_public_port_must_be_open_too(doors: Doors) -> None:
    closed = settings(listen=Listen(port=1), status=doors.settings.status)
    rollout: Any = Rollout()

    with pytest.raises(NotReadyError, match="the public port is closed"):
        await ready.wait(closed, rollout, 0.2)


async def test_a_configuration_that_envoy_refuses_is_not_waited_for(doors: Doors) -> None:
    rollout: Any = Rollout(refused=True)

    with pytest.raises(NotReadyError, match="Envoy refuses its configuration"):
        await asyncio.wait_for(ready.wait(doors.settings, rollout, 60), 10)


async def test_all_workers_are_waited_for() -> None:
    class Fleet:
        size = 2
        looks = 0

        @property
        def serving(self) -> int:
            self.looks += 1
            return min(self.looks, 2)

    fleet: Any = Fleet()

    await ready.wait_for_workers(fleet, 10)

    assert fleet.looks >= 2


async def test_workers_that_do_not_start_are_told() -> None:
    class Fleet:
        size = 2
        serving = 1

    fleet: Any = Fleet()

    with pytest.raises(NotReadyError, match="the workers don't start"):
        await ready.wait_for_workers(fleet, 0.1)


@pytest.mark.parametrize(
    ("known", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"listen": Listen(port=80, host="0.0.0.0")}, "http://127.0.0.1:80"),
        ({"listen": Listen(port=80, host="::")}, "http://[::1]:80"),
        ({"listen": Listen(port=80, host="10.0.0.1")}, "http://10.0.0.1:80"),
        ({"listen": Listen(port=443, tls=Tls(cert="c", key="k"))}, "https://127.0.0.1:443"),
        ({"identity": Identity(ca="a", cert="c", key="k")}, "https://127.0.0.1:8080"),
    ],
)
def test_the_address_is_one_that_works_here(known: dict[str, Any], url: str) -> None:
    assert ready.url(settings(**known)) == url


def test_the_first_line_is_the_one_that_scripts_wait_for() -> None:
    lines = ready.greeting(settings())

    assert lines[:2] == ["zurelay is ready on http://127.0.0.1:8080", "status: http://127.0.0.1:8081/readyz"]
    assert '"model": "gpt"' in lines[2]
    assert "authorization" not in lines[2]


def test_the_example_asks_auto_where_there_is_one_and_shows_where_the_key_goes() -> None:
    lines = ready.greeting(settings(auto=Auto(simple=("gpt",)), auth=Auth(keys="keys.yaml")))

    assert '"model": "zurelay-auto"' in lines[2]
    assert '-H "authorization: Bearer $ZURELAY_KEY"' in lines[2]
