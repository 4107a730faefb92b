"""Providers that say odd things: what they say wrong moves on, what they only say oddly passes (SPEC 5, 7, 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from e2e.harness import Gateway, ask
from e2e.raw import Sse
from e2e.scripted import DONE, END, ROLE, ScriptedProvider, answer, chunk, stream, whole

TEXT = chunk('"hello"')
HALF, OTHER_HALF = chunk(r'"\ud83d"'), chunk(r'"\ude00"')
REASON = HALF.replace(b'"content"', b'"reasoning"')
HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
OURS = (
    b"x-zurelay-move-on: 1\r\nx-zurelay-model: evil\r\nx-zurelay-attempts: 7\r\nx-zurelay-failure: {}\r\n"
    b"x-zurelay-plan: x\r\nx-should-retry: true\r\nretry-after: 77\r\n"
)
CHUNKED = b"transfer-encoding: chunked\r\n"
LIMITED = b"x-envoy-ratelimited: true\r\nx-envoy-overloaded: true\r\n"


@pytest.fixture(scope="module")
def odd() -> Iterator[ScriptedProvider]:
    """The provider; model `odd` is its, and falls back to `even`, which is fine."""
    running = ScriptedProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def gateway(odd: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway in front of it."""
    base = f"http://127.0.0.1:{odd.port}/v1"
    models = {
        name: {"routes": [{"provider": "odd", "model": name}], "context_window": 10_000, "fallbacks": fallbacks}
        for name, fallbacks in {"odd": ["even"], "even": []}.items()
    }
    settings = {"providers": {"odd": {"base_url": base, "format": "openai"}}, "models": models, "workers": 2}
    running = Gateway(tmp_path_factory.mktemp("odd"), settings).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


STREAMS = {
    "a role, then text": (ROLE + TEXT + END + DONE, "hello"),
    "half of an emoji in each of two chunks": (ROLE + HALF + OTHER_HALF + END + DONE, None),
    "half of an emoji in the first chunk": (HALF + OTHER_HALF + END + DONE, None),
    "half of an emoji to be renamed": (REASON + HALF + OTHER_HALF + END + DONE, None),
    "more after the end": (TEXT + END + DONE + chunk('"more"') + DONE, "hello"),
    "no blank line at the end": (TEXT + END + b"data: [DONE]", "hello"),
    "white space around the end": (TEXT + END + b"data:  [DONE] \n\n", "hello"),
    "an end that is no more than a line": (TEXT + END + b"data: [DONE]\n", "hello"),
    "an event in several lines": (TEXT.replace(b",", b"\ndata: ,", 1) + END + DONE, "hello"),
    "events with a name and an id": (b"event: message\nid: 4\nretry: 5\n" + TEXT + END + DONE, "hello"),
    "events without a model": ((TEXT + END).replace(b'"model":"x",', b"") + DONE, "hello"),
    "a model's name in the text": (chunk(r'"\"model\":\"x\""') + END + DONE, '"model":"x"'),
    "a first event without choices": (b'data: {"choices":[],"model":"x","object":""}\n\n' + TEXT + END + DONE, "hello"),
    "a ping that is no chunk": (b'event: ping\ndata: {"type":"ping"}\n\n' + TEXT + END + DONE, "hello"),
    "an empty error beside the text": (TEXT.replace(b'"id"', b'"error":null,"id"') + END + DONE, "hello"),
    "a long run of comments": (b": we are working on it\n\n" * 20_000 + TEXT + END + DONE, "hello"),
    "a content of null": (chunk("null") + TEXT + END + DONE, "hello"),
}


@pytest.mark.parametrize(("said", "text"), STREAMS.values(), ids=STREAMS)
def test_an_odd_stream_passes(gateway: Gateway, odd: ScriptedProvider, said: bytes, text: str | None) -> None:
    odd.answers, odd.asked = {"odd": stream(said), "even": stream(TEXT, END, DONE)}, []
    response = gateway.chat(ask("odd", stream=True))
    assert odd.asked == ["odd"]
    sse = Sse.read(response.content)
    assert sse.events.count("[DONE]") == 1
    assert sse.events[-1] == "[DONE]"
    assert b"error" not in response.content.replace(b'"error":null', b"")
    if text is None:
        halves = re.findall(rb"\\ud83d|\\ude00", response.content)
        assert halves == re.findall(rb"\\ud83d|\\ude00", said)
        assert b'"reasoning":' not in response.content
    else:
        assert sse.joined() == text
        assert {chunk["model"] for chunk in sse.chunks} == {"odd"}


