"""The one error tree. Each error carries its status, type and code (SPEC 10); `error_body` maps it once, at the edge.

ZurelayError
+-- InvalidRequest 400      invalid_json, invalid_request, invalid_reasoning_effort, unsupported_content, ...
+-- Unauthenticated 401     invalid_api_key
+-- Forbidden 403           model_not_allowed, policy_denied
+-- NotFound 404            model_not_found, not_found
+-- MethodNotAllowed 405    method_not_allowed
+-- TooLarge 413            request_too_large
+-- UnsupportedEncoding 415 unsupported_encoding
+-- LimitExceeded 429       rate_limit_exceeded, insufficient_quota
+-- ModelUnavailable 503    model_unavailable
+-- GatewayUnavailable 503  gateway_unavailable
+-- ProviderRefusal 4xx     the provider's own status, in our shape
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from zurelay.model import Endpoint


class ZurelayError(Exception):
    """What a client did wrong or we could not do: `message` says what, and what to do."""

    status: int = 500
    type: ClassVar[str] = "server_error"
    anthropic_type: ClassVar[str] = "api_error"
    code: str = "gateway_unavailable"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.param = param
        self.retry_after = retry_after
        self.should_retry = should_retry

    def headers(self) -> dict[str, str]:
        """Give the response headers that go with the error; retry-after is in seconds (RFC 9110, 10.2.3)."""
        found = {}
        if self.retry_after is not None:
            found["retry-after"] = str(self.retry_after)
        if self.should_retry is not None:
            found["x-should-retry"] = "true" if self.should_retry else "false"
        return found


class InvalidRequest(ZurelayError):
    """The request can't be served as it stands."""

    status = 400
    type = "invalid_request_error"
    anthropic_type = "invalid_request_error"
    code = "invalid_request"


class Unauthenticated(ZurelayError):
    """No key, or one that opens nothing."""

    status = 401
    type = "authentication_error"
    anthropic_type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(ZurelayError):
    """A rule of the key or a policy says no."""

    status = 403
    type = "permission_error"
    anthropic_type = "permission_error"
    code = "model_not_allowed"


class NotFound(ZurelayError):
    """No such model, or no such path."""

    status = 404
    type = "invalid_request_error"
    anthropic_type = "not_found_error"
    code = "not_found"


class MethodNotAllowed(ZurelayError):
    """The path exists, the method doesn't."""

    status = 405
    type = "invalid_request_error"
    anthropic_type = "not_found_error"
    code = "method_not_allowed"

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message)
        self.allow = allow

    def headers(self) -> dict[str, str]:
        """Give the Allow header that a 405 must carry (RFC 9110, 15.5.6)."""
        return {"allow": self.allow}


class TooLarge(ZurelayError):
    """The body is over the limit."""

    status = 413
    type = "invalid_request_error"
    anthropic_type = "request_too_large"
    code = "request_too_large"


class UnsupportedEncoding(ZurelayError):
    """A content coding that we can't undo."""

    status = 415
    type = "invalid_request_error"
    anthropic_type = "invalid_request_error"
    code = "unsupported_encoding"


class LimitExceeded(ZurelayError):
    """A request, token or spend limit is reached."""

    status = 429
    type = "rate_limit_error"
    anthropic_type = "rate_limit_error"
    code = "rate_limit_exceeded"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retry_after: int | None = None,
        should_retry: bool | None = None,
        standing: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, retry_after=retry_after, should_retry=should_retry)
        self.standing = standing or {}

    def headers(self) -> dict[str, str]:
        """Give also where the caller stands with its limits."""
        return {**super().headers(), **self.standing}


class ModelUnavailable(ZurelayError):
    """Every attempt failed."""

    status = 503
    type = "server_error"
    anthropic_type = "overloaded_error"
    code = "model_unavailable"


class GatewayUnavailable(ZurelayError):
    """We are down, draining or overloaded."""

    status = 503
    type = "server_error"
    anthropic_type = "api_error"
    code = "gateway_unavailable"


class ProviderRefusal(ZurelayError):
    """The provider refused what the client sent: its status, code and message, in our shape."""

    status = 400
    type = "invalid_request_error"
    anthropic_type = "invalid_request_error"
    code = "invalid_request"

    def __init__(self, message: str, *, status: int, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message, code=code, param=param)
        self.status = status


class _OpenAIError(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class _OpenAIBody(msgspec.Struct):
    error: _OpenAIError


class _AnthropicError(msgspec.Struct):
    type: str
    message: str


class _AnthropicBody(msgspec.Struct):
    type: str
    error: _AnthropicError
    request_id: str


def error_body(error: ZurelayError, endpoint: Endpoint, request_id: str) -> bytes:
    """Write the JSON body of an error in the endpoint's shape (SPEC 10)."""
    message = error.message.encode("utf-8", "replace").decode()  # a header that it quotes need not be UTF-8
    if endpoint is Endpoint.CHAT:
        shaped = _OpenAIError(message=message, type=error.type, param=error.param, code=error.code)
        return msgspec.json.encode(_OpenAIBody(error=shaped))
    inner = _AnthropicError(type=error.anthropic_type, message=message)
    return msgspec.json.encode(_AnthropicBody(type="error", error=inner, request_id=request_id))
