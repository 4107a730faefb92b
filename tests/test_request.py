"""A chat request: what is read of it, what is refused, and what passes unread."""

from __future__ import annotations

import json
from typing import Any

import pytest

from making import HELLO, body, request
from zurelay.errors import InvalidRequest
from zurelay.model import Endpoint, Feature, Input
from zurelay.request import MOST_MODELS, READ_ONCE, ChatRequest

CHAT, MESSAGES = Endpoint.CHAT, Endpoint.MESSAGES


def refusal(raw: bytes, endpoint: Endpoint = CHAT) -> InvalidRequest:
    """The error of a request of which everything is asked."""
    with pytest.raises(InvalidRequest) as caught:
        everything(ChatRequest.parse(raw, endpoint))
    return caught.value


def everything(read: ChatRequest) -> tuple[Any, ...]:
    return (read.include_usage, read.choices, read.max_output, read.features, read.media, read.tokens)


def test_the_least_that_a_request_has() -> None:
    read = request()
    assert ("first", None, False, None) == (read.model, read.models, read.stream, read.effort_word)
    assert (False, 1, None, frozenset(), frozenset()) == everything(read)[:5]
    assert read.tokens > 0
    assert body() == read.document.data


def test_null_counts_as_left_out() -> None:
    names = "models stream tools functions max_tokens max_completion_tokens reasoning_effort n stream_options"
    left_out: dict[str, Any] = dict.fromkeys((*names.split(), "response_format"))
    read = request(**left_out)
    assert (None, False, None, False, 1, None, frozenset()) == (
        read.models,
        read.stream,
        read.effort_word,
        *everything(read)[:4],
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": ...}, "model"),
    "a model of null": ({"model": None}, "model"),
    "an empty model": ({"model": ""}, "model"),
    "a model that is a number": ({"model": 5}, "model"),
    "a model that is a list": ({"model": ["first"]}, "model"),
    "models that are text": ({"models": "second"}, "models"),
    "models of numbers": ({"models": ["second", 5]}, "models"),
    "models of null": ({"models": [None]}, "models"),
    "nine models": ({"models": ["m"] * 9}, "models"),
    "a stream that is text": ({"stream": "true"}, "stream"),
    "a stream that is a number": ({"stream": 1}, "stream"),
    "no messages": ({"messages": ...}, "messages"),
    "messages of null": ({"messages": None}, "messages"),
    "messages that are text": ({"messages": "Hello"}, "messages"),
    "messages that are an object": ({"messages": {"role": "user"}}, "messages"),
    "messages of nothing": ({"messages": []}, "messages"),
    "an effort that is a number": ({"reasoning_effort": 3}, "reasoning_effort"),
    "an effort that is an object": ({"reasoning_effort": {}}, "reasoning_effort"),
    "tools that are an object": ({"tools": {}}, "tools"),
    "tools that are text": ({"tools": "all"}, "tools"),
    "max_tokens that is text": ({"max_tokens": "100"}, "max_tokens"),
    "max_tokens that is a fraction": ({"max_tokens": 1.5}, "max_tokens"),
    "max_tokens written as a fraction": ({"max_tokens": 100.0}, "max_tokens"),
    "max_tokens that is negative": ({"max_tokens": -1}, "max_tokens"),
    "max_tokens that is a boolean": ({"max_tokens": True}, "max_tokens"),
    "max_completion_tokens that is text": ({"max_completion_tokens": "1"}, "max_completion_tokens"),
    "max_completion_tokens that is negative": ({"max_completion_tokens": -5}, "max_completion_tokens"),
    "n that is text": ({"n": "2"}, "n"),
    "n that is a fraction": ({"n": 1.5}, "n"),
    "n that is a boolean": ({"n": True}, "n"),
    "stream_options that are a list": ({"stream_options": [1]}, "stream_options"),
    "stream_options that are a boolean": ({"stream_options": True}, "stream_options"),
    "include_usage that is text": ({"stream_options": {"include_usage": "yes"}}, "stream_options"),
}


@pytest.mark.parametrize(("fields", "param"), [pytest.param(*row, id=name) for name, row in WRONG.items()])
def test_a_field_of_the_wrong_type_is_400_and_named(fields: dict[str, Any], param: str) -> None:
    error = refusal(body(**fields))
    assert (400, "invalid_request", param) == (error.status, error.code, error.param)
    assert param in error.message


