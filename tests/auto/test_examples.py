"""How well the whole classifies the labelled examples, and that it does so in linear time."""

import importlib.util
import json
import pathlib
import sys
from collections import Counter, defaultdict
from types import ModuleType
from typing import Any, TypeAlias

import pytest

from zurelay.auto import content, features

ROOT = pathlib.Path(__file__).parent.parent.parent
LEVELS = {"simple": 0, "standard": 1, "complex": 2}


@pytest.fixture(name="tool", scope="module")
def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("evaluate_auto", ROOT / "tools" / "evaluate_auto.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A labelled request, the category found, and whether that is right.
Judged: TypeAlias = list[tuple[dict[str, Any], str, bool]]


def judge(tool: ModuleType, name: str) -> Judged:
    found = []
    for row in tool.examples(name):
        category = tool.category(row["body"]).category.value
        found.append((row, category, tool.is_right(row, category)))
    return found


@pytest.fixture(name="judged", scope="module")
def _judged(tool: ModuleType) -> Judged:
    return judge(tool, "examples")


@pytest.fixture(name="held_out", scope="module")
def _held_out(tool: ModuleType) -> Judged:
    return judge(tool, "held-out")


def far(judged: Judged) -> list[str]:
    """The ids of those off by two where that isn't allowed."""
    return [row["id"] for row, found, right in judged if not right and abs(LEVELS[found] - LEVELS[row["expect"]]) > 1]


def most(judged: Judged) -> float:
    """The share of the category that takes most."""
    return max(Counter(found for _, found, _ in judged).values()) / len(judged)


def test_nine_of_ten_requests_that_were_never_learned_from_are_right(held_out: Judged) -> None:
    assert len(held_out) >= 200
    assert sum(right for _, _, right in held_out) >= 0.895 * len(held_out)
    assert far(held_out) == []
    assert most(held_out) <= 0.5


def test_nothing_that_is_learned_from_is_held_out(judged: Judged, held_out: Judged) -> None:
    def asked(rows: Judged) -> set[str]:
        return {json.dumps(row["body"]["messages"][-1]) for row, _, _ in rows}

    assert asked(judged).isdisjoint(asked(held_out))


def test_nine_of_ten_examples_are_right(judged: Judged) -> None:
    assert sum(right for _, _, right in judged) >= 0.9 * len(judged)


def test_hardly_an_example_is_off_by_two(judged: Judged) -> None:
    assert len(far(judged)) <= 0.005 * len(judged), far(judged)


def test_no_language_is_left_behind(judged: Judged) -> None:
    seen: defaultdict[str, list[bool]] = defaultdict(list)
    for row, _, right in judged:
        seen[row["lang"]].append(right)
    poor = {name: sum(rights) / len(rights) for name, rights in seen.items() if len(rights) >= 20}

    assert len(poor) == 17
    assert min(poor.values()) >= 0.85, poor


def test_no_category_takes_more_than_half(judged: Judged) -> None:
    assert most(judged) <= 0.5


ADVERSARIAL = {
    "spaces": " ",
    "newlines": "\n",
    "paragraphs": "a\n\n",
    "fences": "``` ",
    "quotes": '"“「',
    "backslashes": "\\a\\",
    "commas": ",;:",
    "stops": ". ! ? ",
    "han": "证明设计",
    "kana": "あア",
    "combining": "e\u0301\u0302",
    "surrogates": "\U0001f600",
    "digits": "1 2.3 ",
    "words": "prove design how many ",
    "base64": "data:image/png;base64,AAAA ",
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_what_is_looked_at_doesn_t_grow_with_the_text(name: str) -> None:
    """Calls into Python made for a text and for one thirty times as long: the same but for a constant."""

    def calls(size: int) -> int:
        text = (ADVERSARIAL[name] * size)[:size]
        read = content.read({"messages": [{"role": "user", "content": text}]})
        count = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            features.of(read, read.turns[-1])
        finally:
            sys.setprofile(None)
        return count

    assert calls(600_000) <= calls(20_000) + 200
