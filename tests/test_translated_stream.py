"""A provider's stream in the other format: both translators, as the relay sees them."""

from __future__ import annotations

import itertools
import json
import pathlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.answers import STAMP, completion, message, message_events
from formats.answers import chunks as chat_events
from zurelay import sse
from zurelay.chat_stream import StreamError
from zurelay.formats import stream_chat_to_messages, stream_messages_to_chat
from zurelay.sse import Decoder, Event
from zurelay.translated_stream import TranslatedStream
from zurelay.usage import Usage

ROOT = pathlib.Path(__file__).parent / "fixtures" / "formats"
TO_CHAT = sorted((ROOT / "stream_messages_to_chat").glob("*.in.sse"))
TO_MESSAGES = sorted((ROOT / "stream_chat_to_messages").glob("*.in.sse"))


def to_chat(*, usage: bool = True) -> TranslatedStream:
    return TranslatedStream(stream_messages_to_chat.Stream(STAMP, include_usage=usage))


def to_messages() -> TranslatedStream:
    return TranslatedStream(stream_chat_to_messages.Stream(STAMP))


def events(raw: bytes, cuts: list[int] | None = None) -> list[Event]:
    places = [0, *sorted(cuts or []), len(raw)]
    decoder = Decoder(1 << 20)
    found = [one for begin, end in itertools.pairwise(places) for one in decoder.feed(raw[begin:end])]
    last = decoder.flush()
    return found if last is None else [*found, last]


def fed(made: TranslatedStream, raw: bytes, cuts: list[int] | None = None) -> bytes:
    return b"".join(made.feed(one) for one in events(raw, cuts))


def named(*values: dict[str, Any]) -> bytes:
    return b"".join(sse.encode(json.dumps(value, ensure_ascii=False).encode(), value["type"]) for value in values)


def bare(*values: Any) -> bytes:
    return b"".join(
        sse.encode(value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode())
        for value in values
    )


