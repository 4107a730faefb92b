"""What was asked and answered, as the conventions write it: only where `telemetry.capture_content` is set.

gen_ai.input.messages, gen_ai.output.messages and gen_ai.system_instructions are JSON, by the schemas of
https://github.com/open-telemetry/semantic-conventions-genai. Images and files are named, not copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from zurelay import semconv, sse
from zurelay.model import Endpoint

MOST = 1 << 20  # bytes of one attribute, and of a stream that is kept for it; collectors take 4 MiB in one message
_FINISH = {
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_call",
    "refusal": "content_filter",
}
_MEDIA = {"image_url": "image", "image": "image", "input_audio": "audio", "video_url": "video", "file": "document"}

Part = dict[str, Any]


def asked(endpoint: Endpoint, body: bytes) -> dict[str, str]:
    """Give what a request asks, from its body in the client's format."""
    request = _decoded(body)
    messages = [_message(one) for one in _objects(request.get("messages"))]
    found = _written(semconv.INPUT_MESSAGES, messages)
    if endpoint is not Endpoint.CHAT and (system := _parts(request.get("system"))):
        found |= _written(semconv.SYSTEM_INSTRUCTIONS, system)
    return found


def answered(endpoint: Endpoint, body: bytes) -> dict[str, str]:
    """Give what was answered, from an answer that came whole."""
    answer = _decoded(body)
    if endpoint is Endpoint.CHAT:
        choices = _objects(answer.get("choices"))
        made = [_output(_chat_parts(_object(one, "message")), one.get("finish_reason")) for one in choices]
    elif endpoint is Endpoint.MESSAGES:
        made = [_output(_parts(answer.get("content")), answer.get("stop_reason"))]
    else:  # a count of tokens is no message
        return {}
    return _written(semconv.OUTPUT_MESSAGES, made)


def streamed(endpoint: Endpoint, data: bytes) -> dict[str, str]:
    """Give what was answered, from the client's bytes of a stream; one that broke off says what it said."""
    decoder = sse.Decoder(len(data) + 1)
    events = (_decoded(event.data or b"") for event in decoder.feed(data))
    made = _from_chunks(events) if endpoint is Endpoint.CHAT else [_from_events(events)]
    return _written(semconv.OUTPUT_MESSAGES, made)


def _from_chunks(chunks: Iterable[dict[str, Any]]) -> list[Part]:
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for one in _objects(chunk.get("choices")):
            choice = choices.setdefault(one.get("index") or 0, {"message": {"tool_calls": []}})
            choice["finish_reason"] = one.get("finish_reason") or choice.get("finish_reason")
            _grow(choice["message"], _object(one, "delta"))
    return [_output(_chat_parts(one["message"]), one["finish_reason"]) for _, one in sorted(choices.items())]


def _grow(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("content", "reasoning_content", "refusal"):
        if isinstance(delta.get(name), str):
            message[name] = message.get(name, "") + delta[name]
    calls: list[dict[str, Any]] = message["tool_calls"]
    for call in _objects(delta.get("tool_calls")):
        place = call.get("index")
        known = next((one for one in calls if one["index"] == place), None)
        if known is None:
            known = {"index": place, "id": call.get("id"), "function": {"name": None, "arguments": ""}}
            calls.append(known)
        function = _object(call, "function")
        known["function"]["name"] = function.get("name") or known["function"]["name"]
        known["function"]["arguments"] += function.get("arguments") or ""


def _from_events(events: Iterable[dict[str, Any]]) -> Part:
    blocks: dict[int, dict[str, Any]] = {}
    reason = None
    for event in events:
        place = event.get("index") or 0
        if event.get("type") == "content_block_start":
            blocks[place] = {**_object(event, "content_block"), "json": ""}
        elif event.get("type") == "content_block_delta" and place in blocks:
            delta = _object(event, "delta")
            for name, into in (("text", "text"), ("thinking", "thinking"), ("partial_json", "json")):
                if isinstance(delta.get(name), str):
                    blocks[place][into] = (blocks[place].get(into) or "") + delta[name]
        elif event.get("type") == "message_delta":
            reason = _object(event, "delta").get("stop_reason") or reason
    for block in blocks.values():
        if block["json"]:
            block["input"] = _decoded(block["json"].encode())
    return _output(_parts(list(blocks.values())), reason)


def _message(message: dict[str, Any]) -> Part:
    parts = _chat_parts(message)
    if message.get("role") == "tool":
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": message.get("content")}]
    return {"role": message.get("role"), "parts": parts}


def _chat_parts(message: dict[str, Any]) -> list[Part]:
    thought = message.get("reasoning_content")
    parts: list[Part] = [{"type": "reasoning", "content": thought}] if isinstance(thought, str) else []
    parts += _parts(message.get("content"))
    if isinstance(message.get("refusal"), str):
        parts.append({"type": "text", "content": message["refusal"]})
    for call in _objects(message.get("tool_calls")):
        function = _object(call, "function")
        arguments = function.get("arguments")
        parts.append({"type": "tool_call", "id": call.get("id"), "name": function.get("name"), "arguments": arguments})
    return parts


def _parts(content: Any) -> list[Part]:
    """Give the parts of a content in either format: text, or a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "content": content}] if content else []
    return [_part(block) for block in _objects(content)]


def _part(block: dict[str, Any]) -> Part:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "content": block.get("text")}
    if kind == "thinking":
        return {"type": "reasoning", "content": block.get("thinking")}
    if kind == "tool_use":
        return {"type": "tool_call", "id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
    if kind == "tool_result":
        return {"type": "tool_call_response", "id": block.get("tool_use_id"), "response": block.get("content")}
    return {"type": "blob", "modality": _MEDIA.get(str(kind), str(kind)), "content": ""}


def _output(parts: list[Part], reason: Any) -> Part:
    return {"role": "assistant", "parts": parts, "finish_reason": _FINISH.get(str(reason), str(reason or "error"))}


def _written(name: str, value: list[Part]) -> dict[str, str]:
    text = msgspec.json.encode(value)
    return {name: text.decode()} if len(text) <= MOST else {"zurelay.content_too_long": name}


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):  # [DONE], or a stream's end that was cut
        return {}
    return found if isinstance(found, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
