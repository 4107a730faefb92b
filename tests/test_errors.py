"""The error tree: each row of SPEC 10 in both shapes."""

from __future__ import annotations

import json

import pytest

from zurelay import errors
from zurelay.errors import ZurelayError, error_body
from zurelay.model import Endpoint

INVALID = "invalid_request_error"
ROWS: dict[str, tuple[ZurelayError, int, str, str, str]] = {
    "a request that can't be read": (errors.InvalidRequest("m"), 400, "invalid_request", INVALID, INVALID),
    "no JSON": (errors.InvalidRequest("m", code="invalid_json"), 400, "invalid_json", INVALID, INVALID),
    "no key": (errors.Unauthenticated("m"), 401, "invalid_api_key", "authentication_error", "authentication_error"),
    "the key's rules": (errors.Forbidden("m"), 403, "model_not_allowed", "permission_error", "permission_error"),
    "a policy": (
        errors.Forbidden("m", code="policy_denied"),
        403,
        "policy_denied",
        "permission_error",
        "permission_error",
    ),
    "no such path": (errors.NotFound("m"), 404, "not_found", INVALID, "not_found_error"),
    "no such model": (
        errors.NotFound("m", code="model_not_found"),
        404,
        "model_not_found",
        INVALID,
        "not_found_error",
    ),
    "a wrong method": (
        errors.MethodNotAllowed("m", allow="GET"),
        405,
        "method_not_allowed",
        INVALID,
        "not_found_error",
    ),
    "too large": (errors.TooLarge("m"), 413, "request_too_large", INVALID, "request_too_large"),
    "a coding": (errors.UnsupportedEncoding("m"), 415, "unsupported_encoding", INVALID, INVALID),
    "a rate": (errors.LimitExceeded("m"), 429, "rate_limit_exceeded", "rate_limit_error", "rate_limit_error"),
    "spend": (
        errors.LimitExceeded("m", code="insufficient_quota", should_retry=False),
        429,
        "insufficient_quota",
        "rate_limit_error",
        "rate_limit_error",
    ),
    "every attempt failed": (
        errors.ModelUnavailable("m"),
        503,
        "model_unavailable",
        "server_error",
        "overloaded_error",
    ),
    "we are down": (errors.GatewayUnavailable("m"), 503, "gateway_unavailable", "server_error", "api_error"),
    "a provider's refusal": (errors.ProviderRefusal("m", status=422, code="odd"), 422, "odd", INVALID, INVALID),
    "a provider's refusal without a code": (
        errors.ProviderRefusal("m", status=402),
        402,
        "invalid_request",
        INVALID,
        INVALID,
    ),
}


@pytest.mark.parametrize(
    ("error", "status", "code", "openai", "anthropic"), [pytest.param(*row, id=name) for name, row in ROWS.items()]
)
def test_each_error_has_its_status_code_and_types(
    error: ZurelayError, status: int, code: str, openai: str, anthropic: str
) -> None:
    chat = json.loads(error_body(error, Endpoint.CHAT, "req_1"))
    messages = json.loads(error_body(error, Endpoint.MESSAGES, "req_1"))
    assert status == error.status
    assert {"error": {"message": "m", "type": openai, "param": None, "code": code}} == chat
    assert {"type": "error", "error": {"type": anthropic, "message": "m"}, "request_id": "req_1"} == messages


def test_the_param_is_named_where_there_is_one() -> None:
    body = json.loads(error_body(errors.InvalidRequest("m", param="stream"), Endpoint.CHAT, ""))
    assert body["error"]["param"] == "stream"


def test_tokens_counting_has_messages_shape() -> None:
    assert json.loads(error_body(errors.NotFound("m"), Endpoint.COUNT_TOKENS, "req_1"))["type"] == "error"


@pytest.mark.parametrize("text", ["\udcff from a header", 'a "quoted" name\n', "模型 ✅ \u2028", "\x00\x1b[31m"])
def test_any_text_makes_a_body(text: str) -> None:
    for endpoint in Endpoint:
        body = json.loads(error_body(errors.InvalidRequest(text), endpoint, "req_1"))
        assert text.replace("\udcff", "?") == body["error"]["message"]


HEADERS = {
    "nothing to say": (errors.InvalidRequest("m"), {}),
    "when to ask again": (errors.ModelUnavailable("m", retry_after=5), {"retry-after": "5"}),
    "at once": (errors.GatewayUnavailable("m", retry_after=0), {"retry-after": "0"}),
    "not again": (errors.LimitExceeded("m", should_retry=False), {"x-should-retry": "false"}),
    "again": (errors.ModelUnavailable("m", should_retry=True), {"x-should-retry": "true"}),
    "both": (
        errors.ModelUnavailable("m", retry_after=9, should_retry=False),
        {"retry-after": "9", "x-should-retry": "false"},
    ),
    "what is allowed": (errors.MethodNotAllowed("m", allow="GET, HEAD"), {"allow": "GET, HEAD"}),
}


@pytest.mark.parametrize(("error", "expected"), [pytest.param(*row, id=name) for name, row in HEADERS.items()])
def test_an_error_brings_its_headers(error: ZurelayError, expected: dict[str, str]) -> None:
    assert expected == error.headers()


def test_the_docstring_draws_the_whole_tree() -> None:
    drawn = str(errors.__doc__)
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ZurelayError)]
    assert [] == [kind.__name__ for kind in classes if kind.__name__ not in drawn]
    assert len(classes) == 12