@pytest.mark.parametrize("path", [*TO_CHAT, *TO_MESSAGES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_golden_streams_come_out_whole_however_they_are_cut(path: pathlib.Path) -> None:
    raw = path.read_bytes()
    expected = path.with_name(path.name.replace(".in.", ".out.")).read_bytes()
    for size in (len(raw), 1, 2, 3, 7, 64):
        made = to_chat() if path in TO_CHAT else to_messages()
        found = fed(made, raw, list(range(0, len(raw), size))) + (made.end() or b"")
        assert expected == found
        assert made.done


@settings(max_examples=40)
@given(st.data(), message())
def test_any_cut_of_messages_gives_the_same_chat(data: st.DataObject, answer: dict[str, Any]) -> None:
    raw = named(*data.draw(message_events(answer)))
    whole, cut = to_chat(), to_chat()
    expected = fed(whole, raw)
    assert expected == fed(cut, raw, data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    assert (whole.finish_reasons, whole.estimate(int)) == (cut.finish_reasons, cut.estimate(int))


@settings(max_examples=40)
@given(st.data(), completion())
def test_any_cut_of_chat_gives_the_same_messages_with_one_head(data: st.DataObject, answer: dict[str, Any]) -> None:
    raw = bare(*data.draw(chat_events(answer)))
    made = to_messages()
    expected = fed(to_messages(), raw)
    assert expected == fed(made, raw, data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    assert made.done
    assert expected.count(b"event: message_start\n") == expected.count(b"event: message_stop\n") == 1


HEAD = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
BEGIN = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
FINISH = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}


def text(said: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


BROKEN = {
    "an error": (to_chat, named(HEAD, BEGIN, text("a"), {"type": "error", "error": {"message": "Busy."}}), "Busy."),
    "no JSON": (to_chat, named(HEAD) + b"event: content_block_delta\ndata: {\n\n", ""),
    "chat's error": (to_messages, bare(chunk(content="a"), {"error": {"message": "Busy."}}), "Busy."),
    "chat that is no JSON": (to_messages, bare(chunk(content="a"), "{"), ""),
    "an end before any word": (to_messages, bare("[DONE]"), ""),
    "an end without blocks": (to_chat, named(HEAD, STOP), ""),
}


@pytest.mark.parametrize(("make", "raw", "said"), BROKEN.values(), ids=BROKEN)
def test_a_stream_that_goes_wrong(make: Any, raw: bytes, said: str) -> None:
    with pytest.raises(StreamError) as caught:
        fed(make(), raw)
    assert said == caught.value.message


CUT = {
    "messages in the midst": (to_chat, named(HEAD, BEGIN, text("a")), None),
    "messages but for the last event": (to_chat, named(HEAD, BEGIN, text("a"), FINISH), b"data: [DONE]\n\n"),
    "chat in the midst": (to_messages, bare(chunk(content="a")), None),
    "nothing": (to_messages, b"", None),
}


@pytest.mark.parametrize(("make", "raw", "tail"), CUT.values(), ids=CUT)
def test_a_stream_that_ends_too_early(make: Any, raw: bytes, tail: bytes | None) -> None:
    made = make()
    fed(made, raw)
    found = made.end()
    assert (tail is None) is (found is None)
    assert made.done is (tail is not None)
    assert found is None or found.endswith(tail or b"")


def test_the_end_comes_once() -> None:
    made = to_messages()
    raw = bare(chunk(content="a"), chunk("stop"), "[DONE]")
    fed(made, raw)
    assert (b"", b"") == (fed(made, raw), made.end())


ARGUMENTS = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "12345678"}}]
USED: dict[str, tuple[Any, bytes, Usage]] = {
    "as reported": (
        to_chat,
        named(HEAD, BEGIN, text("abcd"), {**FINISH, "usage": {"output_tokens": 5}}, STOP),
        Usage(prompt=9, completion=5),
    ),
    "whole, with the head's counts alone": (
        to_chat,
        named(HEAD, BEGIN, text("a" * 40), FINISH, STOP),
        Usage(prompt=9, completion=10, estimated=True),
    ),
    "broken off": (to_chat, named(HEAD, BEGIN, text("a" * 40)), Usage(prompt=9, completion=10, estimated=True)),
    "broken off in another script": (
        to_chat,
        named(BEGIN, text("안녕")),
        Usage(prompt=7, completion=2, estimated=True),
    ),
    "chat broken off": (
        to_messages,
        bare(chunk(content="abcd"), chunk(reasoning_content="abcd"), chunk(tool_calls=ARGUMENTS)),
        Usage(prompt=7, completion=4, estimated=True),
    ),
    "chat whole without counts": (
        to_messages,
        bare(chunk(content="abcde"), chunk("stop"), "[DONE]"),
        Usage(prompt=7, completion=2, estimated=True),
    ),
    "nothing": (to_messages, b"", Usage(prompt=7, estimated=True)),
}


@pytest.mark.parametrize(("make", "raw", "expected"), USED.values(), ids=USED)
def test_what_was_used(make: Any, raw: bytes, expected: Usage) -> None:
    made = make()
    fed(made, raw)
    assert expected == made.estimate(lambda: 7)


def test_a_chat_client_that_asked_gets_an_estimate_where_the_provider_counts_nothing() -> None:
    head = {"type": "message_start", "message": {"usage": {"output_tokens": 1}}}
    made = to_chat()
    fed(made, named(head, BEGIN, text("a" * 40), FINISH))
    assert made.wants_usage
    (event,) = events(made.usage_chunk(lambda: 7))
    found = json.loads(event.data or b"")
    assert ([], 7, 10) == (found["choices"], found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"])


def test_nobody_else_gets_a_chunk_of_usage() -> None:
    counted = to_chat()
    fed(counted, named(HEAD, BEGIN, text("a"), {**FINISH, "usage": {"output_tokens": 5}}, STOP))
    assert not counted.wants_usage
    assert not to_chat(usage=False).wants_usage
    assert (False, b"") == (to_messages().wants_usage, to_messages().usage_chunk(int))
