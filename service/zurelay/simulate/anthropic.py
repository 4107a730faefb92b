"""The Anthropic format: Messages read, answered whole and streamed, and refused as the real API does.

Shapes: https://docs.anthropic.com/en/api/messages and the anthropic package's types.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from zurelay.simulate import reading
from zurelay.simulate.nouns import (
    SERVER_ERROR,
    Answer,
    Ask,
    Call,
    Choice,
    Event,
    Finish,
    Json,
    Kind,
    Refusal,
    Tool,
    Usage,
)

_SIGNED = "sim_"  # begins the signatures that we made, the only ones that we can check
_DEFAULT_LEVEL = reading.level_of("high")
_REASONS = {
    Finish.STOP: "end_turn",
    Finish.STOP_SEQUENCE: "stop_sequence",
    Finish.LENGTH: "max_tokens",
    Finish.TOOLS: "tool_use",
    Finish.REFUSAL: "refusal",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_encode = msgspec.json.encode


def read(body: Mapping[str, Json]) -> Ask:
    """Take a request apart."""
    messages = reading.objects(body.get("messages"))
    texts = [reading.text_of(message.get("content")) for message in messages if message.get("role") == "user"]
    choice = body.get("tool_choice")
    kind = reading.clean(reading.member(choice, "type"))
    return Ask(
        model=reading.clean(body.get("model")),
        stream=body.get("stream") is True,
        text=next(filter(None, reversed(texts)), ""),
        results=_results(messages[-1].get("content")) if messages else (),
        tools=tuple(
            Tool(reading.clean(tool.get("name")), tool["input_schema"])
            for tool in reading.objects(body.get("tools"))
            if "input_schema" in tool
        ),
        choice={"any": "required", "none": "none", "tool": reading.clean(reading.member(choice, "name"))}.get(
            kind, "auto"
        ),
        parallel=reading.member(choice, "disable_parallel_tool_use") is not True,
        level=_level(body),
        hide_thoughts=reading.member(body, "thinking", "display") == "omitted",
        schema=reading.member(body, "output_config", "format", "schema"),
        stop=reading.strings(body.get("stop_sequences")),
        limit=reading.whole_number(body.get("max_tokens")),
        prompt_tokens=reading.count_tokens(body.get("system"), body.get("messages"), body.get("tools")),
    )


def _results(content: Json) -> tuple[str, ...]:
    blocks = reading.objects(content)
    return tuple(reading.text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result")


def _level(body: Mapping[str, Json]) -> int:
    effort = reading.level_of(reading.member(body, "output_config", "effort"))
    match reading.member(body, "thinking", "type"):
        case "disabled":
            return 0
        case "enabled" | "adaptive":
            return effort or _DEFAULT_LEVEL
        case _:
            return effort


def refuse(refusal: Refusal) -> bytes:
    """Write the body of an error."""
    kind = (
        refusal.code
        or _TYPES.get(refusal.status)
        or ("api_error" if refusal.status >= SERVER_ERROR else "invalid_request_error")
    )
    error = {"type": kind, "message": refusal.message}
    return _encode({"type": "error", "error": error, "request_id": "req_simulated"})


def too_long(tokens: int) -> Refusal:
    """Word the refusal of a prompt over the context window."""
    return Refusal(400, f"prompt is too long: {tokens} tokens > {max(tokens - 1, 1)} maximum")


def whole(answer: Answer) -> bytes:
    """Write an answer that isn't streamed."""
    choice = answer.choices[0]
    content: list[Json] = []
    if choice.thoughts:
        content.append(_thinking_block(answer, choice))
    if choice.text:
        content.append({"type": "text", "text": "".join(choice.text)})
    content += [_tool_block(call, _arguments(call)) for call in choice.calls]
    message = {**_message(answer, content), **_end(choice)}
    if answer.usage is not None:
        message["usage"] = {**_usage(answer.usage), "service_tier": "standard"}
    return _encode(message)


