from collections.abc import Iterator
from typing import Any

import msgspec
import pydantic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

from simulate.helpers import MESSAGES, USER, WEATHER, answer
from zurelay.simulate import anthropic
from zurelay.simulate.nouns import Ask, Call, Choice, Event, Finish, Kind, Refusal, Tool, Usage

EVENT: pydantic.TypeAdapter[RawMessageStreamEvent] = pydantic.TypeAdapter(RawMessageStreamEvent)
RESULTS = [
    {"type": "tool_result", "tool_use_id": "a", "content": "12 C"},
    {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "13 C"}]},
]

READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the model": ({"model": "x"}, {"model": "x"}),
    "a stream": ({"stream": True}, {"stream": True}),
    "the last user text": ({"messages": [USER, {"role": "assistant", "content": "b"}]}, {"text": USER["content"]}),
    "results at the end": (
        {"messages": [USER, {"role": "user", "content": RESULTS}]},
        {"results": ("12 C", "13 C"), "text": USER["content"]},
    ),
    "tools": (
        {"tools": [{"name": "f", "input_schema": WEATHER}, {"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": (Tool("f", WEATHER),)},
    ),
    "any tool": ({"tool_choice": {"type": "any"}}, {"choice": "required"}),
    "no tool": ({"tool_choice": {"type": "none"}}, {"choice": "none"}),
    "a tool": ({"tool_choice": {"type": "tool", "name": "f"}}, {"choice": "f"}),
    "one tool at a time": ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, {"parallel": False}),
    "effort": ({"output_config": {"effort": "max"}}, {"level": 6}),
    "thinking": ({"thinking": {"type": "adaptive"}}, {"level": 4}),
    "thinking with effort": ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, {"level": 2}),
    "thinking off": ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, {"level": 0}),
    "thoughts hidden": ({"thinking": {"type": "adaptive", "display": "omitted"}}, {"hide_thoughts": True}),
    "a schema": ({"output_config": {"format": {"type": "json_schema", "schema": WEATHER}}}, {"schema": WEATHER}),
    "stops": ({"stop_sequences": ["a", "b"]}, {"stop": ("a", "b")}),
    "a limit": ({"max_tokens": 5}, {"limit": 5}),
}


@pytest.mark.parametrize("name", READ)
def test_a_request_is_taken_apart(name: str) -> None:
    body, expected = READ[name]
    found = msgspec.structs.asdict(anthropic.read({**MESSAGES, **body}))
    assert expected == {field: found[field] for field in expected}


def test_an_empty_request_is_read_too() -> None:
    assert Ask(model="") == anthropic.read({})


