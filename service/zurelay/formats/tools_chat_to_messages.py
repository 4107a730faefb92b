"""Chat's tools, tool_choice and response_format for a Messages request.

Functions become tools; a strict one has its schema fitted (see `schemas`). Tools of a type of Messages' own
(`web_search_...`) pass as sent. `required` is `any`; `allowed_tools` leaves only those tools in; parallel_tool_calls
false is disable_parallel_tool_use. `json_schema` is output_config.format. `json_object`, which Messages has no
counterpart of, and loose schemas that its structured output can't take become a sentence of the system prompt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.formats import schemas
from zurelay.formats.fields import FLAG, Fields

JSON_OBJECT = "Answer with a single JSON object and nothing else: no words around it, no code fence."
JSON_SCHEMA = (
    "Answer with a single JSON value that matches this JSON Schema, and nothing else: "
    "no words around it, no code fence.\n"
)

_NO_PARAMETERS = msgspec.Raw(b'{"type":"object","properties":{}}')


class Kit(msgspec.Struct):
    """What the request gets: fields, an output format, a sentence for the system prompt; if a tool must be called."""

    fields: dict[str, Any] = {}
    format: dict[str, Any] | None = None
    instruction: str = ""
    forced: bool = False


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: msgspec.Raw = msgspec.Raw()
    strict: bool | None = None
    cache_control: msgspec.Raw = msgspec.Raw()


class _Tool(msgspec.Struct):
    type: str
    function: _Function | None = None
    name: str | None = None
    cache_control: msgspec.Raw = msgspec.Raw()


class _Named(msgspec.Struct):
    name: str


class _AllowedTool(msgspec.Struct):
    type: str = "function"
    function: _Named | None = None
    name: str | None = None


class _Allowed(msgspec.Struct):
    mode: str
    tools: list[_AllowedTool]


class _Choice(msgspec.Struct):
    type: str
    function: _Named | None = None
    allowed_tools: _Allowed | None = None


class _Schema(msgspec.Struct):
    schema: msgspec.Raw = msgspec.Raw()
    description: str | None = None
    strict: bool | None = None


class _Format(msgspec.Struct):
    type: str
    json_schema: _Schema | None = None


class _Head(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw()


_TOOLS: msgspec.json.Decoder[list[_Tool]] = msgspec.json.Decoder(list[_Tool])
_RAW_TOOLS = msgspec.json.Decoder(list[msgspec.Raw])
_CHOICE = msgspec.json.Decoder(str | _Choice)
_FORMAT = msgspec.json.Decoder(_Format)
_HEAD = msgspec.json.Decoder(_Head)


def translate(fields: Fields, *, used: Iterable[str]) -> Kit:
    """Take the fields about tools and formats; `used` are the tools that the conversation has called so far."""
    kit = Kit(fields={})
    found = _tools(fields)
    choice = _choice(fields, found)
    parallel = fields.take("parallel_tool_calls", FLAG)
    if not found:
        # Messages wants every tool that was called to be defined; with `none` the model can't call what isn't there.
        found = {name: {"name": name, "input_schema": _NO_PARAMETERS} for name in used}
        choice = {"type": "none"} if found else None
    if found:
        kit.fields["tools"] = list(found.values())
        if parallel is False and (choice is None or choice["type"] != "none"):
            choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
        if choice is not None:
            kit.fields["tool_choice"] = choice
            kit.forced = choice["type"] in ("any", "tool")
    _format(fields, kit)
    return kit


def _tools(fields: Fields) -> dict[str, Any]:
    """Give the tools by name, in order."""
    raws = fields.take("tools", _RAW_TOOLS) or []
    found: dict[str, Any] = {}
    tools = fields.take("tools", _TOOLS) or []
    for index, (tool, raw) in enumerate(zip(tools, raws, strict=True)):
        place = f"tools[{index}]"
        if tool.type == "custom":
            raise InvalidRequest(
                f"`{place}` is a custom tool, which this model doesn't have: send a function.", param=f"{place}.type"
            )
        if tool.type == "function" and tool.function is None:
            raise InvalidRequest(f"`{place}` has no function: describe one.", param=f"{place}.function")
        name = tool.function.name if tool.function is not None else tool.name or tool.type
        if name in found:
            raise InvalidRequest(f"`{place}` has the name of another tool, {name[:64]!r}: rename one.", param=place)
        found[name] = raw if tool.function is None else _tool(tool.function, tool.cache_control, place)
    return found


def _tool(function: _Function, cache_control: msgspec.Raw, place: str) -> dict[str, Any]:
    schema = _input_schema(function.parameters, f"{place}.function.parameters")
    out: dict[str, Any] = {"name": function.name}
    if function.description:
        out["description"] = function.description
    out["input_schema"] = schemas.fit_strict(schema) if function.strict else schema
    if function.strict:
        out["strict"] = True
    cache = cache_control or function.cache_control
    if _given(cache):
        out["cache_control"] = cache
    return out


def _given(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"


def _input_schema(parameters: msgspec.Raw, place: str) -> msgspec.Raw:
    """Give a tool's schema as sent, but that Messages wants `"type": "object"` in it."""
    if not _given(parameters):
        return _NO_PARAMETERS
    if not schemas.schema_is_object(parameters):
        raise InvalidRequest(f"`{place}` must be a JSON schema: an object.", param=place)
    if _HEAD.decode(parameters).type:
        return parameters
    inner = bytes(parameters)[1:].lstrip()
    return msgspec.Raw(b'{"type":"object"' + (b"" if inner == b"}" else b",") + inner)


