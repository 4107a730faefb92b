"""Whether a request can be said in the other format."""

from __future__ import annotations

from typing import Any

import pytest

from making import request
from zurelay.model import Effort, Endpoint, Format
from zurelay.translatable import Translatable

CHAT, MESSAGES = Endpoint.CHAT, Endpoint.MESSAGES
AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}}]}]
FILE = [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]
# What the client sent, and the field that stands in the way: of a model that it named, of another.
REFUSED: dict[str, tuple[Endpoint, dict[str, Any], str | None, str | None]] = {
    "a greeting": (CHAT, {}, None, None),
    "several answers": (CHAT, {"n": 2}, "n", "n"),
    "a web search": (CHAT, {"web_search_options": {}}, "web_search_options", "web_search_options"),
    "a custom tool": (CHAT, {"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools[0].type", "tools[0].type"),
    "audio": (CHAT, {"messages": AUDIO}, "messages[0].content[0]", "messages[0].content[0]"),
    "a seed": (CHAT, {"seed": 1}, "seed", None),
    "a message": (MESSAGES, {"max_tokens": 5}, None, None),
    "a file by its id": (
        MESSAGES,
        {"max_tokens": 5, "messages": FILE},
        "messages[0].content[0].source",
        "messages[0].content[0].source",
    ),
    "a container": (MESSAGES, {"max_tokens": 5, "container": "c"}, "container", None),
    "no max_tokens": (MESSAGES, {}, "max_tokens", "max_tokens"),
}


def param(said: Translatable, format: Format, *, named: bool, level: Effort | None = None) -> str | None:
    refusal = said.refusal(format, level, named=named)
    return refusal.param if refusal is not None else None


@pytest.mark.parametrize(("endpoint", "fields", "of_named", "of_other"), REFUSED.values(), ids=REFUSED)
def test_what_stands_in_the_way(
    endpoint: Endpoint, fields: dict[str, Any], of_named: str | None, of_other: str | None
) -> None:
    said = Translatable(request(endpoint, **fields))
    other = Format.ANTHROPIC if endpoint is CHAT else Format.OPENAI
    assert (of_named, of_other) == (param(said, other, named=True), param(said, other, named=False))
    assert param(said, said.own, named=True) is None


def test_the_level_counts_for_a_named_model_only() -> None:
    said = Translatable(request(temperature=0.5))
    assert param(said, Format.ANTHROPIC, named=True) is None
    assert param(said, Format.ANTHROPIC, named=True, level=Effort.high) == "temperature"
    assert param(said, Format.ANTHROPIC, named=False, level=Effort.high) is None


def test_a_request_is_said_once_for_all_other_models() -> None:
    said = Translatable(request(n=2))
    first = said.refusal(Format.ANTHROPIC, Effort.low, named=False)
    assert first is not None
    assert said.refusal(Format.ANTHROPIC, Effort.high, named=False) is first
