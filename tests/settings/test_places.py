from typing import Any

import msgspec
import pytest

from zurelay.settings import places
from zurelay.settings.places import At, Found
from zurelay.settings.scalars import flag, integer, text


class Pet(msgspec.Struct, frozen=True):
    """Something with a field that is needed and some that aren't."""

    name: str
    legs: int = 4
    tame: bool = False


PET: dict[str, places.Reader[Any]] = {"name": text, "legs": integer(0, 100), "tame": flag}


def pet(at: At) -> Pet:
    return places.struct(at, Pet, PET)


CASES = {
    "all keys": (pet, "{name: Rex, legs: 3, tame: true}", Pet("Rex", 3, True), []),
    "defaults": (pet, "name: Rex", Pet("Rex"), []),
    "null is left out": (pet, "{name: Rex, legs: null, tame: }", Pet("Rex"), []),
    "a key is missing": (pet, "legs: 3", None, ["line 1: name: missing; it has no default"]),
    "a needed key is null": (pet, "name: ~", None, ["line 1: name: missing; it has no default"]),
    "a broken key isn't missing": (pet, "name: [a]", None, ["line 1: name: expected text, not a list"]),
    "an unknown key with a near one": (
        pet,
        "{name: Rex, leg: 3}",
        Pet("Rex"),
        ["line 1: leg: unknown key; did you mean legs?"],
    ),
    "an unknown key": (
        pet,
        "{name: Rex, x: 3}",
        Pet("Rex"),
        ["line 1: x: unknown key; the keys here are name, legs, tame"],
    ),
    "a list": (pet, "[]", None, ["line 1: expected a mapping, not a list"]),
    "everything wrong": (
        pet,
        "lags: 3\nlegs: x\ntame: 1",
        None,
        [
            "line 1: lags: unknown key; did you mean legs?",
            "line 2: legs: expected a number, not text",
            "line 3: tame: expected true or false, not a number",
            "line 1: name: missing; it has no default",
        ],
    ),
    "a list of text": (places.each(text), "[a, b]", ("a", "b"), []),
    "an empty list": (places.each(text), "[]", (), []),
    "twice in a list": (places.each(text), "- a\n- b\n- a", ("a", "b", "a"), ["line 3: [2]: said twice in this list"]),
    "twice where it may be": (places.each(text, repeats=True), "[a, a]", ("a", "a"), []),
    "broken items": (
        places.each(text),
        "- []\n- b\n- {}",
        None,
        ["line 1: [0]: expected text, not a list", "line 3: [2]: expected text, not a mapping"],
    ),
    "no list": (places.each(text), "a: b", None, ["line 1: expected a list, not a mapping"]),
    "a mapping of text": (places.mapped(lambda key, at: key + text(at)), "{a: b, c: d}", {"a": "ab", "c": "cd"}, []),
    "a broken mapping": (
        places.mapped(lambda _, at: text(at)),
        "a: b\nc: []",
        None,
        ["line 2: c: expected text, not a list"],
    ),
}


@pytest.mark.parametrize(("reader", "yaml", "value", "problems"), CASES.values(), ids=CASES)
def test_a_place_is_read(read_one: Any, reader: Any, yaml: str, value: object, problems: list[str]) -> None:
    assert (value, problems) == read_one(reader, yaml)


def test_what_could_be_read_is_there_though_something_else_is_broken(read_one: Any) -> None:
    found, _ = read_one(lambda at: Found(at, PET), "{legs: 3, tame: 7}")

    assert (found.values, found.whole) == ({"legs": 3}, False)


def test_a_place_names_the_way_to_it(read_one: Any) -> None:
    path, _ = read_one(lambda at: list(at.key("a").items())[1].key("b").path, "a: [x, {b: c}]")

    assert path == "a[1].b"


def test_a_key_that_is_left_out_is_null_at_the_line_of_its_mapping(read_one: Any) -> None:
    place, _ = read_one(lambda at: at.key("a").key("c"), "x: y\na:\n  b: 1")

    assert (place.line, place.path, place.has("d")) == (2, "a.c", False)
