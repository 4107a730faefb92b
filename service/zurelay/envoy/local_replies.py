"""Envoy's own errors in the shapes of the APIs (SPEC 10), as the local_reply_config of a listener."""

from __future__ import annotations

from typing import Any

from zurelay.envoy.templates import template

_CEL = "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"


def for_clients() -> dict[str, Any]:
    """Give the replies of the public listener."""
    table = template("local_replies.yaml")
    return _replies(table, table["headers"])


def for_relay() -> dict[str, Any]:
    """Give the replies of the egress listener, which say more."""
    table = template("local_replies.yaml")
    return _replies(table, table["headers"] | table["relay_headers"])


def _replies(table: dict[str, Any], common: dict[str, str]) -> dict[str, Any]:
    """Make one mapper for each kind of error and shape, behind the one that lets the sidecar's own answers pass."""
    mappers = [_mapper(kind, shape, name, common) for kind in table["kinds"] for name, shape in table["shapes"].items()]
    return {"mappers": [{"filter": _when(table["ours"])}, *mappers]}


def _mapper(kind: dict[str, Any], shape: dict[str, Any], name: str, common: dict[str, str]) -> dict[str, Any]:
    conditions = [_when(kind["when"])]
    if "when" in shape:
        conditions.append(_when(shape["when"]))
    headers = {**common, **shape.get("headers", {}), **kind.get("headers", {})}
    mapper: dict[str, Any] = {
        "filter": conditions[0] if len(conditions) == 1 else {"and_filter": {"filters": conditions}},
        "body_format_override": {"json_format": _BODIES[name](kind), "content_type": "application/json"},
        "headers_to_add": [
            {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
            for key, value in headers.items()
        ],
    }
    if "status" in kind:
        mapper["status_code"] = kind["status"]
    return mapper


def _chat(kind: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"message": kind["message"], "type": kind["type"]["chat"], "param": None, "code": kind["code"]}}


def _messages(kind: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": kind["type"]["messages"], "message": kind["message"]},
        "request_id": "%DYNAMIC_METADATA(zurelay:request_id)%",
    }


_BODIES = {"chat": _chat, "messages": _messages}


def _when(expression: str) -> dict[str, Any]:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {"@type": _CEL, "expression": expression},
        }
    }
