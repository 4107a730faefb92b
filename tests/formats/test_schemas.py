"""JSON schemas for the other provider."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.sdk import JSON
from zurelay.formats import schemas

OBJECT = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(value.encode() if isinstance(value, str) else json.dumps(value).encode())


FIT = {
    "nothing to do": ('{"type":"string"}', '{"type":"string"}'),
    "true": ("true", "true"),
    "an object is closed": (
        '{"type":"object","properties":{}}',
        '{"type":"object","properties":{},"additionalProperties":false}',
    ),
    "properties make an object": (
        '{"properties":{"a":{"properties":{}}}}',
        '{"properties":{"a":{"properties":{},"additionalProperties":false}},"additionalProperties":false}',
    ),
    "a bound is told": (
        '{"type":"number","minimum":1.50}',
        '{"type":"number","description":"(minimum: 1.50)"}',
    ),
    "behind the description": (
        '{"description":"Age","maximum":9,"minimum":1}',
        '{"description":"Age\\n\\n(minimum: 1, maximum: 9)"}',
    ),
    "a description that is none": ('{"description":3,"maximum":9}', '{"description":"(maximum: 9)"}'),
    "one item is taken": ('{"type":"array","minItems":1}', '{"type":"array","minItems":1}'),
    "more aren't": ('{"type":"array","minItems":2}', '{"type":"array","description":"(minItems: 2)"}'),
    "oneOf is anyOf": ('{"oneOf":[{"type":"null"}]}', '{"anyOf":[{"type":"null"}]}'),
    "a property may have a bound's name": (
        '{"properties":{"minimum":{"const":1e400}},"additionalProperties":false}',
        '{"properties":{"minimum":{"const":1e400}},"additionalProperties":false}',
    ),
    "inside lists and definitions": (
        '{"$defs":{"x":{"maxLength":1}},"items":[{"maximum":2}],"not":true}',
        '{"$defs":{"x":{"description":"(maxLength: 1)"}},"items":[{"description":"(maximum: 2)"}],"not":true}',
    ),
}


@pytest.mark.parametrize(("schema", "expected"), FIT.values(), ids=FIT)
def test_schemas_are_fitted(schema: str, expected: str) -> None:
    assert expected == bytes(schemas.fit(raw(schema))).decode()


def test_a_strict_schema_without_bounds_keeps_every_byte() -> None:
    schema = raw('{ "type" : "object", "properties":{"a":{"type":"object"}} }')

    assert schemas.fit_strict(schema) is schema


def test_a_strict_schema_s_bounds_are_told() -> None:
    found = schemas.fit_strict(raw({**OBJECT, "properties": {"a": {"type": "integer", "minimum": 1}}}))

    assert json.loads(bytes(found))["properties"]["a"] == {"type": "integer", "description": "(minimum: 1)"}


OPEN: dict[str, tuple[Any, bool]] = {
    "closed": (OBJECT, False),
    "says nothing of others": ({"type": "object", "properties": {}}, False),
    "takes any": ({"type": "object", "properties": {}, "additionalProperties": True}, True),
    "a map": ({"type": "object", "additionalProperties": {"type": "string"}}, True),
    "an object of whatever": ({"type": "object"}, True),
    "inside": ({**OBJECT, "properties": {"a": {"items": {"type": "object"}}}}, True),
    "true": (True, False),
    "numbers that can't be held": ('{"const":1e400}', False),
}


@pytest.mark.parametrize(("schema", "expected"), OPEN.values(), ids=OPEN)
def test_open_objects_are_found(schema: Any, expected: bool) -> None:
    assert expected == schemas.is_open(raw(schema))


STRICT: dict[str, tuple[Any, bool]] = {
    "strict": (OBJECT, True),
    "with objects inside": ({**OBJECT, "properties": {"a": {"anyOf": [OBJECT, {"type": "null"}]}}}, True),
    "open": ({**OBJECT, "additionalProperties": True}, False),
    "not closed": ({"type": "object", "properties": {}}, False),
    "an optional property": ({**OBJECT, "required": []}, False),
    "an optional property inside": ({**OBJECT, "properties": {"a": {**OBJECT, "required": []}}}, False),
    "required that is no list": ({**OBJECT, "required": "a"}, False),
    "required of numbers": ({**OBJECT, "required": [1]}, False),
    "a keyword that it hasn't": ({**OBJECT, "properties": {"a": {"oneOf": []}}}, False),
    "no object": ({"type": "string"}, False),
    "true": (True, False),
    "numbers that can't be held": ('{"const":1e400}', False),
}


@pytest.mark.parametrize(("schema", "expected"), STRICT.values(), ids=STRICT)
def test_schemas_for_openai_s_strict_mode_are_found(schema: Any, expected: bool) -> None:
    assert expected == schemas.is_strict(raw(schema))


DESCRIBED: dict[str, tuple[Any, str, Any]] = {
    "without one": ({"type": "null"}, "d", {"type": "null", "description": "d"}),
    "with one": ({"description": "own"}, "d", {"description": "own"}),
    "nothing to say": ({}, "", {}),
    "true": (True, "d", True),
}


@pytest.mark.parametrize(("schema", "text", "expected"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_description_is_added_where_there_is_none(schema: Any, text: str, expected: Any) -> None:
    assert expected == json.loads(bytes(schemas.described(raw(schema), text)))


KEYS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "oneOf", "$defs", "minimum", "required", "additionalProperties"]
)
ANY = st.recursive(
    JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=2), max_leaves=12
)


@settings(max_examples=60, deadline=None)
@given(ANY)
def test_fitting_is_done_once(schema: Any) -> None:
    once = schemas.fit(raw(schema))

    assert bytes(once) == bytes(schemas.fit(once)) == bytes(schemas.fit_strict(once))
    assert isinstance(schemas.is_open(raw(schema)), bool)
    assert isinstance(schemas.is_strict(raw(schema)), bool)


def test_levels_without_end_are_left_as_sent() -> None:
    deep = '{"items":' * 250 + "{}" + "}" * 250

    assert json.loads(bytes(schemas.fit(raw(deep)))) == json.loads(deep)
