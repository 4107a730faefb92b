"""Errors that providers send where an answer should be."""

from __future__ import annotations

import pytest

from zurelay.formats import Failure, FailureKind, failures

READ = {
    "Anthropic's": (
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "Overloaded",
        "overloaded_error",
    ),
    "OpenAI's": (b'{"error":{"message":"Slow down","type":"requests","code":"rate_limit"}}', "Slow down", "rate_limit"),
    "a word": (b'{"error":"broken"}', "broken", None),
    "no shape that we know": (b'{"error":{"x":1}}', "", None),
    "no JSON": (b"<html>", "", None),
    "not UTF-8": (b'{"error":{"type":"\xff"}}', "", None),
    "deep": (b"[" * 100_000, "", None),
}


@pytest.mark.parametrize(("data", "message", "code"), READ.values(), ids=READ)
def test_an_error_event_is_read(data: bytes, message: str, code: str | None) -> None:
    assert Failure(kind=FailureKind.ERROR, message=message, code=code) == failures.failure(data)


def test_a_complaint_is_the_provider_s_own_where_it_has_one() -> None:
    assert failures.complaint(b'{"error":"broken"}', ValueError("x")) == "an error: broken"
    assert failures.complaint(b"{", ValueError("x")) == "the answer: x"