WRONG_STREAMS = {
    "nothing": b"",
    "only its end": DONE,
    "only a role": ROLE + DONE,
    "a role without end": ROLE,
    "roles without end": ROLE * 20_000,
    "an error as text": b"event: error\ndata: overloaded\n\n",
    "an error in words": b'data: {"error":"overloaded"}\n\n' + DONE,
    "an error of a code": b'data: {"error":{"message":"Not here.","code":400}}\n\n' + DONE,
    "an error after a role": ROLE + b'data: {"error":{"message":"Not now."}}\n\n',
    "no JSON": b"data: hello\n\n" + DONE,
    "half of its first event": TEXT[:30],
}


@pytest.mark.parametrize("said", WRONG_STREAMS.values(), ids=WRONG_STREAMS)
def test_a_stream_that_is_none_moves_on(gateway: Gateway, odd: ScriptedProvider, said: bytes) -> None:
    odd.answers, odd.asked = {"odd": stream(said), "even": stream(TEXT, END, DONE)}, []
    response = gateway.chat(ask("odd", stream=True))
    assert odd.asked == ["odd", "odd", "even"]
    assert response.headers["x-zurelay-attempts"] == "3"
    assert Sse.read(response.content).joined() == "hello"


WHOLE = {
    "length unsaid": (answer(whole()), True),
    "in chunks": (answer(b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole()), whole()), more=CHUNKED), True),
    "with trailers": (answer(b"%x\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(whole()), whole()), more=CHUNKED), True),
    "by HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\n" + whole(), True),
    "after a hint": (HINTS + answer(whole()), True),
    "after a continue": (b"HTTP/1.1 100 Continue\r\n\r\n" + answer(whole()), True),
    "white space after it": (answer(whole() + b" \r\n"), True),
    "an empty error beside it": (answer(whole(more=',"error":null')), True),
    "half of an emoji in it": (answer(whole(r'"\ud83d"')), True),
    "a usage in words": (answer(whole(more=',"usage":"none"')), True),
    "a usage beyond all numbers": (answer(whole(more=',"usage":{"prompt_tokens":1e400,"completion_tokens":-5}')), True),
    "our own headers": (answer(whole(), more=OURS), True),
    "Envoy's headers": (answer(whole(), more=LIMITED), True),
    "no JSON after it": (answer(whole() + b" x"), False),
    "an error beside it": (answer(whole(more=',"error":{"message":"x"}')), False),
    "no choices": (answer(b'{"choices":[]}'), False),
    "a list": (answer(b"[]"), False),
    "no HTTP": (b"hello\r\n\r\n", False),
    "200 headers": (answer(whole(), more=b"".join(b"x-%d: y\r\n" % number for number in range(200))), False),
    "an unknown coding": (answer(whole(), more=b"content-encoding: weird\r\n"), False),
    "cut in its head": (b"HTTP/1.1 200 OK\r\ncontent-ty", False),
    "a status of our own headers": (answer(b"{}", status=500, more=OURS), False),
    "a status that Envoy wouldn't retry": (answer(b"{}", status=503, more=LIMITED), False),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\n\r\n", False),
    "a status of no class": (b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n", False),
}


@pytest.mark.parametrize(("said", "good"), WHOLE.values(), ids=WHOLE)
def test_an_odd_answer_passes_and_a_wrong_one_moves_on(
    gateway: Gateway, odd: ScriptedProvider, said: bytes, *, good: bool
) -> None:
    odd.answers, odd.asked = {"odd": said, "even": answer(whole())}, []
    response = gateway.chat(ask("odd"))
    expected = ["odd"] if good else ["odd", "odd", "even"]
    assert odd.asked == expected
    assert response.status_code == 200
    assert response.json()["model"] == expected[-1]
    ours = {name: value for name, value in response.headers.items() if name.startswith(("x-", "retry-"))}
    del ours["x-zurelay-request-id"]
    routed = {} if good else {"x-zurelay-routed-from": "odd"}
    attempts = {"x-zurelay-attempts": str(len(expected)), "x-zurelay-model": expected[-1]}
    assert ours == {"x-zurelay-reasoning-effort": "none", **routed, **attempts}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_limit_of_a_provider_behind_an_envoy_moves_on(
    gateway: Gateway, odd: ScriptedProvider, *, streams: bool
) -> None:
    fine = stream(TEXT, END, DONE) if streams else answer(whole())
    odd.answers, odd.asked = {"odd": answer(b"{}", status=429, more=LIMITED), "even": fine}, []
    response = gateway.chat(ask("odd", stream=streams))
    assert (response.status_code, odd.asked) == (200, ["odd", "even"])


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_failure_after_a_hint_never_passes_for_an_answer(
    gateway: Gateway, odd: ScriptedProvider, *, streams: bool
) -> None:
    """Envoy doesn't retry after a 1xx."""
    odd.answers, odd.asked = {"odd": HINTS + answer(b'{"secret":"of the provider"}'), "even": answer(whole())}, []
    response = gateway.chat(ask("odd", stream=streams))
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "model_unavailable"
    assert "secret" not in response.text
    assert response.headers["retry-after"] == "5"
    assert "x-zurelay-move-on" not in response.headers
