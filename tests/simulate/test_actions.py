import pytest

from zurelay.simulate import actions, faults
from zurelay.simulate.actions import Action, Close, End, Hang, Head, Pause, Reset, Send
from zurelay.simulate.faults import Fault

HEAD = Head(200, ())


@pytest.mark.parametrize("last", [End(), Close(), Reset(), Hang()])
def test_nothing_follows_the_end(last: Action) -> None:
    played = actions.finished([HEAD, Send(b"ab"), last, Send(b"c")], Fault())
    assert [HEAD, Send(b"ab"), last] == list(played)


def test_split_sends_every_byte_by_itself() -> None:
    played = actions.finished([HEAD, Send(b"ab"), Pause(1), End()], Fault(split=True))
    assert [HEAD, Send(b"a"), Pause(0), Send(b"b"), Pause(0), Pause(1), End()] == list(played)


HEADERS = {
    "ok": {"content-type": "x/y"},
    "wrong-type": {"content-type": "text/plain"},
    "gzip": {"content-type": "x/y", "content-encoding": "gzip"},
}


@pytest.mark.parametrize("spec", HEADERS)
def test_headers_are_those_asked_for(spec: str) -> None:
    assert HEADERS[spec] == dict(actions.headers(faults.parse(spec), "x/y"))


def test_a_providers_headers_come_on_request() -> None:
    names = {name for name, _ in actions.headers(Fault(headers=True), "x/y")}
    expected = {"set-cookie", "openai-organization", "server", "request-id", "x-ratelimit-remaining-requests"}
    assert expected == expected & names
