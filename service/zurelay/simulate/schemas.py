"""A value that fits a JSON schema: for a tool's arguments and for structured output."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from zurelay.simulate.nouns import Json

_DEPTH = 6  # levels down to which optional properties and items are filled; a recursive schema ends there
_FLOOR = 40  # levels after which a schema that only recurses is given up
_FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
# Tried in turn against a pattern; one that fits none of them gets the hint all the same.
_SAMPLES = (
    *_FORMATS.values(),
    *("a", "A", "1", "abc", "ABC", "Abc", "abc-1", "ABC-123", "ABC123", "a_b", "12", "123", "1234", "12345", "123456"),
    *(
        "1.0",
        "1.2.3",
        "2026",
        "2026-01",
        "03:04",
        "USD",
        "en",
        "en-US",
        "#a1b2c3",
        "+15550100",
        "555-0100",
        "/a/b",
        "a b",
    ),
)


def fill(schema: Json, hint: str) -> Json:
    """Make a value for `schema`; free strings say `hint`."""
    return _fill(schema, schema, hint, 0, 0)


def _fill(schema: Json, root: Json, hint: str, depth: int, turn: int) -> Json:
    """Fill one schema; `turn` tells the items of an array apart."""
    if not isinstance(schema, Mapping) or depth > _FLOOR:
        return hint if schema is True else None
    if "$ref" in schema:
        return _fill(_merge([_resolve(root, schema["$ref"]), _without(schema, "$ref")]), root, hint, depth + 1, turn)
    if "allOf" in schema:
        return _fill(_merge([*schema["allOf"], _without(schema, "allOf")]), root, hint, depth + 1, turn)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][turn % len(schema["enum"])]
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            chosen = _branch(schema[word], depth)
            return _fill(_merge([chosen, _without(schema, word)]), root, hint, depth + 1, turn)
    return _fill_type(schema, root, hint, depth, turn)


def _fill_type(schema: Mapping[str, Json], root: Json, hint: str, depth: int, turn: int) -> Json:
    match _type(schema, depth):
        case "object":
            return _object(schema, root, hint, depth)
        case "array":
            return _array(schema, root, hint, depth)
        case "integer" | "number" as kind:
            return _number(schema, turn, whole=kind == "integer")
        case "boolean":
            return turn % 2 == 0
        case "null":
            return None
        case _:
            return _string(schema, hint, turn)


def _type(schema: Mapping[str, Json], depth: int) -> str:
    kind = schema.get("type")
    if isinstance(kind, Sequence) and not isinstance(kind, str):
        if "null" in kind and depth > _DEPTH:
            return "null"
        kind = next((one for one in kind if one != "null"), "null")
    if kind is not None:
        return str(kind)
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _resolve(root: Json, ref: str) -> Json:
    """Follow a local reference such as `#/$defs/node` (RFC 6901); one that leads nowhere allows anything."""
    found = root
    for part in ref.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _without(schema: Mapping[str, Json], word: str) -> dict[str, Json]:
    return {key: value for key, value in schema.items() if key != word}


def _merge(schemas: Sequence[Json]) -> dict[str, Json]:
    """Join schemas that must all hold: properties and required together, of the rest the last."""
    merged: dict[str, Json] = {}
    for schema in schemas:
        if not isinstance(schema, Mapping):
            continue
        properties = {**merged.get("properties", {}), **schema.get("properties", {})}
        required = [*merged.get("required", []), *schema.get("required", [])]
        merged |= schema
        merged |= ({"properties": properties} if properties else {}) | ({"required": required} if required else {})
    return merged


def _branch(branches: Sequence[Json], depth: int) -> Json:
    """Choose the first branch that isn't null; deep down, one that doesn't go on."""

    def rank(branch: Json) -> int:
        null = isinstance(branch, Mapping) and branch.get("type") == "null"
        if depth <= _DEPTH:
            return int(null)
        return 0 if null else 2 if isinstance(branch, Mapping) and _goes_on(branch) else 1

    return min(branches, key=rank)


def _goes_on(schema: Mapping[str, Json]) -> bool:
    return any(word in schema for word in ("$ref", "properties", "items", "anyOf", "oneOf", "allOf"))


def _object(schema: Mapping[str, Json], root: Json, hint: str, depth: int) -> dict[str, Json]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    names = [name for name in properties if name in required or depth < _DEPTH]
    names += [name for name in required if name not in properties]
    return {name: _fill(properties.get(name, True), root, hint, depth + 1, 0) for name in names}


def _array(schema: Mapping[str, Json], root: Json, hint: str, depth: int) -> list[Json]:
    prefix = schema.get("prefixItems", [])
    least = schema.get("minItems", 0)
    wanted = max(least, len(prefix), 0 if depth >= _DEPTH else 1)
    wanted = max(least, min(wanted, schema.get("maxItems", wanted)))
    items = [*prefix, *[schema.get("items", True)] * (wanted - len(prefix))]
    return [_fill(item, root, hint, depth + 1, turn) for turn, item in enumerate(items[:wanted])]


def _number(schema: Mapping[str, Json], turn: int, *, whole: bool) -> Json:
    """Take the least number that is allowed, or 1, `turn` steps further."""
    step = schema.get("multipleOf") or (1 if whole else 1.0)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    if not whole and "multipleOf" not in schema and low > -math.inf and high < math.inf:
        return float(low + (high - low) * (1 + turn % 8) / 10)
    start = low if low > -math.inf else min(step, high)
    value = math.ceil(start / step) * step if low > -math.inf else math.floor(start / step) * step
    if value == schema.get("exclusiveMinimum"):
        value += step
    if value == schema.get("exclusiveMaximum"):
        value -= step
    further = value + turn * step
    return further if further < high or further == schema.get("maximum") else value


def _string(schema: Mapping[str, Json], hint: str, turn: int) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    text = f"{hint} {turn + 1}" if turn else hint
    if pattern := schema.get("pattern"):
        fits = (one for one in (text, *_SAMPLES) if least <= len(one) <= most and _matches(pattern, one))
        return next(fits, text)
    text = text.ljust(least, ".")
    return text if len(text) <= most else text[: int(most)]


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False
