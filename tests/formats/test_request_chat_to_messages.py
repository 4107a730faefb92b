"""Chat requests for a Messages provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from formats import conversations, golden, sdk
from zurelay.errors import InvalidRequest
from zurelay.formats import Target
from zurelay.formats.request_chat_to_messages import DEFAULT_MAX_TOKENS, request
from zurelay.model import Effort

HI = [{"role": "user", "content": "Hi"}]


def translated(fields: dict[str, Any], **target: Any) -> Any:
    body = json.dumps({"model": "opus", "messages": HI, **fields}).encode()
    return json.loads(request(body, Target(model="claude-up", **target)))


@pytest.mark.parametrize("case", golden.cases("request_chat_to_messages", ".in.json"))
def test_golden_requests_come_out_byte_for_byte(case: str) -> None:
    body = golden.read(f"{case}.in.json")
    target = Target(model="claude-up", max_output=64_000, effort=golden.effort(body, "reasoning_effort"))

    golden.check(f"{case}.out.json", request(body, target))


EFFORTS = {
    "left out: nothing is sent": (None, None, None),
    "none: thinking is disabled": (Effort.none, {"type": "disabled"}, None),
    "minimal is low there": (Effort.minimal, {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
    "high": (Effort.high, {"type": "adaptive", "display": "summarized"}, {"effort": "high"}),
    "max": (Effort.max, {"type": "adaptive", "display": "summarized"}, {"effort": "max"}),
}


@pytest.mark.parametrize(("effort", "thinking", "config"), EFFORTS.values(), ids=EFFORTS)
def test_effort_is_adaptive_thinking_that_shows_a_summary(effort: Effort | None, thinking: Any, config: Any) -> None:
    found = translated({"reasoning_effort": "whatever was asked"}, effort=effort)

    assert (thinking, config) == (found.get("thinking"), found.get("output_config"))
    assert "reasoning_effort" not in found


def test_a_forced_call_takes_the_effort_and_no_thinking() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]

    found = translated({"tools": tools, "tool_choice": "required"}, effort=Effort.high)

    assert (found["output_config"], found["tool_choice"]) == ({"effort": "high"}, {"type": "any"})
    assert "thinking" not in found


def test_a_schema_beside_thinking_forces_no_call() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}

    found = translated({"response_format": wanted}, effort=Effort.high)

    assert {"effort": "high", "format": {"type": "json_schema", "schema": schema}} == found["output_config"]
    assert "tool_choice" not in found
    assert found["thinking"]["type"] == "adaptive"


MAX_TOKENS = {
    "neither said": ({}, {}, DEFAULT_MAX_TOKENS),
    "the catalog says": ({}, {"max_output": 64_000}, 64_000),
    "the client says": ({"max_tokens": 5}, {"max_output": 64_000}, 5),
    "the newer field counts": ({"max_tokens": 5, "max_completion_tokens": 6}, {}, 6),
    "null is left out": ({"max_tokens": None, "max_completion_tokens": None}, {"max_output": 7}, 7),
    "over the model's: the provider tells a client that named it": ({"max_tokens": 9}, {"max_output": 8}, 9),
    "over the model's: cut for one that didn't": ({"max_tokens": 9}, {"max_output": 8, "named": False}, 8),
}


@pytest.mark.parametrize(("fields", "target", "expected"), MAX_TOKENS.values(), ids=MAX_TOKENS)
def test_max_tokens_is_always_there(fields: dict[str, Any], target: dict[str, Any], expected: int) -> None:
    assert expected == translated(fields, **target)["max_tokens"]


SAMPLING = {
    "kept to the digit": (b'"temperature": 0.1000, "top_p": 1E-1', None, b'"temperature":0.1000,"top_p":1E-1'),
    "the defaults are left out": (b'"temperature": 1, "top_p": 1.0', None, b""),
    "above Messages' range is its top, so left out": (b'"temperature": 1.7', None, b""),
    "thinking with what it takes": (b'"temperature": 1, "top_p": 0.95', Effort.low, b'"top_p":0.95'),
    "no thinking, so anything goes": (b'"temperature": 0', Effort.none, b'"temperature":0'),
    "null is left out": (b'"temperature": null, "top_p": null', None, b""),
}


@pytest.mark.parametrize(("fields", "effort", "expected"), SAMPLING.values(), ids=SAMPLING)
def test_sampling_is_kept_within_the_narrower_range(fields: bytes, effort: Effort | None, expected: bytes) -> None:
    body = b'{"messages":[{"role":"user","content":"Hi"}],' + fields + b"}"

    found = request(body, Target(model="m", effort=effort))

    start, end = found.index(b"8192") + 4, found.index(b'"messages"')
    middle = found[start:end].strip(b",")
    for thinking in (b'"thinking":{"type":"adaptive","display":"summarized"},', b'"thinking":{"type":"disabled"},'):
        middle = middle.replace(thinking, b"")
    assert expected == middle.replace(b'"output_config":{"effort":"low"},', b"")


REFUSED = {
    "n": {"n": 2},
    "audio": {"audio": {"format": "wav", "voice": "ash"}},
    "modalities": {"modalities": ["text", "audio"]},
    "functions": {"functions": [{"name": "f"}]},
    "function_call": {"function_call": "auto"},
    "web_search_options": {"web_search_options": {}},
    "temperature": {"temperature": 2.5},
    "top_p": {"top_p": -1},
    "max_tokens": {"max_tokens": 0},
    "max_completion_tokens": {"max_completion_tokens": -1},
    "stop": {"stop": 3},
    "stream": {"stream": "yes"},
    "user": {"user": 3},
    "messages": {"messages": []},
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("param", "fields"), REFUSED.items(), ids=REFUSED)
def test_what_would_change_the_answer_is_refused_of_every_model(
    param: str, fields: dict[str, Any], named: bool
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        translated(fields, named=named)

    assert (400, param) == (caught.value.status, caught.value.param)


UNMAPPED = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "presence_penalty": {"presence_penalty": -1},
    "logit_bias": {"logit_bias": {"1": 3}},
    "logprobs": {"logprobs": True},
    "top_logprobs": {"top_logprobs": 2},
    "seed": {"seed": 0},
    "store": {"store": True},
    "verbosity": {"verbosity": "low"},
    "moderation": {"moderation": {"model": "m"}},
    "metadata": {"metadata": {"team": "a"}},
    "service_tier": {"service_tier": "flex"},
    "stop": {"stop": ["\n"]},
    "temperature": {"temperature": 0.5},
    "top_p": {"top_p": 0.5},
}


@pytest.mark.parametrize(("param", "fields"), UNMAPPED.items(), ids=UNMAPPED)
def test_what_has_no_counterpart_is_refused_of_a_named_model(param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        translated(fields, effort=Effort.high)

    assert (400, param) == (caught.value.status, caught.value.param)
    assert param in caught.value.message


@pytest.mark.parametrize("fields", UNMAPPED.values(), ids=UNMAPPED)
def test_what_has_no_counterpart_is_dropped_for_another_model(fields: dict[str, Any]) -> None:
    assert translated({}, effort=Effort.high, named=False) == translated(fields, effort=Effort.high, named=False)


NOTHING_ASKED = {
    "n": 1,
    "modalities": ["text"],
    "functions": [],
    "frequency_penalty": 0.0,
    "presence_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": 0,
    "seed": None,
    "store": False,
    "verbosity": "medium",
    "metadata": {},
    "stop": [],
    "prediction": {"type": "content", "content": "x"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"mode": "implicit"},
    "stream_options": {"include_usage": True},
    "models": ["a"],
    "response_format": {"type": "text"},
    "parallel_tool_calls": False,
    "tool_choice": "auto",
}


@pytest.mark.parametrize("name", NOTHING_ASKED)
def test_values_that_ask_for_nothing_are_left_out(name: str) -> None:
    assert translated({}) == translated({name: NOTHING_ASKED[name]})


MAPPED = {
    "one stop": ({"stop": "END"}, {"stop_sequences": ["END"]}),
    "stops": ({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}),
    "user": ({"user": "u"}, {"metadata": {"user_id": "u"}}),
    "safety_identifier before user": ({"user": "u", "safety_identifier": "s"}, {"metadata": {"user_id": "s"}}),
    "metadata's before both": ({"user": "u", "metadata": {"user_id": "m"}}, {"metadata": {"user_id": "m"}}),
    "auto tier": ({"service_tier": "auto"}, {"service_tier": "auto"}),
    "default tier": ({"service_tier": "default"}, {"service_tier": "standard_only"}),
    "priority tier": ({"service_tier": "priority"}, {"service_tier": "auto"}),
    "stream": ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
    "Messages' own fields": ({"top_k": 5, "inference_geo": "eu"}, {"top_k": 5, "inference_geo": "eu"}),
    "Messages' own thinking": (
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
}


@pytest.mark.parametrize(("fields", "expected"), MAPPED.values(), ids=MAPPED)
def test_fields_are_mapped(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {**translated({}), **expected} == translated(fields)


def test_unknown_fields_keep_their_digits() -> None:
    found = request(b'{"messages":[{"role":"user","content":"Hi"}],"x":{"a": 1e400}}', Target(model="m"))

    assert b'"x":{"a": 1e400}' in found


def test_messages_own_fields_can_t_stand_beside_chat_s() -> None:
    system = [{"role": "system", "content": "a"}, *HI]

    assert translated({"system": "b"})["system"] == "b"
    with pytest.raises(InvalidRequest, match="`system`"):
        translated({"system": "b", "messages": system})
    with pytest.raises(InvalidRequest, match="`stop_sequences`"):
        translated({"stop_sequences": ["b"], "stop": "a"})


def test_unknown_fields_are_dropped_for_another_model() -> None:
    assert translated({}) == translated({"x": 1, "top_k": 3}, named=False)


def test_one_of_temperature_and_top_p_is_left_for_a_model_that_was_not_named() -> None:
    both = {"temperature": 0.5, "top_p": 0.5}

    assert {**translated({}), **both} == translated(both)
    assert {**translated({}), "temperature": 0.5} == translated(both, named=False)


def _checked(fields: dict[str, Any], target: Target) -> None:
    """Translate, and check the body against Anthropic's types; sampling is in the API only, for older models."""
    found = json.loads(request(json.dumps(fields).encode(), target))
    for name in ("temperature", "top_p"):
        found.pop(name, None)
    kind = MessageCreateParamsStreaming if found.get("stream") else MessageCreateParamsNonStreaming
    assert sdk.problems(found, kind) == []
    assert conversations.messages_problems(found) == []


TARGETS = st.builds(
    Target,
    model=st.just("claude-up"),
    max_output=st.none() | st.just(64_000),
    effort=st.none() | st.sampled_from(Effort),
    named=st.booleans(),
)
ANY_REQUEST = sdk.allowed(CompletionCreateParamsNonStreaming, lambda *_: None) | sdk.allowed(
    CompletionCreateParamsStreaming, lambda *_: None
)


@settings(max_examples=60, deadline=None)
@given(ANY_REQUEST, TARGETS)
def test_whatever_the_sdk_allows_is_translated_or_refused_by_name(fields: dict[str, Any], target: Target) -> None:
    refused = None
    try:
        _checked(fields, target)
    except InvalidRequest as error:
        refused = error.param or ""

    assert refused is None or refused.split("[")[0].split(".")[0] in {*fields, "messages"}


@settings(max_examples=60, deadline=None)
@given(conversations.chat_request(), TARGETS)
def test_whatever_has_a_counterpart_is_translated(fields: dict[str, Any], target: Target) -> None:
    _checked(fields, target)
