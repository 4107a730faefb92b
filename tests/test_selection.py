"""Auto's selection: the order of the categories, what leaves a model out, what is said where none is left (SPEC 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zurelay.errors import InvalidRequest
from zurelay.model import Category, Effort, Endpoint, Feature, Input, Model, Reasoning, Route
from zurelay.request import ChatRequest
from zurelay.selection import MOST_MODELS, LeftOut, select

SIMPLE, STANDARD, COMPLEX = Category.SIMPLE, Category.STANDARD, Category.COMPLEX
Lists = dict[Category, tuple[Model, ...]]


def model(name: str, **facts: Any) -> Model:
    """A model that takes anything, but for what the facts say."""
    route = Route(name=f"{name}/p", provider="p", model=name)
    defaults: dict[str, Any] = {"context_window": 100_000, "inputs": frozenset(Input)}
    return Model(id=name, routes=(route,), **{**defaults, **facts})


def lists(simple: str = "", standard: str = "", hard: str = "", **facts: dict[str, Any]) -> Lists:
    """Models by category, named by words; facts by name."""
    return {
        category: tuple(model(name, **facts.get(name, {})) for name in words.split())
        for category, words in ((SIMPLE, simple), (STANDARD, standard), (COMPLEX, hard))
    }


def request(**more: Any) -> ChatRequest:
    """A small request."""
    body = {"model": "auto", "messages": [{"role": "user", "content": "hi"}], **more}
    return ChatRequest.parse(json.dumps(body).encode(), Endpoint.CHAT)


def chosen(given: Lists, category: Category, asked: Effort | None = None, **more: Any) -> list[str]:
    """The ids of the models chosen."""
    return [one.id for one in select(given, category, request(**more), asked).models]


THINKS = {"reasoning": Reasoning(levels=(Effort.none, Effort.low))}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}}


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        (SIMPLE, ["s1", "s2", "t1"]),
        (STANDARD, ["t1", "c1", "s1", "s2"]),
        (COMPLEX, ["c1", "t1"]),
    ],
)
def test_the_own_category_comes_first_then_the_one_above_then_the_one_below(
    category: Category, expected: list[str]
) -> None:
    assert expected == chosen(lists("s1 s2", "t1", "c1"), category)


@pytest.mark.parametrize(("category", "expected"), [(SIMPLE, ["c1"]), (COMPLEX, ["s1"])])
def test_the_one_left_is_tried_only_where_none_of_the_others_can(category: Category, expected: list[str]) -> None:
    short = {"context_window": 1}
    given = lists("s1", "t1", "c1", t1=short, **{"s1" if category is SIMPLE else "c1": short})
    assert expected == chosen(given, category)


def test_five_models_at_the_most_each_once() -> None:
    given = lists("a b", "b c d", "d e f g")
    assert ["b", "c", "d", "e", "f"] == chosen(given, STANDARD)
    assert len(chosen(given, STANDARD)) == MOST_MODELS


@pytest.mark.parametrize(
    ("facts", "more", "why"),
    [
        ({"inputs": frozenset({Input.TEXT})}, {"messages": [{"role": "user", "content": [IMAGE]}]}, "read image"),
        ({"features": frozenset({Feature.TOOLS})}, {"response_format": {"type": "json_schema"}}, "lacks json_schema"),
        ({"features": frozenset()}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, "lacks tools"),
        ({"context_window": 50}, {"max_tokens": 60}, "window of 50 tokens"),
    ],
)
def test_a_model_that_can_not_take_the_request_is_left_out_and_says_why(
    facts: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    found = select(lists("a b", a=facts), SIMPLE, request(**more), None)
    assert [one.id for one in found.models] == ["b"]
    (left,) = found.left_out
    assert left.model == "a"
    assert why in left.why


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, ["a", "b"]),
        (Effort.none, ["a", "b"]),
        (Effort.minimal, ["b"]),
        (Effort.max, ["b"]),
    ],
)
def test_a_level_other_than_none_wants_a_model_that_thinks(asked: Effort | None, expected: list[str]) -> None:
    assert expected == chosen(lists("a b", b=THINKS), SIMPLE, asked)
    only_off = {"reasoning": Reasoning(levels=(Effort.none,))}
    assert expected == chosen(lists("a b", a=only_off, b=THINKS), SIMPLE, asked)


def test_where_no_model_thinks_the_level_is_no_reason() -> None:
    assert ["a"] == chosen(lists("a"), SIMPLE, Effort.high)


@pytest.mark.parametrize(
    ("given", "more", "code", "said"),
    [
        (
            lists("a b", a={"inputs": frozenset({Input.TEXT, Input.IMAGE})}, b={"inputs": frozenset({Input.AUDIO})}),
            {"messages": [{"role": "user", "content": [IMAGE, AUDIO]}]},
            "unsupported_content",
            "audio, image. Send them in separate requests",
        ),
        (
            lists("a", a={"features": frozenset()}),
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            "unsupported_content",
            "tools",
        ),
        (
            lists("a", "b", a={"context_window": 50}, b={"context_window": 90}),
            {"max_tokens": 1000},
            "context_length_exceeded",
            "is 90. Send a shorter one, or ask for less output",
        ),
    ],
)
def test_where_none_can_the_message_has_the_facts(given: Lists, more: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        chosen(given, SIMPLE, **more)
    assert caught.value.code == code
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("facts", "more", "code", "said"),
    [
        (
            {"inputs": frozenset({Input.TEXT})},
            {"messages": [{"role": "user", "content": [IMAGE]}]},
            "unsupported_content",
            "None of the models with reasoning levels that zurelay-auto may use reads image.",
        ),
        (
            {"features": frozenset()},
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            "unsupported_content",
            "None of the models with reasoning levels that zurelay-auto may use has all that this request uses: tools.",
        ),
        ({"context_window": 50}, {"max_tokens": 1000}, "context_length_exceeded", "is 50. Send a shorter one"),
    ],
)
def test_where_only_a_model_without_levels_could_the_message_speaks_of_those_with(
    facts: dict[str, Any], more: dict[str, Any], code: str, said: str
) -> None:
    given = lists("a b", b={**facts, **THINKS})
    assert ["a", "b"][: len(chosen(given, SIMPLE, Effort.none, **more))] == ["a"]
    with pytest.raises(InvalidRequest) as caught:
        chosen(given, SIMPLE, Effort.high, **more)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.message.endswith("Without reasoning_effort, a model that has no reasoning levels can take it.")


def test_one_kind_of_media_that_nobody_reads_is_not_to_be_sent_apart() -> None:
    text_only = {"inputs": frozenset({Input.TEXT})}
    with pytest.raises(InvalidRequest, match=r"reads image\. Leave it out, or name a model that reads it\.$"):
        chosen(lists("a", a=text_only), SIMPLE, messages=[{"role": "user", "content": [IMAGE]}])


def test_models_that_can_not_be_told_take_no_place_among_the_five() -> None:
    mute = InvalidRequest("no place for it")

    def unsayable(model: Model) -> InvalidRequest | None:
        return mute if model.id.startswith("x") else None

    found = select(lists("x1 x2 x3 x4 a b c", "x5 d e f"), SIMPLE, request(), None, unsayable)
    assert ["a", "b", "c", "d", "e"] == [one.id for one in found.models]
    assert {LeftOut(f"x{number}", "no place for it") for number in range(1, 6)} == set(found.left_out)
    found = select(lists("x1", "x2", "c"), SIMPLE, request(), None, unsayable)
    assert ["c"] == [one.id for one in found.models]
    with pytest.raises(InvalidRequest) as caught:
        select(lists("x1", "x2", "x3"), SIMPLE, request(), None, unsayable)
    assert caught.value is mute


def test_those_left_out_of_any_category_are_told() -> None:
    short = {"context_window": 1}
    found = select(lists("a", "b", "c", a=short, b=short), SIMPLE, request(), None)
    assert [one.model for one in found.left_out] == ["a", "b"]
    assert all(isinstance(one, LeftOut) for one in found.left_out)
