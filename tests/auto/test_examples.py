"""How well the whole classifies the labelled examples, and that it does so in linear time."""

import importlib.util
import pathlib
import sys
from collections import defaultdict
from types import ModuleType
from typing import Any

import pytest

from zurelay.auto import classify, content, features
from zurelay.model import Auto

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


@pytest.fixture(name="judged", scope="module")
def _judged(tool: ModuleType) -> list[tuple[dict[str, Any], str, bool]]:
    found = []
    for row in tool.examples():
        category = classify.classify(content.read(row["body"]), Auto().thresholds).category.value
        found.append((row, category, tool.is_right(row, category)))
    return found


def test_nine_of_ten_examples_are_right(judged: list[tuple[dict[str, Any], str, bool]]) -> None:
    assert sum(right for _, _, right in judged) >= 0.9 * len(judged)


def test_hardly_an_example_is_off_by_two(judged: list[tuple[dict[str, Any], str, bool]]) -> None:
    far = [row["id"] for row, found, right in judged if not right and abs(LEVELS[found] - LEVELS[row["expect"]]) > 1]

    assert len(far) <= 0.005 * len(judged), far


def test_no_language_is_left_behind(judged: list[tuple[dict[str, Any], str, bool]]) -> None:
    seen: defaultdict[str, list[bool]] = defaultdict(list)
    for row, _, right in judged:
        seen[row["lang"]].append(right)
    poor = {name: sum(rights) / len(rights) for name, rights in seen.items() if len(rights) >= 20}

    assert len(poor) == 12
    assert min(poor.values()) >= 0.85, poor


def test_no_category_takes_more_than_half(judged: list[tuple[dict[str, Any], str, bool]]) -> None:
    counts: defaultdict[str, int] = defaultdict(int)
    for _, found, _ in judged:
        counts[found] += 1

    assert max(counts.values()) <= 0.5 * len(judged)


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
