"""The token estimate against what o200k_base counts, recorded by tools/record_tokens.mjs."""

import json
import pathlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay import tokens

FOLDER = pathlib.Path(__file__).parent / "fixtures" / "tokens"
TEXTS: dict[str, str] = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))
COUNTS: dict[str, int] = json.loads((FOLDER / "counts.json").read_text(encoding="utf-8"))["counts"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg" + "A" * 5000
PDF = "data:application/pdf;base64,JVBERi0xLjcKJeLjz9MK"


def chat(content: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_is_estimated_under_nine_tenths_of_its_count(name: str) -> None:
    assert tokens.of_text(TEXTS[name]) >= 0.9 * COUNTS[name]


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if len(text.encode()) >= 1000])
def test_no_text_of_a_kilobyte_is_estimated_at_over_twice_its_count(name: str) -> None:
    assert tokens.of_text(TEXTS[name]) <= 2 * COUNTS[name] + 30


def test_the_mean_estimate_lies_between_the_count_and_a_quarter_more() -> None:
    ratios = [tokens.of_text(text) / COUNTS[name] for name, text in TEXTS.items() if name != "spaces"]

    assert 1.0 <= sum(ratios) / len(ratios) <= 1.25


@pytest.mark.parametrize("name", ["article-en", "article-zh", "article-ar", "code-python", "csv", "asks-pt"])
def test_a_long_text_is_estimated_by_windows_like_its_parts(name: str) -> None:
    repeated = (TEXTS[name] + "\n") * 100

    assert 0.9 <= tokens.of_text(repeated) / (100 * tokens.of_text(TEXTS[name] + "\n")) <= 1.1


def test_windows_see_the_end_of_a_long_text() -> None:
    prose, figures = TEXTS["article-en"] * 50, TEXTS["hex"] * 50

    assert tokens.of_text(prose + figures) > 1.5 * tokens.of_text(prose + TEXTS["article-en"] * 50)


def test_work_is_bounded_however_long_the_text() -> None:
    assert sum(map(len, tokens._windows("word " * 400_000))) == tokens.SAMPLE


@pytest.mark.parametrize(
    ("name", "body", "least", "most"),
    [
        ("nothing", {}, 3, 3),
        ("one word", chat("hi"), 8, 12),
        ("text parts", chat([{"type": "text", "text": "hi"}, {"type": "text", "text": "ho"}]), 8, 14),
        ("system apart", chat("hi", system="word " * 100), 100, 180),
        ("system blocks", chat("hi", system=[{"type": "text", "text": "word " * 100}]), 100, 180),
        ("an image's data isn't text", chat([{"type": "image_url", "image_url": {"url": PNG}}]), 1200, 1230),
        ("low detail", chat([{"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]), 85, 110),
        ("a small PDF is a page", chat([{"type": "file", "file": {"file_data": PDF}}]), 2000, 2020),
        ("a PDF by its id", chat([{"type": "file", "file": {"file_id": "f1"}}]), 10_000, 10_020),
        ("sound by its id", chat([{"type": "input_audio", "input_audio": {}}]), 2000, 2020),
        (
            "a video's address",
            chat([{"type": "video_url", "video_url": {"url": "https://x.test/a.mp4"}}]),
            15_000,
            15_020,
        ),
        (
            "tool result blocks",
            chat([{"type": "tool_result", "content": [{"type": "text", "text": "word " * 100}]}]),
            100,
            180,
        ),
        ("tool use", chat([{"type": "tool_use", "name": "run", "input": {"command": "word " * 100}}]), 100, 180),
        ("thinking", chat([{"type": "thinking", "thinking": "word " * 100}]), 100, 180),
        (
            "a document as text",
            chat([{"type": "document", "source": {"type": "text", "data": "word " * 100}}]),
            100,
            180,
        ),
        ("tools", chat("hi", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]), 70, 110),
        ("a schema", chat("hi", response_format={"type": "json_schema", "json_schema": {"name": "x" * 200}}), 30, 300),
        ("a lone surrogate", chat([{"type": "tool_use", "input": {"a": "\ud800"}}]), 8, 30),
    ],
)
def test_every_part_of_a_request_counts(name: str, body: dict[str, Any], least: int, most: int) -> None:
    assert least <= tokens.estimate(body) <= most, name


def test_tool_calls_of_an_assistant_count() -> None:
    call = {"type": "function", "function": {"name": "run", "arguments": '{"command": "' + "word " * 100 + '"}'}}
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}

    assert tokens.estimate(body) > 100


@settings(max_examples=60)
@given(JSON)
def test_any_json_has_an_estimate(value: Any) -> None:
    assert tokens.estimate(value) >= 0
    assert tokens.estimate({"messages": value, "system": value, "tools": value}) >= 0
    assert tokens.estimate({"messages": [{"role": "user", "content": value}]}) >= 0


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_any_text_has_a_positive_price(text: str) -> None:
    assert tokens.of_text("x" + text) >= 1


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_more_messages_cost_more(text: str) -> None:
    one = {"role": "user", "content": text}

    assert tokens.estimate({"messages": [one]}) < tokens.estimate({"messages": [one] * 20})
