"""Tool arguments as chat and Messages have them."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.formats import arguments

INPUTS = {
    "an object, as written": ('{ "a": 1.00 }', b'{ "a": 1.00 }'),
    "nothing": ("", b"{}"),
    "blank": (" \n", b"{}"),
    "cut short": ('{"a"', b'{"invalid_arguments":"{\\"a\\""}'),
    "a list": ("[]", b'{"invalid_arguments":"[]"}'),
    "null": ("null", b'{"invalid_arguments":"null"}'),
    "half of a surrogate pair": ('{"a":"\\ud800"}', b'{"invalid_arguments":"{\\"a\\":\\"\\\\ud800\\"}"}'),
    "no end": ('{"a":' * 100_000, None),
}


@pytest.mark.parametrize(("text", "expected"), INPUTS.values(), ids=INPUTS)
def test_arguments_become_an_input(text: str, expected: bytes | None) -> None:
    found = bytes(arguments.to_input(text))

    assert found == expected if expected is not None else json.loads(found) == {"invalid_arguments": text}


ARGUMENTS = {
    "as written": (b'{ "a": 1.00 }', '{ "a": 1.00 }'),
    "nothing": (b"", "{}"),
    "null": (b"null", "{}"),
    "a key of ours beside others": (b'{"invalid_arguments":"x","b":"y"}', '{"invalid_arguments":"x","b":"y"}'),
    "a key of ours with a number": (b'{"invalid_arguments":1}', '{"invalid_arguments":1}'),
}


@pytest.mark.parametrize(("raw", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_an_input_becomes_arguments(raw: bytes, expected: str) -> None:
    assert expected == arguments.to_arguments(msgspec.Raw(raw))


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: not text.isspace()))
def test_arguments_come_back_whatever_they_were(text: str) -> None:
    assert text == arguments.to_arguments(arguments.to_input(text))
