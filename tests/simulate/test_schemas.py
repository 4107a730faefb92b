from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.simulate.schemas import fill

NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["value", "next"],
}
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name", "children"],
}

FILLED = {
    "anything": (True, "hint"),
    "nothing said": ({}, "hint"),
    "string": ({"type": "string"}, "hint"),
    "integer": ({"type": "integer"}, 1),
    "number": ({"type": "number"}, 1.0),
    "boolean": ({"type": "boolean"}, True),
    "null": ({"type": "null"}, None),
    "const": ({"const": {"a": [1]}}, {"a": [1]}),
    "enum": ({"type": "string", "enum": ["x", "y"]}, "x"),
    "several types": ({"type": ["null", "integer"]}, 1),
    "least": ({"type": "integer", "minimum": 7}, 7),
    "more than": ({"type": "integer", "exclusiveMinimum": 7}, 8),
    "at most": ({"type": "integer", "maximum": -3}, -3),
    "less than": ({"type": "integer", "exclusiveMaximum": -3}, -4),
    "multiple": ({"type": "integer", "minimum": 11, "multipleOf": 5}, 15),
    "between": ({"type": "number", "minimum": 0, "maximum": 1}, 0.1),
    "long": ({"type": "string", "minLength": 6}, "hint.."),
    "short": ({"type": "string", "maxLength": 2}, "hi"),
    "date": ({"type": "string", "format": "date"}, "2026-01-02"),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"}, "ABC-123"),
    "object": ({"properties": {"a": {"type": "integer"}, "b": {}}}, {"a": 1, "b": "hint"}),
    "required without a property": ({"type": "object", "required": ["a"]}, {"a": "hint"}),
    "array": ({"type": "array", "items": {"type": "string"}}, ["hint"]),
    "three": ({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3}, [1, 2, 3]),
    "none": ({"type": "array", "items": {"type": "string"}, "maxItems": 0}, []),
    "tuple": ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]}, [1, 2]),
    "anyOf": ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
    "oneOf with a base": (
        {"type": "object", "properties": {"a": {"const": 1}}, "oneOf": [{"required": ["a"]}]},
        {"a": 1},
    ),
    "allOf": (
        {"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}], "required": ["a", "b"]},
        {"a": 1, "b": 2},
    ),
    "reference": ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 4}}}, 4),
    "reference to nowhere": ({"$ref": "#/$defs/a"}, "hint"),
    "reference to itself": ({"$ref": "#"}, None),
    "linked list": (
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        {"value": 1, "next": {"value": 1, "next": {"value": 1, "next": None}}},
    ),
    "tree": (TREE, {"name": "hint", "children": [{"name": "hint", "children": [{"name": "hint", "children": []}]}]}),
}


@pytest.mark.parametrize("name", FILLED)
def test_a_schema_is_filled_with_the_nearest_value(name: str) -> None:
    schema, expected = FILLED[name]
    assert expected == fill(schema, "hint")


SIZES = st.integers(0, 9)
BOUNDS = st.integers(-100, 100)
LEAVES = st.one_of(
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, BOUNDS, st.integers(0, 9)),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low}, BOUNDS),
    st.builds(lambda high: {"type": "integer", "exclusiveMaximum": high}, BOUNDS),
    st.builds(
        lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more}, *[st.integers(0, 9)] * 2
    ),
    st.sampled_from(
        [{"type": "boolean"}, {"type": "null"}, {"enum": ["a", 2, None]}, {"const": [1]}, {"type": "string"}]
    ),
)
NAMES = st.sampled_from(["a", "b", "c d", "é"])


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _array(item: Any, least: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": least, "maxItems": least + 1}


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, max_size=3).map(_object),
        st.builds(_array, inner, st.integers(0, 3)),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
    ),
    max_leaves=12,
)


@given(schema=SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_what_fills_a_schema_fits_it(schema: dict[str, Any]) -> None:
    assert list(faults(schema, fill(schema, "hint"))) == []


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    """Check by the rules that the strategies use."""
    if "anyOf" in schema:
        return [] if any(not faults(branch, value) for branch in schema["anyOf"]) else ["anyOf"]
    if "const" in schema or "enum" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else ["enum"]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": int | float,
        "boolean": bool,
        "null": None.__class__,
    }
    if not isinstance(value, kinds[schema["type"]]):
        return [f"{value!r} is no {schema['type']}"]
    if isinstance(value, dict):
        inner = [said for name, one in value.items() for said in faults(schema["properties"][name], one)]
        return [*inner, *(set(schema["required"]) - set(value))]
    if isinstance(value, list):
        inner = [said for one in value for said in faults(schema["items"], one)]
        return inner if schema["minItems"] <= len(value) <= schema["maxItems"] else [*inner, "length"]
    if isinstance(value, str):
        return [] if schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 99) else ["length"]
    if isinstance(value, bool) or value is None:
        return []
    inside = schema.get("minimum", -1e9) <= value <= schema.get("maximum", 1e9)
    return (
        []
        if inside and schema.get("exclusiveMinimum", -1e9) < value < schema.get("exclusiveMaximum", 1e9)
        else ["bound"]
    )


NO_SCHEMAS: dict[str, tuple[Any, Any]] = {
    "a number": (1, None),
    "nothing": (None, None),
    "a list": ([], None),
    "an unknown type": ({"type": 5}, "hint"),
    "a broken pattern": ({"pattern": "("}, "hint"),
    "a property that is no schema": ({"properties": {"a": 1}}, {"a": None}),
}


@pytest.mark.parametrize("name", NO_SCHEMAS)
def test_what_is_no_schema_gives_some_value(name: str) -> None:
    schema, expected = NO_SCHEMAS[name]
    assert expected == fill(schema, "hint")
