"""Requests in which all has a counterpart in the other format, and the rules that types can't tell."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st

from formats.sdk import JSON

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(lambda text: not text.isspace())
NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,8}", fullmatch=True)
SCHEMA = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, st.just({}), max_size=2)}
)
OBJECT = st.dictionaries(st.text(max_size=3), JSON, max_size=2)
ARGUMENTS = OBJECT.map(json.dumps) | st.sampled_from(["", "{", "not JSON", "[1]", '{"a": 1e400}'])
TEXT_PART = st.fixed_dictionaries(
    {"type": st.just("text"), "text": st.text(max_size=4) | WORDS},
    optional={"prompt_cache_breakpoint": st.sampled_from([{"mode": "explicit"}, {"mode": "explicit", "ttl": "12h"}])},
)
IMAGE_PART = st.sampled_from(["data:image/png;base64,AAAA", "https://example.com/a.png"]).map(
    lambda url: {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
)
FILE_PART = st.sampled_from(["data:application/pdf;base64,JVBERi0=", "data:text/plain;base64,aGk=", "JVBERi0x"]).map(
    lambda data: {"type": "file", "file": {"file_data": data, "filename": "a"}}
)


@st.composite
def chat_messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A chat conversation that could have happened; the user speaks first and last."""
    roles = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    words = st.text(max_size=5) | st.lists(TEXT_PART, max_size=2)
    found: list[dict[str, Any]] = [{"role": role, "content": draw(words)} for role in roles]
    for _ in range(draw(st.integers(0, 3))):
        found.append(draw(_user()))
        found += draw(_answer())
    last = draw(_user())
    last["content"] = draw(WORDS)
    return [*found, last]


@st.composite
def _user(draw: st.DrawFn) -> dict[str, Any]:
    content = draw(st.text(max_size=5) | st.lists(TEXT_PART | IMAGE_PART | FILE_PART, max_size=3))
    return draw(st.fixed_dictionaries({"role": st.just("user"), "content": st.just(content)}, optional={"name": WORDS}))


@st.composite
def _answer(draw: st.DrawFn) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | st.text(max_size=6))}
    if draw(st.booleans()):
        at = draw(st.tuples(st.integers(0, 8), st.integers(0, 3)))
        said["thinking_blocks"] = [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "redacted_thinking", "data": "d", "at": at},
        ]
    ids = draw(st.lists(st.text(max_size=4), max_size=3, unique=True))
    if ids:
        calls = [{"name": draw(NAMES), "arguments": draw(ARGUMENTS)} for _ in ids]
        said["tool_calls"] = [{"id": i, "type": "function", "function": c} for i, c in zip(ids, calls, strict=True)]
    contents = st.text(max_size=5) | st.lists(TEXT_PART | IMAGE_PART, max_size=2)
    results = [{"role": "tool", "tool_call_id": i, "content": draw(contents)} for i in draw(st.permutations(ids))]
    return [said, *results]


@st.composite
def chat_request(draw: st.DrawFn) -> dict[str, Any]:
    """A chat request in which nothing lacks a counterpart, whatever the effort."""
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "max_tokens": st.none() | st.integers(1, 100),
        "max_completion_tokens": st.none() | st.integers(1, 100),
        "temperature": st.sampled_from([None, 1, 1.5, 2]),
        "top_p": st.sampled_from([None, 0.95, 1]),
        "stop": st.none() | WORDS | st.lists(WORDS, max_size=3),
        "stream": st.booleans(),
        "user": WORDS,
        "parallel_tool_calls": st.booleans(),
        "response_format": st.sampled_from(
            [
                {"type": "text"},
                {"type": "json_object"},
                {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
                {"type": "json_schema", "json_schema": {"name": "n", "description": "d"}},
            ]
        ),
    }
    if names:
        function = {"name": st.just(""), "description": WORDS, "parameters": SCHEMA, "strict": st.booleans()}
        tools = [{**draw(st.fixed_dictionaries({}, optional=function)), "name": name} for name in names]
        optional["tools"] = st.just([{"type": "function", "function": tool} for tool in tools])
        choices = ["none", "auto", "required", {"type": "function", "function": {"name": names[0]}}]
        allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": names[-1]}}]}
        if draw(st.booleans()):
            fields = draw(st.fixed_dictionaries({}, optional=optional))
            choice = draw(st.sampled_from([*choices, {"type": "allowed_tools", "allowed_tools": allowed}]))
            return {
                **fields,
                "model": "x",
                "messages": draw(chat_messages()),
                "tools": draw(optional["tools"]),
                "tool_choice": choice,
            }
    return {**draw(st.fixed_dictionaries({}, optional=optional)), "model": "x", "messages": draw(chat_messages())}


