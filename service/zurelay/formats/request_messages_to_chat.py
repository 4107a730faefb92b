"""A Messages request, written as a Chat Completions request (SPEC 3, 4, 9).

| Messages field | at an OpenAI-format provider |
| --- | --- |
| system, messages | see `turns_messages_to_chat` |
| tools | functions; a provider's own tools (web_search_..., bash_...) unmapped |
| tool_choice | any: required; disable_parallel_tool_use: parallel_tool_calls false |
| output_config.format, output_format | response_format json_schema; strict where OpenAI's strict mode takes it |
| output_config.effort, thinking | by Target.effort: reasoning_effort |
| max_tokens | kept; a catalog's `params` renames it for a provider that wants max_completion_tokens |
| stop_sequences | stop; more than 4 unmapped |
| temperature, top_p, stream | kept; a stream is asked for its usage |
| metadata.user_id | user |
| service_tier | standard_only: default |
| context_management | edits that clear thinking need nothing done; others unmapped |
| container, mcp_servers, inference_geo, speed, top_k, user_profile_id, workspace_id | unmapped |
| cache_control, diagnostics | left out: they change no word of the answer |
| any other | passes to a named model, so chat's own fields (seed, ...) can be used |

Unmapped: a 400 that names the field for a model that the client named, dropped for another.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.formats import schemas
from zurelay.formats import turns_messages_to_chat as turns
from zurelay.formats.contract import Target
from zurelay.formats.fields import ANY, COUNT, FLAG, OBJECT, Fields, Neutral
from zurelay.jsonedit import Document

MOST_STOPS = 4
"""Stop sequences that OpenAI takes."""

_UNMAPPED: Neutral = {
    "container": (),
    "mcp_servers": ([],),
    "inference_geo": (),
    "speed": ("standard",),
    "top_k": (),
    "user_profile_id": (),
    "workspace_id": (),
}
_LEFT_OUT = ("model", "models", "cache_control", "diagnostics", "thinking")
_TIERS = {"auto": "auto", "standard_only": "default"}
_NO_PARAMETERS = msgspec.Raw(b'{"type":"object","properties":{}}')
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class _Tool(msgspec.Struct):
    name: str
    type: str | None = None
    description: str | None = None
    input_schema: msgspec.Raw = _NO_PARAMETERS
    strict: bool | None = None


class _Choice(msgspec.Struct):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Format(msgspec.Struct):
    type: str
    schema: msgspec.Raw = msgspec.Raw(b"null")


class _Config(msgspec.Struct):
    format: _Format | None = None


class _Edit(msgspec.Struct):
    type: str = ""


class _ContextManagement(msgspec.Struct):
    edits: list[_Edit] = []


_TOOLS: msgspec.json.Decoder[list[_Tool]] = msgspec.json.Decoder(list[_Tool])
_CHOICE = msgspec.json.Decoder(_Choice)
_FORMAT = msgspec.json.Decoder(_Format)
_CONFIG = msgspec.json.Decoder(_Config)
_EDITS = msgspec.json.Decoder(_ContextManagement)
_STOPS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


class _Metadata(msgspec.Struct):
    user_id: str | None = None


_METADATA = msgspec.json.Decoder(_Metadata)


def request(body: bytes | Document, target: Target) -> bytes:
    """Translate a Messages body for an OpenAI-format provider; InvalidRequest names the field that can't be."""
    fields = Fields(body, named=target.named)
    fields.drop(*_LEFT_OUT)
    fields.refuse_unless(_UNMAPPED)
    out: dict[str, Any] = {"model": target.model, "max_tokens": _max_tokens(fields, target)}
    if target.effort is not None:
        out["reasoning_effort"] = target.effort.name
    if fields.take("stream", FLAG):
        out["stream"] = True
        out["stream_options"] = {"include_usage": True}
    for name in ("temperature", "top_p"):
        value = fields.raw(name)
        if value is not None:
            out[name] = value
    _stop(fields, out)
    _tools(fields, out)
    _format(fields, out)
    _context(fields)
    metadata = fields.take("metadata", _METADATA)
    if metadata is not None and metadata.user_id:
        out["user"] = metadata.user_id
    tier = fields.take("service_tier", ANY)
    if isinstance(tier, str) and tier in _TIERS:
        out["service_tier"] = _TIERS[tier]
    elif tier is not None:
        fields.unmapped("service_tier", "`service_tier` must be auto or standard_only.")
    messages = turns.translate(fields, target)
    fields.add_rest(out)
    out["messages"] = messages
    return msgspec.json.encode(out)


