from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from zurelay import http1
from zurelay.supervise.admin import Admin, AdminError

ANSWERS = {
    ("GET", "/stats?filter=%5Ea%7Cb%24"): 'a.text: "f00"\na.count: 3\nb.gauge: 0\n',
    ("GET", "/stats/prometheus?usedonly"): "envoy_x 1\n",
    ("POST", "/drain_listeners?graceful&inboundonly"): "OK\n",
}


@pytest.fixture(name="socket")
async def _socket(tmp_path: Path) -> AsyncIterator[str]:
    async def answer(request: http1.Request, reply: http1.Reply) -> None:
        body = ANSWERS.get((request.method, request.target))
        reply.whole(200 if body else 405, (), (body or "use POST").encode())

    server = http1.Server(answer)
    path = str(tmp_path / "admin.sock")
    await server.listen_unix(path)
    yield path
    await server.stop()


async def test_statistics_are_read_with_their_texts(socket: str) -> None:
    assert await Admin(socket).stats("^a|b$") == {"a.text": "f00", "a.count": "3", "b.gauge": "0"}


async def test_metrics_come_as_they_are(socket: str) -> None:
    assert await Admin(socket).metrics() == "envoy_x 1\n"


async def test_draining_is_asked_for(socket: str) -> None:
    await Admin(socket).drain()


async def test_a_refusal_says_what_envoy_said(socket: str) -> None:
    with pytest.raises(AdminError, match="Envoy answers 405 to GET /quit: use POST"):
        await Admin(socket).ask("/quit")


async def test_an_envoy_that_is_not_there_is_told_by_its_socket(tmp_path: Path) -> None:
    with pytest.raises(AdminError, match=r"admin.sock: .*No such file"):
        await Admin(str(tmp_path / "admin.sock")).metrics()
