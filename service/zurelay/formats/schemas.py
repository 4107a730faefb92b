"""JSON schemas, made what the other provider's structured output takes. Values keep their bytes.

Anthropic compiles schemas and takes no numeric or length bounds, no open objects and no oneOf; its own SDKs write such
bounds into the description, so that the model still reads them. OpenAI's strict mode wants every object closed and
every property required. (Both: the providers' pages on structured outputs.)
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from zurelay.formats.fields import ANY, OBJECT, TEXT

_Node = dict[str, msgspec.Raw]

_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *(
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "contains",
        "minContains",
        "maxContains",
    ),
)
_SMALL = (b"0", b"1")  # the only values of minItems that Anthropic takes
_UNFIT = re.compile(rb'"(?:' + "|".join((*_BOUNDS, "oneOf")).encode() + rb')"[ \t\r\n]*:')
_MAPS = frozenset(("properties", "$defs", "definitions", "patternProperties"))
_INSIDE = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items", "not", "additionalProperties"))
_NOT_STRICT = frozenset(
    (
        *("allOf", "oneOf", "not", "if", "then", "else"),
        *("patternProperties", "dependentSchemas", "dependentRequired"),
    )
)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_FALSE = msgspec.Raw(b"false")
_DEEPEST = 100  # levels that are looked into: deeper ones pass as sent, and both providers refuse them


def fit_strict(schema: msgspec.Raw) -> msgspec.Raw:
    """Fit a schema that is strict already, so closed: only bounds can be too much for Anthropic."""
    return _fit(schema, 0, closed=True)


def fit(schema: msgspec.Raw) -> msgspec.Raw:
    """Close the objects that say nothing of other properties, and write bounds into descriptions.

    What fits the closed schema fits the client's too.
    """
    return _fit(schema, 0, closed=False)


def is_open(schema: msgspec.Raw) -> bool:
    """Tell whether an object in it is for properties that it doesn't list: closing it would forbid what is wanted."""
    return any(_node_is_open(node) for node in _nodes(schema))


def is_strict(schema: msgspec.Raw) -> bool:
    """Tell whether OpenAI's strict mode takes it."""
    found = _nodes(schema)
    return bool(found) and found[0].get("type") == "object" and all(_node_is_strict(node) for node in found)


def described(schema: msgspec.Raw, description: str) -> msgspec.Raw:
    """Give a schema a description, if it has none and is an object."""
    if not description or not schema_is_object(schema):
        return schema
    node = OBJECT.decode(schema)
    node.setdefault("description", _json(description))
    return _json(node)


def schema_is_object(schema: msgspec.Raw) -> bool:
    """Tell a schema with keywords from true and false."""
    return bytes(schema)[:1] == b"{"


def _json(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _nodes(schema: msgspec.Raw) -> list[dict[str, Any]]:
    """Give all schemas inside a schema, itself first."""
    try:
        waiting: list[Any] = [ANY.decode(schema)]
    except msgspec.DecodeError:  # a number beyond what we can hold: the provider may judge
        return []
    found: list[dict[str, Any]] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            found.append(node)
            keys = node.keys()
            waiting += [node[key] for key in _INSIDE & keys]
            for key in _MAPS & keys:
                if isinstance(node[key], dict):
                    waiting += node[key].values()
    return found


def _node_is_open(node: dict[str, Any]) -> bool:
    if "additionalProperties" in node:
        return node["additionalProperties"] is not False
    return node.get("type") == "object" and "properties" not in node


def _node_is_strict(node: dict[str, Any]) -> bool:
    if not _NOT_STRICT.isdisjoint(node):
        return False
    if "properties" not in node and node.get("type") != "object":
        return True
    properties, required = node.get("properties", {}), node.get("required", [])
    if node.get("additionalProperties") is not False or not isinstance(required, list):
        return False
    return isinstance(properties, dict) and sorted(properties) == sorted(map(str, required))


def _fit(schema: msgspec.Raw, depth: int, *, closed: bool) -> msgspec.Raw:
    if not schema_is_object(schema) or depth > _DEEPEST or (closed and not _UNFIT.search(schema)):
        return schema
    node = OBJECT.decode(schema)
    for key in _MAPS & node.keys():
        if schema_is_object(node[key]):
            children = OBJECT.decode(node[key])
            node[key] = _json({name: _fit(child, depth + 1, closed=closed) for name, child in children.items()})
    for key in _INSIDE & node.keys():
        node[key] = _fit_value(node[key], depth + 1, closed=closed)
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")
    if "additionalProperties" not in node and (bytes(node.get("type", b"")) == b'"object"' or "properties" in node):
        node["additionalProperties"] = _FALSE
    _describe_bounds(node)
    return _json(node)


def _fit_value(value: msgspec.Raw, depth: int, *, closed: bool) -> msgspec.Raw:
    if bytes(value)[:1] == b"[":
        return _json([_fit(child, depth, closed=closed) for child in _LIST.decode(value)])
    return _fit(value, depth, closed=closed)


def _describe_bounds(node: _Node) -> None:
    bounds = [key for key in _BOUNDS if key in node and not (key == "minItems" and bytes(node[key]) in _SMALL)]
    if not bounds:
        return
    text = ", ".join(f"{key}: {bytes(node.pop(key)).decode()}" for key in bounds)
    old = node.get("description")
    try:
        before = TEXT.decode(old) + "\n\n" if old is not None else ""
    except msgspec.ValidationError:  # no string: not a description that a provider would take
        before = ""
    node["description"] = _json(f"{before}({text})")