BROKEN = {
    "nothing": (b"", "invalid_json"),
    "white space": (b" \n", "invalid_json"),
    "text": (b"hello", "invalid_json"),
    "cut short": (body()[:-1], "invalid_json"),
    "something behind": (body() + b"x", "invalid_json"),
    "NaN": (b'{"model":"first","messages":[1],"temperature":NaN}', "invalid_json"),
    "Infinity": (b'{"model":"first","messages":[1],"top_p":-Infinity}', "invalid_json"),
    "a byte order mark": (b"\xef\xbb\xbf" + body(), "invalid_json"),
    "UTF-16": (body().decode().encode("utf-16"), "invalid_json"),
    "bytes that aren't UTF-8": (b'{"model":"first\xff","messages":[1]}', "invalid_json"),
    "513 levels": (b'{"model":"first","messages":' + b"[" * 512 + b"]" * 512 + b"}", "invalid_json"),
    "10,000 levels": (b'{"model":"first","messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "invalid_json"),
    "single quotes": (b"{'model':'first'}", "invalid_json"),
    "a list": (b"[" + body() + b"]", "invalid_request"),
    "a string": (b'"first"', "invalid_request"),
    "null": (b"null", "invalid_request"),
}


@pytest.mark.parametrize(("raw", "code"), [pytest.param(*row, id=name) for name, row in BROKEN.items()])
def test_what_is_no_json_object_is_400(raw: bytes, code: str) -> None:
    error = refusal(raw)
    assert (400, code) == (error.status, error.code)


def test_512_levels_are_read() -> None:
    deep = b'{"model":"first","messages":' + b"[" * 511 + b"]" * 511 + b"}"
    assert everything(ChatRequest.parse(deep, CHAT))[1] == 1


@pytest.mark.parametrize("name", sorted(READ_ONCE))
def test_a_field_that_is_read_stands_once(name: str) -> None:
    raw = body()[:-1] + f', "{name}": null, "{name}": null}}'.encode()
    error = refusal(raw)
    assert (400, name) == (error.status, error.param)


@pytest.mark.parametrize("name", ["model", "messages"])
def test_an_escaped_key_is_the_same_key(name: str) -> None:
    escaped = f"\\u{ord(name[0]):04x}{name[1:]}"
    raw = body()[:-1] + f', "{escaped}": null}}'.encode()
    assert refusal(raw).param == name


def test_the_fields_read_once_are_those_of_the_contract() -> None:
    named = "model models stream messages tools max_tokens max_completion_tokens reasoning_effort"
    assert set(named.split()) == READ_ONCE


PASSING = {
    "a field that stands twice and isn't ours": b'{"model":"first","messages":[1],"stop":"a","stop":"b"}',
    "a number beyond a float": b'{"model":"first","messages":[1],"seed":1e400}',
    "a number of many digits": b'{"model":"first","messages":[1],"seed":12345678901234567890}',
    "a number of 5,000 digits": b'{"model":"first","messages":[1],"seed":' + b"9" * 5_000 + b"}",
    "a fraction with zeros": b'{"model":"first","messages":[1],"temperature":0.1000}',
    "escaped keys": b'{"\\u006dodel":"first","\\u006dessages":[1]}',
    "messages last": b'{"messages":[1],"model":"first"}',
    "white space": b' {\r\n\t"model" : "first" , "messages" : [ 1 ] } ',
    "unknown fields": b'{"model":"first","messages":[1],"x":{"y":[null,{"z":1}]}}',
    "messages that are no objects": b'{"model":"first","messages":[1,null,"x",[]]}',
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in PASSING.items()])
def test_any_legal_json_is_read_and_kept(raw: bytes) -> None:
    read = ChatRequest.parse(raw, CHAT)
    assert ("first", raw) == (read.model, read.document.data)
    assert everything(read)[:4] == (False, 1, None, frozenset())


def test_of_two_limits_the_larger_counts_as_a_provider_may_read_it() -> None:
    assert request(max_tokens=5, max_completion_tokens=7).max_output == 7
    assert request(max_tokens=7, max_completion_tokens=5).max_output == 7
    assert request(max_tokens=5, max_completion_tokens=None).max_output == 5
    assert request(max_tokens=0).max_output == 0


def test_models_are_at_most_eight() -> None:
    assert MOST_MODELS == 8
    assert request(models=[]).models == ()
    assert request(models=list("abcdefgh")).models == tuple("abcdefgh")


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}
FEATURES: dict[str, tuple[Endpoint, dict[str, Any], set[Feature]]] = {
    "none": (CHAT, {}, set()),
    "tools": (CHAT, {"tools": [TOOL]}, {Feature.TOOLS}),
    "tools, an empty list": (CHAT, {"tools": []}, set()),
    "functions, the older name": (CHAT, {"functions": [{"name": "f"}]}, {Feature.TOOLS}),
    "json_schema": (CHAT, {"response_format": SCHEMA}, {Feature.JSON_SCHEMA}),
    "json_object": (CHAT, {"response_format": {"type": "json_object"}}, set()),
    "text": (CHAT, {"response_format": {"type": "text"}}, set()),
    "an odd response_format": (CHAT, {"response_format": [SCHEMA]}, set()),
    "both": (CHAT, {"tools": [TOOL], "response_format": SCHEMA}, {Feature.TOOLS, Feature.JSON_SCHEMA}),
    "messages, tools": (MESSAGES, {"tools": [{"name": "f"}]}, {Feature.TOOLS}),
    "messages, json_schema": (MESSAGES, {"output_config": {"format": {"type": "json_schema"}}}, {Feature.JSON_SCHEMA}),
    "messages, an effort alone": (MESSAGES, {"output_config": {"effort": "low"}}, set()),
    "messages know no response_format": (MESSAGES, {"response_format": SCHEMA}, set()),
}


