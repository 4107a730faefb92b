"""A cap on effort holds for whatever a body says of it, and leaves the rest as sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.caps import bounded
from zurelay.model import Effort

CAPPED: dict[str, tuple[Effort, str, str]] = {
    "an Anthropic budget": (
        Effort.medium,
        '{"thinking": {"type": "enabled", "budget_tokens": 60000}}',
        '{"thinking": {"type": "enabled", "budget_tokens": 8192}}',
    ),
    "a budget below the cap": (
        Effort.medium,
        '{"thinking":{"type":"enabled","budget_tokens":2048}}',
        '{"thinking":{"type":"enabled","budget_tokens":2048}}',
    ),
    "no thinking at all": (
        Effort.none,
        '{"thinking":{"type":"enabled","budget_tokens":2048},"x":1}',
        '{"thinking":{"type":"disabled"},"x":1}',
    ),
    "OpenRouter's effort": (Effort.low, '{"reasoning":{"effort":"high"}}', '{"reasoning":{"effort":"low"}}'),
    "OpenRouter's effort below": (
        Effort.high,
        '{"reasoning":{"effort":"low","exclude":true}}',
        '{"reasoning":{"effort":"low","exclude":true}}',
    ),
    "OpenRouter's tokens": (Effort.low, '{"reasoning":{"max_tokens":9999}}', '{"reasoning":{"max_tokens":1024}}'),
    "OpenRouter's switch": (Effort.none, '{"reasoning":{"enabled":true}}', '{"reasoning":{"effort":"none"}}'),
    "a word that is no level": (Effort.low, '{"reasoning":{"effort":"huge"}}', '{"reasoning":{"effort":"low"}}'),
    "a level in capitals": (Effort.low, '{"reasoning":{"effort":"HIGH"}}', '{"reasoning":{"effort":"low"}}'),
    "an effort that is a number": (Effort.low, '{"reasoning":{"effort":0.9}}', '{"reasoning":{"effort":"low"}}'),
    "an effort of null": (Effort.low, '{"reasoning":{"effort":null}}', '{"reasoning":{"effort":null}}'),
    "Gemini's budget without an end": (
        Effort.low,
        '{"extra_body":{"google":{"thinking_config":{"thinking_budget":-1,"include_thoughts":true}}}}',
        '{"extra_body":{"google":{"thinking_config":{"thinking_budget":1024,"include_thoughts":true}}}}',
    ),
    "Gemini's level": (
        Effort.low,
        '{"google":{"thinkingConfig":{"thinkingLevel":"high"}}}',
        '{"google":{"thinkingConfig":{"thinkingLevel":"low"}}}',
    ),
    "Qwen's budget": (Effort.low, '{"thinking_budget":1e9}', '{"thinking_budget":1024}'),
    "Qwen's switch": (Effort.none, '{"enable_thinking":true}', '{"enable_thinking":false}'),
    "vLLM's template": (
        Effort.low,
        '{"chat_template_kwargs":{"reasoning_effort":"high"}}',
        '{"chat_template_kwargs":{"reasoning_effort":"low"}}',
    ),
    "a level in a switch's place": (Effort.low, '{"reasoning":"high","x":1}', '{"reasoning":"low","x":1}'),
    "Ollama's level": (Effort.medium, '{"think":"high"}', '{"think":"medium"}'),
    "Ollama's switch": (Effort.none, '{"think":true}', '{"think":false}'),
    "a level below in a switch's place": (Effort.high, '{"reasoning":"low"}', '{"reasoning":"low"}'),
    "a switch that is on": (Effort.low, '{"reasoning":true}', '{"reasoning":true}'),
    "other letters": (Effort.low, '{"Reasoning":{"EFFORT":"max"}}', '{"Reasoning":{"EFFORT":"low"}}'),
    "an effort twice": (Effort.low, '{"reasoning":{"effort":"max","effort":"low"}}', '{"reasoning":{"effort":"low"}}'),
    "an effort and null": (Effort.low, '{"reasoning":{"effort":"max","effort":null}}', '{"reasoning":{}}'),
    "reasoning twice": (Effort.low, '{"reasoning":{"effort":"max"},"reasoning":1}', '{"reasoning":1}'),
    "the highest level": (Effort.max, '{"reasoning":{"effort":"huge"}}', '{"reasoning":{"effort":"huge"}}'),
    "our own fields": (
        Effort.low,
        '{"reasoning_effort":"low","output_config":{"effort":"max"}}',
        '{"reasoning_effort":"low","output_config":{"effort":"low"}}',
    ),
    "a budget too long to hold": (Effort.high, '{"thinking_budget":%s}' % ("9" * 400), '{"thinking_budget":24576}'),
}


@pytest.mark.parametrize(("cap", "body", "expected"), CAPPED.values(), ids=CAPPED)
def test_a_cap_bounds_every_field_that_asks_for_effort(cap: Effort, body: str, expected: str) -> None:
    once = bounded(body.encode(), cap)
    assert expected == once.decode()
    assert once == bounded(once, cap)


SCHEMA = {"type": "object", "properties": {"effort": {"type": "string"}, "thinking": {"enum": ["max"]}}}
KEPT: dict[str, dict[str, Any]] = {
    "messages": {"messages": [{"role": "user", "content": [{"effort": "max", "thinking": {"type": "enabled"}}]}]},
    "tools": {"tools": [{"name": "a", "input_schema": SCHEMA}]},
    "an answer's schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "a response format": {"response_format": {"json_schema": {"schema": SCHEMA}}},
    "metadata": {"metadata": {"effort": "max"}},
    "the answer's length": {"max_tokens": 99_999, "max_completion_tokens": 99_999},
    "thinking that is off": {"thinking": {"type": "disabled"}},
}


@pytest.mark.parametrize("cap", [Effort.none, Effort.low])
@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_asks_for_no_effort_stays(cap: Effort, body: dict[str, Any]) -> None:
    assert body == json.loads(bounded(json.dumps(body).encode(), cap))


def test_numbers_and_spaces_stay_to_the_digit() -> None:
    body = b'{ "seed": 12345678901234567890,  "x": {"y": 1e400, "effort": "max"}, "temperature" : 0.1000 }'
    assert body.replace(b'"max"', b'"low"') == bounded(body, Effort.low)


def test_nesting_beyond_what_providers_read_is_left() -> None:
    body = b'{"a":' * 400 + b'{"effort":"max"}' + b"}" * 400
    assert body == bounded(body, Effort.low)


@given(
    st.sampled_from([Effort.low, Effort.medium, Effort.high, Effort.xhigh]),
    st.sampled_from(Effort),
    st.integers(0, 10**6),
)
def test_nothing_above_the_cap_is_left_and_nothing_below_is_changed(cap: Effort, asked: Effort, budget: int) -> None:
    body = {"reasoning": {"effort": asked.name}, "thinking": {"type": "enabled", "budget_tokens": budget}}
    left = json.loads(bounded(json.dumps(body).encode(), cap))
    assert min(asked, cap).name == left["reasoning"]["effort"]
    assert left["thinking"]["budget_tokens"] <= budget
    assert asked > cap or left["reasoning"] == body["reasoning"]