def _message(answer: Answer, content: list[Json]) -> dict[str, Json]:
    kind = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
    return {**kind, "model": answer.model, "content": content, "stop_reason": None, "stop_sequence": None}


def _end(choice: Choice) -> dict[str, Json]:
    end: dict[str, Json] = {"stop_reason": _REASONS[choice.finish], "stop_sequence": choice.stop_sequence}
    if choice.finish is Finish.REFUSAL:
        end["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return end


def _thinking_block(answer: Answer, choice: Choice) -> dict[str, str]:
    thinking = "" if answer.hide_thoughts else "".join(choice.thoughts)
    return {"type": "thinking", "thinking": thinking, "signature": _signature(thinking)}


def _signature(thinking: str) -> str:
    digest = hashlib.sha256(b"simulated" + thinking.encode()).digest()
    return _SIGNED + base64.b64encode(digest).decode()


def signed(block: Mapping[str, Json]) -> bool:
    """Tell whether a thinking block came back as we wrote it; signatures that aren't ours pass."""
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        return False
    return not signature.startswith(_SIGNED) or signature == _signature(reading.clean(block.get("thinking")))


def _tool_block(call: Call, arguments: Json) -> Json:
    return {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": arguments}


def _arguments(call: Call) -> Json:
    """Give the arguments as an object; those that a token limit cut are lost, as there is no place for half of one."""
    try:
        return msgspec.json.decode("".join(call.arguments))
    except msgspec.DecodeError:
        return {}


def _usage(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": max(usage.input - usage.cached - usage.written, 0),
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def events(answer: Answer) -> Iterator[Event]:
    """Write a stream."""
    choice = answer.choices[0]
    message = _message(answer, [])
    if answer.usage is not None:
        message["usage"] = {**_usage(answer.usage), "output_tokens": 1, "service_tier": "standard"}
        del message["usage"]["output_tokens_details"]
    yield _event(Kind.AROUND, "message_start", message=message)
    yield _event(Kind.AROUND, "ping")
    for index, (start, deltas) in enumerate(_blocks(answer, choice)):
        kind = Kind.TOKEN if start["type"] == "tool_use" else Kind.AROUND
        yield _event(kind, "content_block_start", index=index, content_block=start)
        for delta in deltas:
            kind = Kind.AROUND if delta["type"] == "signature_delta" else Kind.TOKEN
            yield _event(kind, "content_block_delta", index=index, delta=delta)
        yield _event(Kind.AROUND, "content_block_stop", index=index)
    usage = {} if answer.usage is None else {"usage": _usage(answer.usage)}
    if usage:
        del usage["usage"]["cache_creation"]
    yield _event(Kind.FINISH, "message_delta", delta=_end(choice), **usage)
    yield _event(Kind.END, "message_stop")


def _blocks(answer: Answer, choice: Choice) -> Iterator[tuple[dict[str, Json], Iterator[dict[str, str]]]]:
    """Give each content block's start and its deltas."""
    if choice.thoughts:
        yield {"type": "thinking", "thinking": "", "signature": ""}, _thinking_deltas(answer, choice)
    if choice.text:
        yield {"type": "text", "text": ""}, ({"type": "text_delta", "text": piece} for piece in choice.text)
    for call in choice.calls:
        pieces = ("", *call.arguments)
        yield _tool_block(call, {}), ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)


def _thinking_deltas(answer: Answer, choice: Choice) -> Iterator[dict[str, str]]:
    if not answer.hide_thoughts:
        for piece in choice.thoughts:
            yield {"type": "thinking_delta", "thinking": piece}
    yield {"type": "signature_delta", "signature": _thinking_block(answer, choice)["signature"]}


def _event(kind: Kind, name: str, **fields: Json) -> Event:
    return Event(kind, _encode({"type": name, **fields}), name)


def error_event(refusal: Refusal) -> Event:
    """Write an error into a stream."""
    return Event(Kind.END, refuse(refusal), "error")
