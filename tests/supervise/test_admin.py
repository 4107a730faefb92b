from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from zurelay import http1
from zurelay.supervise.admin import Admin, AdminError, WrongUrlError

ANSWERS = {
    ("GET", "/stats?filter=%5Ea%7Cb%24"): 'a.text: "f00"\na.count: 3\nb.gauge: 0\n',
    ("GET", "/stats/prometheus?usedonly"): "envoy_x 1\n",
    ("POST", "/drain_listeners?graceful&inboundonly"): "OK\n",
    ("GET", "/server_info"): "1",
    ("GET", "/runtime"): "2",
    ("GET", "/config_dump"): "3",
}


@pytest.fixture(name="asked")
def _asked() -> list[tuple[str, str]]:
    return []


@pytest.fixture(name="socket")
async def _socket(tmp_path: Path, asked: list[tuple[str, str]]) -> AsyncIterator[str]:
    async def answer(request: http1.Request, reply: http1.Reply) -> None:
        asked.append((request.method, request.target))
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


async def test_draining_is_asked_for(socket: str, asked: list[tuple[str, str]]) -> None:
    await Admin(socket).drain()
    assert [("POST", "/drain_listeners?graceful&inboundonly")] == asked


async def test_a_refusal_says_what_envoy_said(socket: str) -> None:
    with pytest.raises(AdminError, match="Envoy answers 405 to GET /quit: use POST"):
        await Admin(socket).ask("/quit")


async def test_an_envoy_that_is_not_there_is_told_by_its_socket(tmp_path: Path) -> None:
    with pytest.raises(AdminError, match=r"admin.sock: .*No such file"):
        await Admin(str(tmp_path / "admin.sock")).metrics()


async def test_it_tells_about_itself(socket: str) -> None:
    assert await Admin(socket).about() == ["1", "2", "3"]


async def test_it_is_reached_by_a_url_too(socket: str) -> None:
    async def answer(request: http1.Request, reply: http1.Reply) -> None:
        reply.whole(200, (), request.target.encode())

    assert await Admin.at(f"unix:{socket}").metrics() == "envoy_x 1\n"
    server = http1.Server(answer)
    port = await server.listen("127.0.0.1", 0)
    assert await Admin.at(f"http://127.0.0.1:{port}").ask("/stats") == "/stats"
    await server.stop()


@pytest.mark.parametrize("url", ["unix:", "https://a:1", "http://", "http://a:b", "http://a:1/x", "http://a?b", "a:1"])
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(WrongUrlError, match="is neither http://HOST:PORT nor unix:PATH"):
        Admin.at(url)
