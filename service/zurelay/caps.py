"""A cap on effort, where a body says more than our own fields do: budgets of thinking, and other vendors' words for it.

What `reasoning_effort` and `output_config.effort` say is bounded before (`effort.py`). All else that clients may write
passes to a named model as sent, so with a cap (SPEC 12) it is bounded too, wherever it stands outside of the content.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from zurelay.jsonedit import Document
from zurelay.model import Effort

# Tokens of thinking by level. To high: what Google's OpenAI-compatible endpoint takes the words for (Gemini API,
# "OpenAI compatibility", thinking); xhigh: the most that Gemini 2.5 Pro takes. 1,024 is Anthropic's least.
_MOST_TOKENS = {
    Effort.none: 0,
    Effort.minimal: 1024,
    Effort.low: 1024,
    Effort.medium: 8192,
    Effort.high: 24_576,
    Effort.xhigh: 32_768,
}
# Names as `_plain` gives them: some vendors write them in camel case, and Go's readers mind no case at all.
_WORDS = frozenset({"effort", "reasoningeffort", "thinkinglevel"})
_BUDGETS = frozenset(
    {
        *("budgettokens", "thinkingbudget", "thinkingtokenbudget", "reasoningbudget", "reasoningtokens"),
        *("maxreasoningtokens", "maxthinkingtokens"),
    }
)
# Some take a level in their place.
_SWITCHES = frozenset({"thinking", "think", "enablethinking", "enablereasoning", "reasoning"})
_OFF = {"thinking": b'{"type":"disabled"}', "reasoning": b'{"effort":"none"}'}
# What models read, or schemas, where any name may stand.
_CONTENT = frozenset(
    {
        *("messages", "system", "tools", "functions", "response_format", "metadata", "prediction", "input", "prompt"),
        *(
            "format",
            "schema",
            "json_schema",
            "input_schema",
            "parameters",
            "tool_choice",
            "function_call",
            "logit_bias",
        ),
    }
)
_LEVELS = 8  # no provider looks deeper


def bounded(body: bytes, cap: Effort) -> bytes:
    """Give a provider's body with nothing in it that asks for more than the cap; all else as sent."""
    return body if cap is Effort.max else _object(body, cap, "", 0)


def _object(data: bytes, cap: Effort, within: str, depth: int) -> bytes:
    document = Document.parse(data)
    changes: dict[str, bytes | None] = {}
    for name, count in Counter(document.names).items():
        if name in _CONTENT:
            continue
        value = document.raw(name)
        new = None if value is None else _value(name, value, cap, within, depth)
        if new != value or count > 1:  # of two, a provider may read either
            changes[name] = new
    return document.edit(changes) if changes else data


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _value(name: str, value: bytes, cap: Effort, within: str, depth: int) -> bytes:
    name = _plain(name)
    if cap is Effort.none and (name in _SWITCHES or (name == "enabled" and within in _SWITCHES)):
        return _off(name, value)
    if value.startswith(b"{"):
        return _object(value, cap, name, depth + 1) if depth < _LEVELS else value
    if name in _WORDS or (name in _SWITCHES and value.startswith(b'"')):
        return _word(value, cap)
    if name in _BUDGETS or (name == "maxtokens" and within == "reasoning"):
        return _budget(value, _MOST_TOKENS[cap])
    return value


def _off(name: str, value: bytes) -> bytes:
    """Turn a switch off, in the shape that it has."""
    return _OFF.get(name, b"false") if value.startswith(b"{") else b"false"


def _word(value: bytes, cap: Effort) -> bytes:
    """Bound a level; what is no level may mean any."""
    known = Effort.__members__.get(msgspec.json.decode(value)) if value.startswith(b'"') else None
    return value if known is not None and known <= cap else msgspec.json.encode(cap.name)


def _budget(value: bytes, most: int) -> bytes:
    """Bound a number of tokens; what is no number from 0 on may mean any (Gemini's -1 does)."""
    try:
        tokens = msgspec.json.decode(value, type=int)
    except msgspec.MsgspecError:
        tokens = -1
    return value if 0 <= tokens <= most else b"%d" % most