def messages_problems(body: dict[str, Any]) -> list[str]:
    """Say where a Messages request breaks the API's rules that its types don't tell."""
    found: list[str] = []
    turns = body["messages"]
    if any(one["role"] == other["role"] for one, other in itertools.pairwise(turns)):
        found.append("two turns of one side in a row")
    waiting: list[str] = []
    seen: set[str] = set()
    for turn in turns:
        blocks = turn["content"]
        if not blocks:
            found.append("an empty turn")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if any(block["type"] == "tool_result" for block in blocks[len(results) :]):
            found.append("results behind other content")
        if sorted(results) != sorted(waiting):
            found.append("results don't match calls")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        found += ["an id twice" for call in waiting if call in seen]
        seen.update(waiting)
        found += [f"a bad id: {call!r}" for call in waiting if not call.replace("-", "_").replace("_", "a").isalnum()]
        found += ["a blank text" for block in blocks if block["type"] == "text" and not block["text"].strip()]
        if blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            found.append("thinking at the end of a turn")
    if waiting:
        found.append("a call without a result at the end")
    if seen and not body.get("tools"):
        found.append("calls but no tools")
    found += ["a blank system text" for block in body.get("system", ()) if not block["text"].strip()]
    return found


def chat_problems(body: dict[str, Any]) -> list[str]:
    """Say where a chat request breaks the API's rules that its types don't tell."""
    found: list[str] = []
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append("a result without a call right before it")
            waiting = [call for call in waiting if call != message["tool_call_id"]]
            continue
        if waiting:
            found.append("a call without a result right behind it")
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if message["role"] == "assistant" and message["content"] is None and not waiting:
            found.append("an assistant that says nothing")
    return [*found, "a call without a result at the end"] if waiting else found


def messages_fields(kind: str, field: str) -> st.SearchStrategy[Any] | None:
    """Keep to the types of content that a request may well have: the SDK's own tools have hundreds of others."""
    if kind.endswith("MessageParam") and field == "content":
        return st.text(max_size=3) | st.lists(_BLOCK, max_size=3)
    if kind == "MessageCreateParamsBase" or not kind.startswith("MessageCreateParams"):
        return None
    return _TOOLS if field == "tools" else None


_TOOLS = st.lists(
    st.builds(lambda name, schema: {"name": name, "input_schema": schema}, NAMES, SCHEMA)
    | st.just({"type": "web_search_20250305", "name": "web_search"}),
    max_size=2,
)
_SOURCE = st.sampled_from(
    [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://e.com/a"},
        {"type": "text", "media_type": "text/plain", "data": "a"},
        {"type": "content", "content": [{"type": "text", "text": "b"}]},
        {"type": "file", "file_id": "f"},
    ]
)
_BLOCK = st.one_of(
    TEXT_PART,
    st.builds(lambda kind, source: {"type": kind, "source": source}, st.sampled_from(["image", "document"]), _SOURCE),
    st.builds(lambda i, o: {"type": "tool_use", "id": i, "name": "f", "input": o}, st.sampled_from("ab"), OBJECT),
    st.builds(
        lambda i, content, error: {"type": "tool_result", "tool_use_id": i, "content": content, "is_error": error},
        st.sampled_from("ab"),
        st.text(max_size=3) | st.lists(TEXT_PART, max_size=2),
        st.booleans(),
    ),
    st.just({"type": "thinking", "thinking": "t", "signature": "s"}),
    st.just({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}),
    st.just({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
)