def _max_tokens(fields: Fields, target: Target) -> int:
    asked = fields.take("max_tokens", COUNT)
    if asked is None:
        raise InvalidRequest("`max_tokens` is missing: say how long the answer may get.", param="max_tokens")
    if asked < 1:
        raise InvalidRequest(f"`max_tokens` is {asked}: ask for at least 1 token.", param="max_tokens")
    return asked if target.named or target.max_output is None else min(asked, target.max_output)


def _stop(fields: Fields, out: dict[str, Any]) -> None:
    stops = fields.take("stop_sequences", _STOPS) or []
    if len(stops) > MOST_STOPS:
        fields.unmapped("stop_sequences", f"`stop_sequences` has {len(stops)} for a model that takes {MOST_STOPS}.")
    if stops:
        out["stop"] = stops[:MOST_STOPS]


def _tools(fields: Fields, out: dict[str, Any]) -> None:
    found: dict[str, dict[str, Any]] = {}
    tools = fields.take("tools", _TOOLS) or []
    for index, tool in enumerate(tools):
        if tool.type not in (None, "custom"):
            fields.unmapped(f"tools[{index}]", f"`tools[{index}]` is a tool of a provider that this model isn't at.")
            continue
        function: dict[str, Any] = {"name": tool.name}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = tool.input_schema
        if tool.strict and schemas.is_strict(tool.input_schema):
            function["strict"] = True
        found[tool.name] = {"type": "function", "function": function}
    if found:
        out["tools"] = list(found.values())
    choice = fields.take("tool_choice", _CHOICE)
    if choice is None:
        return
    if not found:
        if choice.type in ("any", "tool"):
            fields.unmapped("tool_choice", "`tool_choice` wants a call but there are no `tools`: send them.")
        return
    out |= _choice(choice, found, fields)


def _choice(choice: _Choice, tools: dict[str, dict[str, Any]], fields: Fields) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if choice.type in _CHOICES:
        out["tool_choice"] = _CHOICES[choice.type]
    elif choice.type == "tool" and choice.name in tools:
        out["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    else:
        fields.unmapped("tool_choice", "`tool_choice` must be auto, any, none, or a tool that is among the `tools`.")
    if choice.disable_parallel_tool_use and choice.type != "none":
        out["parallel_tool_calls"] = False
    return out


def _format(fields: Fields, out: dict[str, Any]) -> None:
    config, older = fields.take("output_config", _CONFIG), fields.take("output_format", _FORMAT)
    rest = (fields.take("output_config", OBJECT) or {}).keys() - {"format", "effort"}
    if rest:
        name = f"output_config.{min(rest)}"
        fields.unmapped(name, f"`{name}` has no counterpart at this model's provider: leave it out.")
    wanted = config.format if config is not None and config.format is not None else older
    if wanted is None:
        return
    if wanted.type != "json_schema" or not schemas.schema_is_object(wanted.schema):
        raise InvalidRequest(
            "`output_config.format` must be a json_schema with a schema.", param="output_config.format"
        )
    schema = {"name": "answer", "schema": wanted.schema, "strict": schemas.is_strict(wanted.schema)}
    out["response_format"] = {"type": "json_schema", "json_schema": schema}


def _context(fields: Fields) -> None:
    management = fields.take("context_management", _EDITS)
    if management is None:
        return
    if not all(edit.type.startswith("clear_thinking") for edit in management.edits):
        message = "`context_management` has edits that this model's provider can't make: leave them out."
        fields.unmapped("context_management", message)
