"""The OpenAI format: Chat Completions read, answered whole and streamed, and refused as the real API does.

Shapes: https://platform.openai.com/docs/api-reference/chat and the openai package's types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from zurelay.simulate import reading
from zurelay.simulate.nouns import SERVER_ERROR, Answer, Ask, Choice, Event, Finish, Json, Kind, Refusal, Tool, Usage

_FINGERPRINT = "fp_simulated"
_ANY_OBJECT = {"type": "object", "properties": {"answer": {"type": "string"}}}
_REASONS = {
    Finish.STOP: "stop",
    Finish.STOP_SEQUENCE: "stop",
    Finish.LENGTH: "length",
    Finish.TOOLS: "tool_calls",
    Finish.REFUSAL: "stop",
}
_TYPES = {401: "invalid_request_error", 403: "invalid_request_error", 429: "requests", 500: "server_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_MOST = 128  # choices in one request

_encode = msgspec.json.encode


def read(body: Mapping[str, Json]) -> Ask:
    """Take a request apart."""
    messages = reading.objects(body.get("messages"))
    users = [message for message in messages if message.get("role") == "user"]
    tools, choice = _tools(body)
    limit = reading.whole_number(body.get("max_completion_tokens"))
    return Ask(
        model=reading.clean(body.get("model")),
        stream=body.get("stream") is True,
        include_usage=reading.member(body, "stream_options", "include_usage") is True,
        text=reading.text_of(users[-1].get("content")) if users else "",
        results=_results(messages),
        tools=tools,
        choice=choice,
        parallel=body.get("parallel_tool_calls") is not False,
        level=reading.level_of(body.get("reasoning_effort")),
        schema=_schema(body.get("response_format")),
        stop=reading.strings(body.get("stop")),
        limit=reading.whole_number(body.get("max_tokens")) if limit is None else limit,
        n=min(max(reading.whole_number(body.get("n")) or 1, 1), _MOST),
        prompt_tokens=reading.count_tokens(body.get("messages"), body.get("tools")),
    )


def _results(messages: list[Mapping[str, Json]]) -> tuple[str, ...]:
    """Give what tools returned, where the conversation ends with that."""
    found: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        found.append(reading.text_of(message.get("content")))
    return tuple(reversed(found))


def _tools(body: Mapping[str, Json]) -> tuple[tuple[Tool, ...], str]:
    functions = [reading.member(tool, "function") for tool in reading.objects(body.get("tools"))]
    tools = tuple(Tool(reading.clean(one.get("name")), one.get("parameters")) for one in reading.objects(functions))
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        return tools, choice if choice in ("none", "required") else "auto"
    if allowed := reading.objects(reading.member(choice, "allowed_tools", "tools")):
        names = {reading.clean(reading.member(one, "function", "name")) for one in allowed}
        mode = reading.member(choice, "allowed_tools", "mode")
        return tuple(tool for tool in tools if tool.name in names), "required" if mode == "required" else "auto"
    return tools, reading.clean(reading.member(choice, "function", "name")) or "auto"


def _schema(format: Json) -> Json:
    match reading.member(format, "type"):
        case "json_schema":
            return reading.member(format, "json_schema", "schema") or {"type": "object"}
        case "json_object":
            return _ANY_OBJECT
        case _:
            return None


def refuse(refusal: Refusal) -> bytes:
    """Write the body of an error."""
    return _encode({"error": _error(refusal)})


def _error(refusal: Refusal) -> Json:
    kind = _TYPES.get(refusal.status) or ("server_error" if refusal.status >= SERVER_ERROR else "invalid_request_error")
    if refusal.code == "insufficient_quota":
        kind = "insufficient_quota"
    code = refusal.code or _CODES.get(refusal.status)
    return {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}


def too_long(tokens: int) -> Refusal:
    """Word the refusal of a prompt over the context window."""
    most = max(tokens - 1, 1)
    said = f"This model's maximum context length is {most} tokens. However, your messages resulted in {tokens} tokens."
    return Refusal(400, f"{said} Please reduce the length of the messages.", "context_length_exceeded", "messages")


def whole(answer: Answer) -> bytes:
    """Write an answer that isn't streamed."""
    choices = [
        {
            "index": index,
            "message": _message(answer, choice),
            "logprobs": None,
            "finish_reason": _REASONS[choice.finish],
        }
        for index, choice in enumerate(answer.choices)
    ]
    body = {**_head(answer, "chat.completion"), "choices": choices}
    if answer.usage is not None:
        body["usage"] = _usage(answer, answer.usage)
    return _encode(body)


def _head(answer: Answer, kind: str) -> dict[str, Json]:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": _FINGERPRINT,
    }


def _message(answer: Answer, choice: Choice) -> Json:
    said = "".join(choice.text)
    refused = choice.finish is Finish.REFUSAL
    silent = refused or (choice.calls and not said)
    message: dict[str, Json] = {
        "role": "assistant",
        "content": None if silent else said,
        "refusal": said if refused else None,
        "annotations": [],
    }
    if choice.thoughts:
        message[answer.reasoning_field] = "".join(choice.thoughts)
    if choice.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{call.id}",
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.arguments)},
            }
            for call in choice.calls
        ]
    return message


def _usage(answer: Answer, usage: Usage) -> Json:
    """Write the counts; some providers report reasoning beside completion_tokens, and only total_tokens has both."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output - (usage.reasoning if answer.usage_beside else 0),
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.written,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def events(answer: Answer) -> Iterator[Event]:
    """Write a stream; the choices take turns."""
    head = _head(answer, "chat.completion.chunk")
    tail = {"usage": None} if answer.include_usage else {}

    def chunk(kind: Kind, index: int, delta: Json, reason: str | None = None) -> Event:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return Event(kind, _encode({**head, "choices": [choice], **tail}))

    for index, choice in enumerate(answer.choices):
        content = None if choice.calls else ""
        yield chunk(Kind.AROUND, index, {"role": "assistant", "content": content, "refusal": None})
    for index, delta in _turns([_deltas(answer, choice) for choice in answer.choices]):
        yield chunk(Kind.TOKEN, index, delta)
    for index, choice in enumerate(answer.choices):
        yield chunk(Kind.FINISH, index, {}, _REASONS[choice.finish])
    if answer.include_usage and answer.usage is not None:
        yield Event(Kind.FINISH, _encode({**head, "choices": [], "usage": _usage(answer, answer.usage)}))
    yield Event(Kind.END, b"[DONE]")


def _turns(streams: list[Iterator[Json]]) -> Iterator[tuple[int, Json]]:
    left = dict(enumerate(streams))
    while left:
        for index, deltas in list(left.items()):
            delta = next(deltas, None)
            if delta is None:
                del left[index]
            else:
                yield index, delta


def _deltas(answer: Answer, choice: Choice) -> Iterator[Json]:
    for piece in choice.thoughts:
        yield {answer.reasoning_field: piece}
    field = "refusal" if choice.finish is Finish.REFUSAL else "content"
    for piece in choice.text:
        yield {field: piece}
    for index, call in enumerate(choice.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": f"call_{call.id}", "type": "function", "function": function}]}
        for piece in call.arguments:
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def error_event(refusal: Refusal) -> Event:
    """Write an error into a stream."""
    return Event(Kind.END, refuse(refusal))
