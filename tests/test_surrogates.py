from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document
from zurelay.surrogates import edited, hidden, shown

HALVES = {
    "the first half": rb'"\ud83d"',
    "the second half": rb'"\ude00"',
    "in capitals": rb'"\uD83D \uDe00 x"',
    "a pair": rb'"\ud83d\ude00"',
    "a pair the wrong way round": rb'"\ude00\ud83d"',
    "what only looks like one": rb'"\\ud83d"',
    "one behind a backslash": rb'"\\\ud83d"',
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in HALVES.items()])
def test_what_is_hidden_can_be_read_and_comes_back(data: bytes) -> None:
    found = hidden(data)
    assert found is not None
    msgspec.json.decode(found)
    assert data == shown(found)


@pytest.mark.parametrize("data", [b'"a"', rb'"\u00e9\n"', rb'"\ud83d \ue83d"', rb'"\uEfff"', b""])
def test_where_nothing_can_be_hidden_nothing_is(data: bytes) -> None:
    assert hidden(data) is None


@given(st.lists(st.sampled_from([rb"\ud83d", rb"\uDE00", rb"\\", b"ud83d", rb"\u00e9", rb"\ue000", b"x", rb"\uE83D"])))
def test_hiding_is_undone_and_moves_nothing(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    found = hidden(data)
    assert found is None or (shown(found), len(found)) == (data, len(data))


def test_a_field_is_changed_around_halves() -> None:
    data = rb'{"text":"\ud83d","model":"x"}'
    found = edited(data, lambda one: Document.parse(one).edit({"model": b'"y"'}))
    assert found == rb'{"text":"\ud83d","model":"y"}'


def test_what_is_wrong_otherwise_stays_wrong() -> None:
    for data in (b"{", rb'{"\ud83d"', b"[]"):
        with pytest.raises(InvalidRequest):
            edited(data, lambda one: Document.parse(one).edit({}))
