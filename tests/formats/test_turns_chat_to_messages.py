"""Chat's messages as a system prompt and turns. What goes well is in the golden files."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats.fields import Fields
from zurelay.formats.turns_chat_to_messages import translate

USER = {"role": "user", "content": "Hi"}
SAID = {"role": "assistant", "content": "Yes"}


def called(*ids: str, **members: Any) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **members}


def result(call: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


def turns(*messages: Any, keep_thinking: bool = True) -> list[Any]:
    fields = Fields(json.dumps({"messages": messages}).encode(), named=True)
    found: list[Any] = json.loads(msgspec.json.encode(translate(fields, keep_thinking=keep_thinking).turns))
    return found


REFUSED: dict[str, tuple[list[Any], str]] = {
    "a result without its call": ([USER, result("a")], "messages[1].tool_call_id"),
    "a result of no call": ([USER, {"role": "tool", "content": "x"}], "messages[1].tool_call_id"),
    "a second result": ([USER, called("a"), result("a"), result("a")], "messages[3].tool_call_id"),
    "a result after the model spoke again": ([USER, called("a"), SAID, result("a")], "messages[1].tool_calls"),
    "a call without its result": ([USER, called("a", "b"), result("a"), USER], "messages[1].tool_calls"),
    "a call at the end": ([USER, called("a")], "messages[1].tool_calls"),
    "one id twice in a message": ([USER, called("a", "a")], "messages[1].tool_calls[1].id"),
    "a custom call": (
        [USER, {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {}}]}],
        "messages[1].tool_calls[0]",
    ),
    "an outdated call": (
        [USER, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}],
        "messages[1].function_call",
    ),
    "an outdated result": ([USER, {"role": "function", "name": "f", "content": "x"}], "messages[1].role"),
    "what the model said aloud": ([USER, {"role": "assistant", "audio": {"id": "a"}}], "messages[1].audio"),
    "an unknown role": ([{"role": "critic", "content": "x"}], "messages[0].role"),
    "an empty last turn": ([USER, SAID, {"role": "user", "content": " "}], "messages[2].content"),
    "nothing at all": ([{"role": "user", "content": []}], "messages[0].content"),
    "blank words of the system only": ([{"role": "system", "content": "\n"}], "messages"),
    "no list": ([], "messages"),
    "audio": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}],
        "messages[0].content[0]",
    ),
    "a file by id": (
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
        "messages[0].content[0].file",
    ),
    "an image over http": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://e.com/a.png"}}]}],
        "messages[0].content[0].image_url.url",
    ),
    "an image for the system": (
        [USER, {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://e.com/a"}}]}],
        "messages[1].content[0]",
    ),
}


@pytest.mark.parametrize(("messages", "param"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_put_right_is_refused_and_the_turn_named(messages: list[Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        turns(*messages)

    assert caught.value.param == param
    assert param in caught.value.message


def test_wrong_types_name_the_place() -> None:
    with pytest.raises(InvalidRequest, match=r"messages\[1\]\.content"):
        turns(USER, {"role": "user", "content": 3})


MENDED: dict[str, tuple[list[Any], list[Any]]] = {
    "an empty turn in the middle": (
        [USER, {"role": "user", "content": ""}, SAID, USER],
        [("user", ["Hi"]), ("assistant", ["Yes"]), ("user", ["Hi"])],
    ),
    "an empty turn behind a result": (
        [USER, called("a"), result("a"), {"role": "user", "content": ""}],
        [("user", ["Hi"]), ("assistant", ["a"]), ("user", ["a"])],
    ),
    "an assistant that refused without words": (
        [USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": ""}], "refusal": " "}, USER],
        [("user", ["Hi", "Hi"])],
    ),
    "an assistant that said nothing": (
        [USER, {"role": "assistant", "content": None}, USER],
        [("user", ["Hi", "Hi"])],
    ),
    "results in another order, and words before them": (
        [USER, called("a", "b"), USER, result("b"), result("a")],
        [("user", ["Hi"]), ("assistant", ["a", "b"]), ("user", ["b", "a", "Hi"])],
    ),
    "an id that comes again": (
        [called("a"), result("a"), called("a"), result("a"), called("a_1"), result("a_1")],
        [
            *(("assistant", ["a"]), ("user", ["a"]), ("assistant", ["a_1"]), ("user", ["a_1"])),
            *(("assistant", ["a_1_2"]), ("user", ["a_1_2"])),
        ],
    ),
    "ids that Messages doesn't take": (
        [called("é:1", ""), result(""), result("é:1")],
        [("assistant", ["__1", "call"]), ("user", ["call", "__1"])],
    ),
    "only the system spoke, and the user's turn is empty": (
        [{"role": "system", "content": "Go"}, {"role": "user", "content": ""}],
        [("user", ["Go"])],
    ),
    "white space at the very end": (
        [USER, {"role": "assistant", "content": "Yes \n"}],
        [("user", ["Hi"]), ("assistant", ["Yes"])],
    ),
}


@pytest.mark.parametrize(("messages", "expected"), MENDED.values(), ids=MENDED)
def test_what_can_be_put_right_is(messages: list[Any], expected: list[Any]) -> None:
    found = [
        (turn["role"], [b.get("text") or b.get("id") or b.get("tool_use_id") for b in turn["content"]])
        for turn in turns(*messages)
    ]

    assert found == expected


THOUGHT = {"type": "thinking", "thinking": "t", "signature": "s"}
KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "first, where no place is given": ({"content": "abc"}, ["thinking", "text"]),
    "in the middle": ({"content": "abc", "at": [2, 0]}, ["text", "thinking", "text"]),
    "behind a call": ({"content": "abc", "at": [3, 1]}, ["text", "tool_use", "thinking", "tool_use"]),
    "beyond all: Messages takes none at the end": ({"content": "abc", "at": [99, 9]}, ["text", "tool_use", "tool_use"]),
    "not signed": ({"content": "abc", "signature": None}, ["text", "tool_use", "tool_use"]),
}


@pytest.mark.parametrize(("members", "kinds"), KINDS.values(), ids=KINDS)
def test_thinking_goes_back_where_it_stood(members: dict[str, Any], kinds: list[str]) -> None:
    content = members.pop("content")
    said = called("a", "b", content=content, thinking_blocks=[{**THOUGHT, **members}])

    found = [block["type"] for block in turns(USER, said, result("a"), result("b"))[1]["content"]]

    assert found == kinds if "tool_use" in kinds else found == [*kinds, "tool_use", "tool_use"]


def test_thinking_is_left_out_where_the_model_must_not_think() -> None:
    said = {"role": "assistant", "content": "a", "thinking_blocks": [THOUGHT]}

    assert [block["type"] for block in turns(USER, said, USER, keep_thinking=False)[1]["content"]] == ["text"]


def test_a_turn_of_thinking_alone_is_left_out() -> None:
    assert len(turns(USER, {"role": "assistant", "content": None, "thinking_blocks": [THOUGHT]})) == 1


def test_a_user_s_name_stands_before_what_is_no_text_too() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://e.com/a.png"}}

    (turn,) = turns({"role": "user", "name": "ana", "content": [image]})

    assert turn["content"][0] == {"type": "text", "text": "ana:"}


def test_ten_megabytes_of_result_come_through() -> None:
    big = "é" * 5_000_000

    *_, last = turns(called("a"), result("a", big))

    assert last["content"][0]["content"] == big
