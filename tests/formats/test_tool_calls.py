"""Tool calls that come in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from zurelay.formats.chat_answers import Call, Function
from zurelay.formats.tool_calls import ToolCalls


def piece(index: int | None, arguments: Any = None, id: str | None = None, name: str | None = None) -> Call:
    return Call(index, id, Function(name, arguments))


PIECES: dict[str, tuple[list[Call], list[tuple[str, str, str]]]] = {
    "in order": ([piece(0, "{", "a", "f"), piece(0, "}")], [("a", "f", "{}")]),
    "mixed": ([piece(0, "1", "a", "f"), piece(1, "2", "b", "g"), piece(0, "3")], [("a", "f", "13"), ("b", "g", "2")]),
    "numbered from 1": ([piece(1, "1", "a", "f"), piece(1, "2")], [("a", "f", "12")]),
    "all numbered 0": (
        [piece(0, "1", "a", "f"), piece(0, "2", "b", "g"), piece(0, "3")],
        [("a", "f", "1"), ("b", "g", "23")],
    ),
    "back to an earlier id": (
        [piece(0, "1", "a", "f"), piece(0, "2", "b", "g"), piece(0, "3", "a")],
        [("a", "f", "13"), ("b", "g", "2")],
    ),
    "not numbered": (
        [piece(None, "1", "a", "f"), piece(None, "2"), piece(None, "3", "b", "g")],
        [("a", "f", "12"), ("b", "g", "3")],
    ),
    "no function": ([Call(0, "a"), piece(0, "1", None, "f")], [("a", "f", "1")]),
    "an object": ([piece(0, {"x": 1}, "a", "f")], [("a", "f", '{"x":1}')]),
}


@pytest.mark.parametrize(("pieces", "expected"), PIECES.values(), ids=PIECES)
def test_pieces_find_their_call(pieces: list[Call], expected: list[tuple[str, str, str]]) -> None:
    calls = ToolCalls()
    for each in pieces:
        calls.add(each)

    assert expected == [(call.id, call.name, "".join(call.pieces)) for call in calls.waiting()]


@pytest.mark.parametrize(
    ("text", "whole"), {"": False, "{": False, "{}": True, '{"a": 1} \n': True, "[]": False, "}": False}.items()
)
def test_a_call_is_whole_when_its_arguments_make_an_object(text: str, whole: bool) -> None:
    calls = ToolCalls()
    calls.add(piece(0, text, "a", "f"))

    assert whole == calls.waiting()[0].whole


def test_a_piece_goes_out_once() -> None:
    calls = ToolCalls()
    calls.add(piece(0, "1", "a", "f"))
    (call,) = calls.waiting()

    assert call.unsent() == ["1"]
    calls.add(piece(0, "2"))
    assert call.unsent() == ["2"]
    assert call.unsent() == []


def test_a_shut_call_waits_no_more() -> None:
    calls = ToolCalls()
    assert not calls
    calls.add(piece(0, "1", "a", "f"))
    calls.add(piece(1, "1", "b", "f"))
    first, second = calls.waiting()

    first.shut = True

    assert calls
    assert calls.waiting() == [second]
    assert (calls.is_last(first), calls.is_last(second)) == (False, True)
