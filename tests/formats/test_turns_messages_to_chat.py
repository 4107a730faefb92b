"""Messages' turns as chat's messages. What goes well is in the golden files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats import Target
from zurelay.formats.fields import Fields
from zurelay.formats.turns_messages_to_chat import translate

USER = {"role": "user", "content": "Hi"}
SAID = {"role": "assistant", "content": "Yes"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://e.com/a.png"}}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


def called(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]}


def results(*ids: str, **members: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, **members} for i in ids]}


def messages(*turns: Any, named: bool = True, **fields: Any) -> list[dict[str, Any]]:
    body = json.dumps({"messages": turns, **fields}).encode()
    return translate(Fields(body, named=named), Target(model="m", named=named))


REFUSED: dict[str, tuple[list[Any], str]] = {
    "a result without its call": ([USER, results("a")], "messages[1].content[0]"),
    "a second result": ([USER, called("a"), results("a", "a")], "messages[2].content[1]"),
    "a call without its result": ([USER, called("a", "b"), results("a"), SAID], "messages[1]"),
    "a call at the end": ([USER, called("a")], "messages[1]"),
    "one id twice in a message": ([USER, called("a", "a")], "messages[1].content[1].id"),
    "a call without a name": (
        [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}],
        "messages[1].content[0]",
    ),
    "an unknown role": ([{"role": "critic", "content": "x"}], "messages[0].role"),
    "nothing at all": ([{"role": "user", "content": []}], "messages"),
    "no list": ([], "messages"),
    "an image by file": (
        [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}],
        "messages[0].content[0].source",
    ),
    "a document by url": (
        [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://e.com"}}]}],
        "messages[0].content[0].source",
    ),
    "a document without a source": (
        [{"role": "user", "content": [{"type": "document"}]}],
        "messages[0].content[0].source",
    ),
    "an image for the system": ([USER, {"role": "system", "content": [IMAGE]}], "messages[1]"),
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("turns", "param"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_put_right_is_refused_and_the_turn_named(turns: list[Any], param: str, named: bool) -> None:
    with pytest.raises(InvalidRequest) as caught:
        messages(*turns, named=named)

    assert caught.value.param == param
    assert param in caught.value.message


@pytest.mark.parametrize("place", [[SEARCH], [{"type": "container_upload", "file_id": "f"}]])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_blocks_without_a_counterpart_are_refused_of_a_named_model_and_dropped_for_another(
    role: str, place: Any
) -> None:
    turn = {"role": role, "content": [*place, {"type": "text", "text": "a"}]}

    with pytest.raises(InvalidRequest, match=r"messages\[1\]\.content\[0\]"):
        messages(USER, turn)
    assert {"role": role, "content": "a"} == messages(USER, turn, named=False)[1]


def test_results_stand_right_behind_their_calls_whatever_came_between() -> None:
    found = messages(USER, called("a", "b"), USER, {"role": "system", "content": "Now"}, results("b", "a"))

    assert [message["role"] for message in found] == ["user", "assistant", "tool", "tool", "user", "system"]
    assert [message.get("tool_call_id") for message in found[2:4]] == ["b", "a"]


ERRORS = {
    "in words": ("no such file", "Error: no such file"),
    "said already": ("Error: no such file", "Error: no such file"),
    "without words": ("", "Error"),
    "without content": (None, "Error"),
    "in blocks": ([{"type": "text", "text": "bad"}], "Error: bad"),
}


@pytest.mark.parametrize(("content", "expected"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_said_in_words(content: Any, expected: str) -> None:
    assert expected == messages(called("a"), results("a", content=content, is_error=True))[1]["content"]


def test_a_result_s_images_go_to_the_user_s_message() -> None:
    *_, tool, user = messages(called("a"), results("a", content=[IMAGE]))

    assert tool == {"role": "tool", "tool_call_id": "a", "content": ""}
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]


def test_an_assistant_that_only_thought_is_left_out() -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "zurelay:m"}]}

    assert messages(USER, thought, USER) == [USER, USER]


def test_an_empty_system_prompt_is_left_out() -> None:
    assert [USER] == messages(USER, system="") == messages(USER, system=[])
