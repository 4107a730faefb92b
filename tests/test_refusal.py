"""Providers' refusals: what each says in its own shape, what moves the plan on, and Retry-After."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import refusal
from zurelay.plan import Reason
from zurelay.refusal import ProviderError

SHAPES: dict[str, tuple[Any, ProviderError]] = {
    "OpenAI": (
        {"error": {"message": "m", "type": "invalid_request_error", "param": "temperature", "code": "too_hot"}},
        ProviderError("m", "too_hot", "temperature"),
    ),
    "OpenAI without code and param": (
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None}},
        ProviderError("m"),
    ),
    "Azure": (
        {"error": {"code": "content_filter", "message": "m", "innererror": {"code": "x"}, "status": 400}},
        ProviderError("m", "content_filter"),
    ),
    "Azure's front": ({"statusCode": 400, "message": "m"}, ProviderError("m")),
    "Anthropic": (
        {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}, "request_id": "r"},
        ProviderError("m"),
    ),
    "Gemini's list of one": (
        [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}],
        ProviderError("m"),
    ),
    "vLLM": ({"error": {"message": "m", "type": "BadRequestError", "param": None, "code": 400}}, ProviderError("m")),
    "vLLM of old": (
        {"object": "error", "message": "m", "type": "BadRequestError", "param": "stop", "code": 400},
        ProviderError("m", None, "stop"),
    ),
    "Ollama": ({"error": "m"}, ProviderError("m")),
    "xAI": ({"code": "invalid-argument", "error": "m"}, ProviderError("m", "invalid-argument")),
    "Mistral": (
        {
            "object": "error",
            "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "foo"], "msg": "Not permitted"}]},
            "type": "invalid_request_error",
        },
        ProviderError("foo: Not permitted", None, "foo"),
    ),
    "FastAPI's details": (
        {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "m", "type": "missing"}, {"msg": "second"}]},
        ProviderError("messages.0.role: m", None, "messages.0.role"),
    ),
    "FastAPI's details of no place": ({"detail": [{"msg": "m"}]}, ProviderError("m")),
    "FastAPI's details of odd shapes": ({"detail": [5, None]}, ProviderError()),
    "FastAPI's details, empty": ({"detail": []}, ProviderError()),
    "FastAPI's detail": ({"detail": "m"}, ProviderError("m")),
    "a detail in a message": ({"message": {"detail": "m"}}, ProviderError("m")),
    "Cohere": ({"id": "x", "message": "m"}, ProviderError("m")),
    "an error of null beside a message": ({"error": None, "message": "m"}, ProviderError("m")),
    "an empty error beside a message": ({"error": "", "message": "m"}, ProviderError("m")),
    "a plain string": ("m", ProviderError("m")),
    "an empty object": ({}, ProviderError()),
    "an empty list": ([], ProviderError()),
    "a list of nothing known": ([5], ProviderError()),
    "a number": (7, ProviderError()),
    "null": (None, ProviderError()),
    "a message that is no text": ({"error": {"message": 5, "code": ["x"], "param": {}}}, ProviderError()),
    "an error that is a number": ({"error": 5}, ProviderError()),
}


@pytest.mark.parametrize(("body", "expected"), [pytest.param(*row, id=name) for name, row in SHAPES.items()])
def test_each_providers_error_is_read(body: object, expected: ProviderError) -> None:
    assert expected == refusal.read(json.dumps(body).encode())


NO_JSON = {
    "nothing": b"",
    "a page": b"<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>",
    "text": b"upstream connect error or disconnect/reset before headers",
    "cut short": b'{"error": {"message": "m',
    "two values": b'{"error": "m"}{"error": "n"}',
    "no UTF-8": b'{"error": "\xff"}',
    "zeros": b"\x00" * 100,
    "nested without end": b"[" * 100_000,
    "nested deeply": b'{"error":' * 5_000 + b"1" + b"}" * 5_000,
    "huge": b'{"error": {"message": "m", "input": "' + b"x" * (600 << 10) + b'"}}',
}


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in NO_JSON.items()])
def test_what_is_no_known_shape_says_nothing(body: bytes) -> None:
    assert ProviderError() == refusal.read(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["error", "message", "detail", "msg", "loc", "code", "param"]), inner)
        ),
    )
)
def test_any_json_is_read(value: object) -> None:
    read = refusal.read(json.dumps(value).encode())
    assert isinstance(read.message, str)
    assert isinstance(read.code, str | None)
    assert isinstance(read.param, str | None)


def test_a_long_message_is_cut() -> None:
    assert len(refusal.read(json.dumps({"error": {"message": "x" * 100_000}}).encode()).message) == 2_000


def test_a_message_beside_an_echo_of_the_request_is_read() -> None:
    body = {"detail": [{"loc": ["body", "x"], "msg": "m", "input": "x" * 300_000}]}
    assert refusal.read(json.dumps(body).encode()).message == "x: m"


LENGTH = {
    "OpenAI": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "OpenAI, newer": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Anthropic, with max_tokens": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "vLLM": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "SGLang": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Kimi": "Invalid request: Your request exceeded model token limit: 262144",
    "MiniMax": "invalid params, context window exceeds limit (2013)",
    "Z.ai": "Prompt exceeds max length",
    "Qwen": "Range of input length should be [1, 98304]",
    "Groq": "Please reduce the length of the messages or completion.",
    "Bedrock": "Input is too long for requested model.",
    "Cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "GitHub": "prompt token count of 140000 exceeds the limit of 128000",
    "OpenRouter": "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000.",
}


@pytest.mark.parametrize("message", [pytest.param(message, id=name) for name, message in LENGTH.items()])
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_for_length_is_known_by_its_words(message: str, status: int) -> None:
    assert refusal.is_about_length(status, ProviderError(message))


@pytest.mark.parametrize("code", ["context_length_exceeded", "context_window_exceeded", "string_above_max_length"])
def test_a_refusal_for_length_is_known_by_its_code(code: str) -> None:
    assert refusal.is_about_length(400, ProviderError("in any words", code))


OTHER = {
    "max_tokens above what the model writes": "max_tokens is too large: 200000. This model supports at most 16384.",
    "a parameter": "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "an image": "Invalid image_url: the model does not support image input.",
    "a tool's name": "Invalid 'tools[0].function.name': string does not match pattern.",
    "a stop list": "Invalid 'stop': array too long. Expected at most 4.",
    "nothing": "",
}


@pytest.mark.parametrize("message", [pytest.param(message, id=name) for name, message in OTHER.items()])
def test_other_refusals_are_not_about_length(message: str) -> None:
    assert not refusal.is_about_length(400, ProviderError(message, "invalid_value"))


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_other_statuses_are_not_about_length(status: int) -> None:
    assert not refusal.is_about_length(status, ProviderError("maximum context length", "context_length_exceeded"))


NAMED = {
    **dict.fromkeys((401, 403, 404), Reason.DENIED),
    429: Reason.RETRY_LATER,
    **dict.fromkeys((408, 409, 425, 500, 501, 502, 503, 504, 507, 520, 529, 599), Reason.STATUS),
    **dict.fromkeys((300, 302, 304, 0, 100, 600), Reason.STATUS),
    **dict.fromkeys((400, 402, 405, 406, 410, 411, 413, 414, 415, 418, 422, 426, 431, 451, 499), None),
}


@pytest.mark.parametrize(("status", "expected"), NAMED.items())
def test_a_status_of_the_named_model_moves_on_or_goes_back(status: int, expected: Reason | None) -> None:
    assert expected is refusal.reason(status, ProviderError("no"), named=True)


@pytest.mark.parametrize(("status", "expected"), (NAMED | {400: Reason.BAD_REQUEST}).items())
def test_any_400_of_another_model_moves_on(status: int, expected: Reason | None) -> None:
    assert expected is refusal.reason(status, ProviderError("no"), named=False)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_for_length_has_its_own_reason(status: int, *, named: bool) -> None:
    assert Reason.CONTEXT_LENGTH is refusal.reason(status, ProviderError("prompt is too long"), named=named)


NOW = 1_790_000_000.5  # Mon, 21 Sep 2026 14:13:20.5 GMT
WAITS: dict[str, tuple[str | None, int | None]] = {
    "left out": (None, None),
    "seconds": ("17", 17),
    "none": ("0", 0),
    "with spaces": ("  17 ", 17),
    "with zeros before": ("0000000000000017", 17),
    "a fraction, rounded up": ("1.2", 2),
    "more than a minute": ("86400", 86_400),
    "huge": ("9" * 4_000, 10**6),
    "negative": ("-5", None),
    "signed": ("+5", None),
    "an exponent": ("1e3", None),
    "digits of another script": ("٣", None),
    "a date": ("Mon, 21 Sep 2026 14:13:30 GMT", 10),
    "a date in the past": ("Mon, 21 Sep 2020 14:13:30 GMT", 0),
    "a date far away": ("Fri, 31 Dec 9999 23:59:59 GMT", 10**6),
    "a date of old form": ("Monday, 21-Sep-26 14:13:30 GMT", 10),
    "a date of asctime": ("Mon Sep 21 14:13:30 2026", 10),
    "a date of another zone": ("Mon, 21 Sep 2026 16:13:30 +0200", 10),
    "a date without a zone": ("Mon, 21 Sep 2026 14:13:30 -0000", 10),
    "a date that isn't": ("Mon, 31 Feb 2026 14:13:30 GMT", None),
    "a year that isn't": ("Mon, 21 Sep 99999 14:13:30 GMT", None),
    "words": ("soon", None),
    "nothing": ("", None),
    "two values": ("5, 6", None),
}


@pytest.mark.parametrize(("value", "expected"), [pytest.param(*row, id=name) for name, row in WAITS.items()])
def test_retry_after_is_seconds_or_a_date(value: str | None, expected: int | None) -> None:
    assert expected == refusal.retry_after(value, NOW)


@given(st.text(max_size=40) | st.from_regex(r"[A-Za-z]{3}, \d{1,3} [A-Za-z]{3} \d{1,6} \d{1,3}:\d{1,3}:\d{1,3} .{1,6}"))
def test_any_text_is_a_wait_or_none(text: str) -> None:
    found = refusal.retry_after(text, NOW)
    assert found is None or 0 <= found <= 10**6


@pytest.mark.parametrize(
    ("named", "expected"), [([], 5), ([0], 1), ([7], 7), ([30, 7, 90], 7), ([90], 60), ([60, 61], 60)]
)
def test_the_client_waits_for_the_soonest(named: list[int], expected: int) -> None:
    assert expected == refusal.wait(named)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Invalid value for temperature.", "Invalid value for temperature."),
        ("upstream http://10.1.2.3:9/v1 failed", "upstream [...] failed"),
        ("connect to 10.1.2.3:9100 refused", "connect to [...] refused"),
        ("[fd00::1]:443 refused", "[...] refused"),
        ("Incorrect API key provided: sk-abc123", "Incorrect API key provided: [...]"),
        ("bad header Bearer abc.def", "bad header [...]"),
        ("token 0123456789abcdef0123456789abcdef is unknown", "token [...] is unknown"),
        ("max is 1.5 and 128000 tokens, not 200000", "max is 1.5 and 128000 tokens, not 200000"),
        ("field max_completion_tokens_of_the_whole_answer is unknown", None),
    ],
)
def test_a_message_tells_no_address_and_no_secret(said: str, shown: str | None) -> None:
    assert refusal.scrubbed(said) == (said if shown is None else shown)


@pytest.mark.parametrize("text", ["a" * 5_000, "http://" * 1_000, "1." * 3_000, "sk-" * 2_000, "[::" * 2_000])
def test_scrubbing_is_bounded(text: str) -> None:
    assert len(refusal.scrubbed(text)) <= refusal.MOST_MESSAGE