ANSWERS = {
    "text": answer(),
    "thoughts": answer(Choice(thoughts=("hm", " well"), text=("one",))),
    "hidden thoughts": answer(Choice(thoughts=("hm", " well"), text=("one",)), hide_thoughts=True),
    "calls": answer(
        Choice(
            thoughts=("hm",),
            text=("well",),
            calls=(Call("i", "f", ('{"a"', ": 1}")), Call("j", "g", ("{}",))),
            finish=Finish.TOOLS,
        )
    ),
    "a stop sequence": answer(Choice(text=("one",), finish=Finish.STOP_SEQUENCE, stop_sequence="two")),
    "a refusal": answer(Choice(text=("no",), finish=Finish.REFUSAL)),
    "a cut": answer(Choice(text=("one",), finish=Finish.LENGTH)),
    "nothing": answer(Choice()),
    "letters of many scripts": answer(Choice(text=("é", "東", "🎉", "\u2028", '"'))),
    "cached": answer(usage=Usage(input=100, output=3, cached=60, written=30, reasoning=1)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sdk_finds_in_a_stream_what_it_finds_in_the_whole(name: str) -> None:
    whole = msgspec.json.decode(anthropic.whole(ANSWERS[name]))
    Message.model_validate(whole)
    assert whole == joined(anthropic.events(ANSWERS[name]))


def joined(events: Iterator[Event]) -> Any:
    """Put a stream together as a client does."""
    message: Any = None
    for event in events:
        data = msgspec.json.decode(event.data)
        assert event.name == data["type"]
        if event.name == "ping":
            continue
        EVENT.validate_python(data)
        match event.name:
            case "message_start":
                message = data["message"]
            case "content_block_start":
                message["content"].append(data["content_block"])
            case "content_block_delta":
                _add(message["content"][data["index"]], data["delta"])
            case "message_delta":
                message |= data["delta"]
                message["usage"] |= data["usage"]
    for block in message["content"]:
        if "input" in block:
            block["input"] = msgspec.json.decode(block["input"])
    return message


def _add(block: Any, delta: Any) -> None:
    name, piece = next((key, value) for key, value in delta.items() if key != "type")
    name = "input" if name == "partial_json" else name
    block[name] = (block[name] or "") + piece


def test_a_stream_tells_its_events_apart() -> None:
    made = answer(Choice(thoughts=("a",), text=("b",), calls=(Call("i", "f", ("{}",)),)))
    expected = [
        ("message_start", Kind.AROUND),
        ("ping", Kind.AROUND),
        ("content_block_start", Kind.AROUND),
        ("content_block_delta", Kind.TOKEN),
        ("content_block_delta", Kind.AROUND),
        ("content_block_stop", Kind.AROUND),
        ("content_block_start", Kind.AROUND),
        ("content_block_delta", Kind.TOKEN),
        ("content_block_stop", Kind.AROUND),
        ("content_block_start", Kind.TOKEN),
        ("content_block_delta", Kind.TOKEN),
        ("content_block_delta", Kind.TOKEN),
        ("content_block_stop", Kind.AROUND),
        ("message_delta", Kind.FINISH),
        ("message_stop", Kind.END),
    ]
    assert expected == [(event.name, event.kind) for event in anthropic.events(made)]


def test_input_tokens_leave_out_cached_and_written_ones() -> None:
    usage = msgspec.json.decode(anthropic.whole(ANSWERS["cached"]))["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    assert [usage[name] for name in names] == [10, 60, 30, 3]


def test_no_usage_is_no_usage_anywhere() -> None:
    made = answer(usage=None)
    written = [anthropic.whole(made), *(event.data for event in anthropic.events(made))]
    assert [data for data in written if b"usage" in data] == []


def test_arguments_that_a_limit_cut_are_lost_in_the_whole() -> None:
    made = answer(Choice(calls=(Call("i", "f", ('{"a"',)),), finish=Finish.LENGTH))
    assert msgspec.json.decode(anthropic.whole(made))["content"][0]["input"] == {}


def thinking_of(**fields: bool) -> dict[str, Any]:
    made = answer(Choice(thoughts=("hm",), text=("one",)), **fields)
    block: dict[str, Any] = msgspec.json.decode(anthropic.whole(made))["content"][0]
    return block


SIGNED = {
    "as it was": (thinking_of(), True),
    "hidden as it was": (thinking_of(hide_thoughts=True), True),
    "changed": ({**thinking_of(), "thinking": "hm!"}, False),
    "without its signature": ({"type": "thinking", "thinking": "hm"}, False),
    "with an empty signature": ({"type": "thinking", "thinking": "hm", "signature": ""}, False),
    "with somebody else's": ({"type": "thinking", "thinking": "hm", "signature": "EqQB"}, True),
}


@pytest.mark.parametrize("name", SIGNED)
def test_a_thinking_block_comes_back_unchanged(name: str) -> None:
    block, expected = SIGNED[name]
    assert expected is anthropic.signed(block)


TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


@pytest.mark.parametrize("status", TYPES)
def test_an_error_has_the_shape_of_its_status_alone_and_in_a_stream(status: int) -> None:
    refusal = Refusal(status, "no")
    expected = {
        "type": "error",
        "error": {"type": TYPES[status], "message": "no"},
        "request_id": "req_simulated",
    }
    body, event = anthropic.refuse(refusal), anthropic.error_event(refusal)
    assert (expected, body, "error") == (msgspec.json.decode(body), event.data, event.name)


def test_too_long_a_prompt_is_told_in_words() -> None:
    assert Refusal(400, "prompt is too long: 5000 tokens > 4999 maximum") == anthropic.too_long(5000)
