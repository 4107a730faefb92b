"""How a streamed request fails: an error as a header's value and back, and the relay's own errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import failure
from zurelay.errors import (
    GatewayUnavailable,
    InvalidRequest,
    ModelUnavailable,
    ProviderRefusal,
    ZurelayError,
)

ERRORS = {
    "every attempt failed": ModelUnavailable("All 3 attempts failed.", retry_after=7, should_retry=False),
    "too long": InvalidRequest("Too long.", code="context_length_exceeded", param="messages"),
    "a provider's refusal": ProviderRefusal("temperature is 3", status=422, code="bad_value", param="temperature"),
    "a refusal without a code": ProviderRefusal("no", status=402),
    "in any writing": ProviderRefusal("模型 ✅ \u2028 \r\n x: y", status=400),
    "with control characters": ProviderRefusal("\x00 \x1b \x7f \x9f", status=400),
}


def facts(error: ZurelayError) -> tuple[object, ...]:
    return (type(error), error.message, error.status, error.code, error.param, error.retry_after, error.should_retry)


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in ERRORS.items()])
def test_an_error_comes_back_as_it_went(error: ZurelayError) -> None:
    assert facts(error) == facts(failure.decode(failure.encode(error)))


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in ERRORS.items()])
def test_a_header_holds_any_error(error: ZurelayError) -> None:
    assert failure.encode(error).isascii()
    assert failure.encode(error).isprintable()


@given(st.text(max_size=300))
def test_a_header_holds_any_message(text: str) -> None:
    written = failure.encode(ProviderRefusal(text, status=400))
    assert written.isascii()
    assert written.isprintable()
    assert text == failure.decode(written).message


def test_the_longest_message_fits_a_header() -> None:
    assert len(failure.encode(ProviderRefusal("\U0001f600" * 2_000, status=400))) < 32 << 10


LOCAL = {
    "the last attempt's wait": ("17", True, ModelUnavailable, 17),
    "no attempt said how long": ("-", True, ModelUnavailable, 5),
    "longer than a minute": ("86400", True, ModelUnavailable, 60),
    "no wait at all": ("0", True, ModelUnavailable, 1),
    "digits of another script": ("٣", True, ModelUnavailable, 5),
    "a timeout": (None, True, ModelUnavailable, 5),
    "our own listener": (None, False, GatewayUnavailable, 5),
    "an attempt's worker is gone": ("1", False, GatewayUnavailable, 1),
}


@pytest.mark.parametrize(
    ("header", "tried", "kind", "wait"), [pytest.param(*row, id=name) for name, row in LOCAL.items()]
)
def test_envoys_own_answer_becomes_an_error(
    header: str | None, kind: type[ZurelayError], wait: int, *, tried: bool
) -> None:
    error = failure.of_local_reply(header, tried=tried)
    assert (kind, 503, wait) == (type(error), error.status, error.retry_after)


def test_a_full_plan_that_failed_is_not_to_be_retried_at_once() -> None:
    assert failure.of_local_reply("5", tried=True).should_retry is False
    assert failure.of_local_reply("1", tried=False).should_retry is None


OWN = {
    "lost": failure.lost(),
    "timed out": failure.timed_out(),
    "stalled": failure.stalled(),
    "broken": failure.broken(),
    "unread": failure.unread(64),
}


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in OWN.items()])
def test_the_relays_errors_say_when_to_ask_again(error: ZurelayError) -> None:
    assert (503, "model_unavailable", 5) == (error.status, error.code, error.retry_after)


def test_the_providers_words_are_passed_on() -> None:
    said = "The model's answer broke off. Try again. The provider said: overloaded"
    assert said == failure.broken("overloaded").message
    assert failure.broken().message == "The model's answer broke off. Try again."
