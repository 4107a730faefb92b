"""The events of a Messages stream, as they are read."""

from __future__ import annotations

import pytest

from zurelay.formats import BadAnswer
from zurelay.formats.messages_events import read

KNOWN = {
    "by its type": ("", b'{"type":"message_stop"}', "message_stop"),
    "its type before its name": ("ping", b'{"type":"message_stop"}', "message_stop"),
    "by its name": ("message_stop", b"{}", "message_stop"),
    "an error": ("", b'{"type":"error","error":{}}', "error"),
    "an error without a type": ("message", b'{"error":"broken"}', "error"),
}


@pytest.mark.parametrize(("name", "data", "kind"), KNOWN.values(), ids=KNOWN)
def test_an_event_is_known_by_its_type_or_name(name: str, data: bytes, kind: str) -> None:
    event = read(name, data)

    assert event is not None
    assert event.type == kind


UNKNOWN = {
    "a ping": ("ping", b'{"type":"ping"}'),
    "a type to come": ("x", b'{"type":"x"}'),
    "a type to come, with members of other types": ("x", b'{"type":"x","index":"a","delta":3,"usage":[]}'),
    "a delta to come": ("", b'{"type":"content_block_delta","index":0,"delta":{"type":"glow_delta","text":3}}'),
}


@pytest.mark.parametrize(("name", "data"), UNKNOWN.values(), ids=UNKNOWN)
def test_events_that_we_don_t_know_are_passed_over(name: str, data: bytes) -> None:
    event = read(name, data)

    assert event is None or event.delta is None


BAD = {
    "a known type with a member of another type": b'{"type":"content_block_stop","index":"a"}',
    "a known delta with a member of another type": (
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":3}}'
    ),
    "a type that is a number": b'{"type":3}',
    "no object": b"[]",
    "no JSON": b"{",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_none_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(BadAnswer, match=r"^an event: "):
        read("", data)