def _choice(fields: Fields, tools: dict[str, Any]) -> dict[str, Any] | None:
    """Translate tool_choice; the tools that it doesn't allow go out of `tools`."""
    choice = fields.take("tool_choice", _CHOICE)
    if choice is None:
        return None
    if choice == "none" or (choice == "auto" and not tools):
        return {"type": "none"} if tools else None
    if not tools:
        raise InvalidRequest("`tool_choice` wants a call but there are no `tools`: send them.", param="tool_choice")
    if isinstance(choice, str):
        return {"type": _mode(choice)}
    if choice.type == "function" and choice.function is not None:
        return {"type": "tool", "name": _known(choice.function.name, tools)}
    if choice.type == "allowed_tools" and choice.allowed_tools is not None:
        names = {_known(_allowed_name(tool), tools) for tool in choice.allowed_tools.tools}
        for name in [name for name in tools if name not in names]:
            del tools[name]
        return {"type": _mode(choice.allowed_tools.mode)} if tools else None
    raise InvalidRequest(
        f"`tool_choice` of type {choice.type[:40]!r} can't be had here: name a function, or send auto, none, required.",
        param="tool_choice",
    )


def _mode(word: str) -> str:
    if word == "auto":
        return "auto"
    if word == "required":
        return "any"
    raise InvalidRequest(f"`tool_choice` {word[:40]!r} isn't one of auto, none, required.", param="tool_choice")


def _allowed_name(tool: _AllowedTool) -> str:
    return tool.function.name if tool.function is not None else tool.name or ""


def _known(name: str, tools: dict[str, Any]) -> str:
    if name in tools:
        return name
    raise InvalidRequest(f"`tool_choice` names {name[:64]!r}, which isn't among the `tools`.", param="tool_choice")


def _format(fields: Fields, kit: Kit) -> None:
    wanted = fields.take("response_format", _FORMAT)
    if wanted is None or wanted.type == "text":
        return
    if wanted.type == "json_object":
        kit.instruction = JSON_OBJECT
    elif wanted.type == "json_schema" and wanted.json_schema is not None:
        _json_schema(wanted.json_schema, kit)
    else:
        raise InvalidRequest(
            "`response_format` must be text, json_object, or json_schema with a json_schema.", param="response_format"
        )


def _json_schema(wanted: _Schema, kit: Kit) -> None:
    if not _given(wanted.schema):
        kit.instruction = JSON_OBJECT
        return
    if not schemas.schema_is_object(wanted.schema):
        param = "response_format.json_schema.schema"
        raise InvalidRequest(f"`{param}` must be a JSON schema: an object.", param=param)
    if not wanted.strict and schemas.is_open(wanted.schema):
        kit.instruction = JSON_SCHEMA + bytes(wanted.schema).decode()
        return
    schema = schemas.fit_strict(wanted.schema) if wanted.strict else schemas.fit(wanted.schema)
    kit.format = {"type": "json_schema", "schema": schemas.described(schema, wanted.description or "")}
