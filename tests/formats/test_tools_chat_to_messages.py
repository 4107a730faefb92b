"""Chat's tools, tool choices and formats for a Messages request."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats.fields import Fields
from zurelay.formats.tools_chat_to_messages import JSON_OBJECT, JSON_SCHEMA, Kit, translate

F = {"type": "function", "function": {"name": "f"}}
G = {"type": "function", "function": {"name": "g"}}
EMPTY = {"type": "object", "properties": {}}


def kit(used: tuple[str, ...] = (), **fields: Any) -> Kit:
    return translate(Fields(json.dumps(fields).encode(), named=True), used=used)


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


CHOICES: dict[str, tuple[dict[str, Any], Any]] = {
    "left out": ({}, None),
    "auto": ({"tool_choice": "auto"}, {"type": "auto"}),
    "none": ({"tool_choice": "none"}, {"type": "none"}),
    "required": ({"tool_choice": "required"}, {"type": "any"}),
    "named": ({"tool_choice": {"type": "function", "function": {"name": "g"}}}, {"type": "tool", "name": "g"}),
    "one at a time": ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
    "required, one at a time": (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"type": "any", "disable_parallel_tool_use": True},
    ),
    "none, one at a time": ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
    "at once, which is the default": ({"parallel_tool_calls": True}, None),
}


@pytest.mark.parametrize(("fields", "expected"), CHOICES.values(), ids=CHOICES)
def test_choices_are_mapped(fields: dict[str, Any], expected: Any) -> None:
    found = kit(tools=[F, G], **fields)

    assert expected == found.fields.get("tool_choice")
    assert found.forced == (expected is not None and expected["type"] in ("any", "tool"))


def test_allowed_tools_leave_only_those_in() -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}

    found = kit(tools=[F, G], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})

    assert [tool["name"] for tool in found.fields["tools"]] == ["g"]
    assert found.fields["tool_choice"] == {"type": "any"}


def test_allowed_tools_may_be_named_in_short() -> None:
    short = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "g"}]}}

    assert [tool["name"] for tool in kit(tools=[F, G], tool_choice=short).fields["tools"]] == ["g"]


def test_tools_that_were_called_are_defined_and_can_t_be_called_again() -> None:
    found = kit(used=("old", "older"))

    tools = [{"name": name, "input_schema": EMPTY} for name in ("old", "older")]
    assert {"tools": tools, "tool_choice": {"type": "none"}} == plain(found.fields)


def test_tools_that_are_given_stand_alone() -> None:
    assert [tool["name"] for tool in kit(used=("old",), tools=[F]).fields["tools"]] == ["f"]


SCHEMAS: dict[str, tuple[str, str]] = {
    "left out": ("", '{"type":"object","properties":{}}'),
    "null": (',"parameters":null', '{"type":"object","properties":{}}'),
    "as sent": (',"parameters":{"type" : "object","x":1.00}', '{"type" : "object","x":1.00}'),
    "without a type": (',"parameters":{ "x":1.00}', '{"type":"object","x":1.00}'),
    "empty": (',"parameters":{ }', '{"type":"object"}'),
}


@pytest.mark.parametrize(("parameters", "expected"), SCHEMAS.values(), ids=SCHEMAS)
def test_parameters_become_an_input_schema(parameters: str, expected: str) -> None:
    body = '{"tools":[{"type":"function","function":{"name":"f"' + parameters + "}}]}"

    found = translate(Fields(body.encode(), named=True), used=()).fields["tools"]

    assert f'[{{"name":"f","input_schema":{expected}}}]'.encode() == msgspec.json.encode(found)


def test_tools_of_messages_own_pass_as_sent() -> None:
    body = b'{"tools":[{"type" : "bash_20250124","name":"bash","x":1.00}]}'

    found = translate(Fields(body, named=True), used=()).fields["tools"]

    assert msgspec.json.encode(found) == b'[{"type" : "bash_20250124","name":"bash","x":1.00}]'


@pytest.mark.parametrize("where", ["tool", "function"])
def test_a_mark_for_the_cache_is_passed(where: str) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    tool = {**F, **mark} if where == "tool" else {"type": "function", "function": {"name": "f", **mark}}

    assert {"name": "f", "input_schema": EMPTY, **mark} == plain(kit(tools=[tool]).fields["tools"][0])


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "additionalProperties": {"type": "number"}}


def schema(**members: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", **members}}


FORMATS: dict[str, tuple[Any, Any, str]] = {
    "null": (None, None, ""),
    "text": ({"type": "text"}, None, ""),
    "json_object": ({"type": "json_object"}, None, JSON_OBJECT),
    "a strict schema": (schema(schema=OBJECT, strict=True), OBJECT, ""),
    "a schema that isn't": (schema(schema=OBJECT), OBJECT, ""),
    "with a description": (schema(schema=OBJECT, description="d"), {**OBJECT, "description": "d"}, ""),
    "no schema in it": (schema(description="d"), None, JSON_OBJECT),
    "an open one, which can't be compiled": (schema(schema=OPEN), None, JSON_SCHEMA + json.dumps(OPEN)),
    "an open one that is strict: the provider says no": (schema(schema=OPEN, strict=True), OPEN, ""),
}


@pytest.mark.parametrize(("wanted", "expected", "instruction"), FORMATS.values(), ids=FORMATS)
def test_formats_are_native_where_they_can_be(wanted: Any, expected: Any, instruction: str) -> None:
    found = kit(response_format=wanted)

    assert instruction == found.instruction
    assert (None if expected is None else {"type": "json_schema", "schema": expected}) == plain(found.format)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a custom tool": ({"tools": [F, {"type": "custom", "custom": {"name": "c"}}]}, "tools[1].type"),
    "a function that isn't described": ({"tools": [{"type": "function"}]}, "tools[0].function"),
    "one name twice": ({"tools": [F, F]}, "tools[1]"),
    "parameters that are no schema": (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]},
        "tools[0].function.parameters",
    ),
    "tools that are no list": ({"tools": {}}, "tools"),
    "a call of no tool": ({"tool_choice": "required"}, "tool_choice"),
    "a call of an unknown tool": (
        {"tools": [F], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice",
    ),
    "an unknown word": ({"tools": [F], "tool_choice": "maybe"}, "tool_choice"),
    "a custom choice": ({"tools": [F], "tool_choice": {"type": "custom", "custom": {"name": "f"}}}, "tool_choice"),
    "an allowed tool that isn't there": (
        {
            "tools": [F],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"name": "x"}]}},
        },
        "tool_choice",
    ),
    "an unknown format": ({"response_format": {"type": "xml"}}, "response_format"),
    "a json_schema without one": ({"response_format": {"type": "json_schema"}}, "response_format"),
    "a schema that is no object": ({"response_format": schema(schema=[1])}, "response_format.json_schema.schema"),
}


@pytest.mark.parametrize(("fields", "param"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_counterpart_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        kit(**fields)

    assert caught.value.param == param