@pytest.mark.parametrize(
    ("endpoint", "fields", "expected"), [pytest.param(*row, id=name) for name, row in FEATURES.items()]
)
def test_features_that_a_request_uses(endpoint: Endpoint, fields: dict[str, Any], expected: set[Feature]) -> None:
    assert frozenset(expected) == request(endpoint, **fields).features


def test_an_empty_list_of_tools_may_hold_white_space() -> None:
    assert ChatRequest.parse(body()[:-1] + b', "tools": [ \n ]}', CHAT).features == frozenset()


EFFORTS: dict[str, tuple[Endpoint, dict[str, Any], str | None]] = {
    "chat": (CHAT, {"reasoning_effort": "high"}, "high"),
    "chat, any word is judged later": (CHAT, {"reasoning_effort": "EXTREME"}, "EXTREME"),
    "chat, an empty word": (CHAT, {"reasoning_effort": ""}, ""),
    "chat doesn't know messages' field": (CHAT, {"output_config": {"effort": "high"}}, None),
    "messages": (MESSAGES, {"output_config": {"effort": "high"}}, "high"),
    "messages, left out": (MESSAGES, {"output_config": {}}, None),
    "messages, thinking disabled": (MESSAGES, {"thinking": {"type": "disabled"}}, "none"),
    "messages, thinking enabled": (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 9}}, None),
    "messages, thinking adaptive at a level": (
        MESSAGES,
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        "low",
    ),
    "messages, disabled beats a level": (
        MESSAGES,
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
        "none",
    ),
    "messages don't know chat's field": (MESSAGES, {"reasoning_effort": "high"}, None),
}


@pytest.mark.parametrize(
    ("endpoint", "fields", "expected"), [pytest.param(*row, id=name) for name, row in EFFORTS.items()]
)
def test_the_effort_is_read_where_its_api_has_it(
    endpoint: Endpoint, fields: dict[str, Any], expected: str | None
) -> None:
    assert expected == request(endpoint, **fields).effort_word


def test_the_field_of_the_effort_is_named() -> None:
    assert ["reasoning_effort", "output_config.effort"] == [request(each).effort_param for each in (CHAT, MESSAGES)]


@pytest.mark.parametrize(
    ("fields", "param"), [({"thinking": "off"}, "thinking"), ({"output_config": {"effort": 5}}, "output_config")]
)
def test_messages_fields_of_the_wrong_type_are_named(fields: dict[str, Any], param: str) -> None:
    assert refusal(body(**fields), MESSAGES).param == param


@pytest.mark.parametrize(
    ("options", "expected"),
    [(..., False), (None, False), ({}, False), ({"include_usage": False}, False), ({"include_usage": True}, True)],
)
def test_usage_is_wanted_when_asked_for(options: object, *, expected: bool) -> None:
    assert expected is request(stream=True, stream_options=options).include_usage


@pytest.mark.parametrize(("n", "expected"), [(..., 1), (None, 1), (1, 1), (3, 3), (0, 1)])
def test_how_many_choices(n: object, expected: int) -> None:
    assert expected == request(n=n).choices


def test_media_are_found() -> None:
    parts = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]
    assert frozenset({Input.IMAGE}) == request(messages=[{"role": "user", "content": parts}]).media


def test_a_longer_prompt_has_more_tokens() -> None:
    longer = [{"role": "user", "content": "The quick brown fox jumps over the lazy dog. " * 50}]
    assert request(messages=HELLO).tokens < request(messages=longer).tokens


def test_the_decoded_body_is_the_whole() -> None:
    assert json.loads(body(x=[1, {"y": None}])) == request(x=[1, {"y": None}]).body
    assert ChatRequest.parse(body()[:-1] + b', "x": -1e999}', CHAT).body["x"] == float("-inf")


@pytest.mark.parametrize("fields", [{"stream_options": 5}, {"n": "2"}, {"stream_options": {"include_usage": 1}}])
def test_what_only_a_stream_needs_is_read_at_once_for_streams(fields: dict[str, Any]) -> None:
    """A mistake must not show only when the request holds something of a limit."""
    with pytest.raises(InvalidRequest):
        ChatRequest.parse(body(**fields, stream=True), Endpoint.CHAT)
    assert not ChatRequest.parse(body(**fields), Endpoint.CHAT).stream
