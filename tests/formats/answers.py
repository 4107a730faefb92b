"""Answers of either format, whole and as streams that say the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from formats.conversations import NAMES
from formats.sdk import JSON
from zurelay.formats import Stamp

STAMP = Stamp(id="7", created=1_700_000_000, model="opus", upstream="gpt-up")
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SPOKEN = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
IDS = st.from_regex(r"[a-z]{2}_[a-z0-9]{4}", fullmatch=True)
OBJECT = st.dictionaries(st.text(max_size=3), JSON, max_size=2)
COUNTS = st.integers(0, 5000)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"}, TEXT),
    st.builds(lambda data: {"type": "redacted_thinking", "data": data}, SPOKEN),
    st.builds(lambda i, n, o: {"type": "tool_use", "id": i, "name": n, "input": o}, IDS, NAMES, OBJECT),
    st.builds(lambda o: {"type": "server_tool_use", "id": "s", "name": "web_search", "input": o}, OBJECT),
    st.builds(lambda any_: {"type": "from_the_future", "text": any_, "id": any_}, JSON),
)
STOPS = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


@st.composite
def message(draw: st.DrawFn) -> dict[str, Any]:
    """A Messages answer."""
    stop = draw(st.sampled_from(STOPS))
    details = {"type": "refusal", "category": None, "explanation": draw(st.none() | SPOKEN)}
    usage = st.fixed_dictionaries(
        {"input_tokens": COUNTS, "output_tokens": COUNTS},
        optional={
            "cache_read_input_tokens": st.none() | COUNTS,
            "cache_creation_input_tokens": COUNTS,
            "output_tokens_details": st.just({"thinking_tokens": 3}),
        },
    )
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-up",
        "content": draw(st.lists(BLOCKS, max_size=4)),
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": details if stop == "refusal" else None,
        "usage": draw(usage),
    }


@st.composite
def message_events(draw: st.DrawFn, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The events that say an answer, its words in pieces, with pings and events to come in between."""
    start = {**answer, "content": [], "stop_reason": None, "stop_details": None}
    start["usage"] = {**answer["usage"], "output_tokens": 1}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        empty, deltas = draw(_pieces(block))
        found.append({"type": "content_block_start", "index": index, "content_block": empty})
        found += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        found += draw(
            st.sampled_from([[], [{"type": "ping"}], [{"type": "from_the_future", "index": "x", "delta": 3}]])
        )
        found.append({"type": "content_block_stop", "index": index})
    delta = {name: answer[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    found.append(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer["usage"]["output_tokens"]}}
    )
    return [*found, {"type": "message_stop"}]


@st.composite
def _pieces(draw: st.DrawFn, block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in draw(cut(block["text"]))]
    if kind == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": text} for text in draw(cut(block["thinking"]))]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*thoughts, signed]
    if kind in ("tool_use", "server_tool_use") and draw(st.booleans()):
        arguments = draw(cut(compact(block["input"])))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in ("", *arguments)]
    future = [{"type": "from_the_future", "text": 3}]
    return block, draw(st.sampled_from([[], future]))


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def compact(value: Any) -> str:
    """JSON without spaces, as this package writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@st.composite
def completion(draw: st.DrawFn) -> dict[str, Any]:
    """A chat answer of an OpenAI-format provider."""
    said: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT)}
    said |= draw(st.sampled_from([{}, {"refusal": None}, {"refusal": "No."}, {"annotations": []}]))
    said |= draw(
        st.fixed_dictionaries({}, optional={"reasoning_content": TEXT}) | st.builds(lambda t: {"reasoning": t}, TEXT)
    )
    ids = draw(st.lists(IDS, max_size=3, unique=True))
    if ids:
        functions = [{"name": draw(NAMES), "arguments": compact(draw(OBJECT))} for _ in ids]
        said["tool_calls"] = [{"id": i, "type": "function", "function": f} for i, f in zip(ids, functions, strict=True)]
    prompt, output = 1 + draw(COUNTS), draw(COUNTS)  # no prompt at all would be estimated
    finish = draw(
        st.sampled_from(["stop", "length", "tool_calls", "content_filter", "function_call", "from_the_future"])
    )
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-up",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": prompt // 2, "cache_write_tokens": prompt // 3},
        },
    }


@st.composite
def chunks(draw: st.DrawFn, answer: dict[str, Any]) -> list[dict[str, Any] | str]:
    """The chunks that say an answer; pieces of different calls may be mixed."""
    choice = answer["choices"][0]
    said = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning_content", "reasoning", "content", "refusal"):
        deltas += [{name: piece} for piece in draw(cut(said.get(name) or ""))]
    rows = []
    for index, call in enumerate(said.get("tool_calls", ())):
        function = {"name": call["function"]["name"], "arguments": ""}
        head = {"index": index, "id": call["id"], "type": "function", "function": function}
        pieces = draw(cut(call["function"]["arguments"]))
        rows.append([head, *({"index": index, "function": {"arguments": piece}} for piece in pieces)])
    deltas += [{"tool_calls": [piece]} for piece in draw(_mixed(rows))]
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-up"}
    found: list[dict[str, Any] | str] = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in deltas
    ]
    found.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    found.append({**base, "choices": [], "usage": answer["usage"]})
    return [*found, "[DONE]"]


@st.composite
def _mixed(draw: st.DrawFn, rows: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    if not draw(st.booleans()):
        return [piece for row in rows for piece in row]
    waiting = [list(row) for row in rows]
    found = [row.pop(0) for row in waiting]  # heads keep their order
    while any(waiting):
        found.append(draw(st.sampled_from([row for row in waiting if row])).pop(0))
    return found
