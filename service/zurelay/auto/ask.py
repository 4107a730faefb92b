"""What a turn asks, apart from the material that it brings along: code, logs, an article to summarise."""

from __future__ import annotations

import re

LONGEST = 700
HEAD, TAIL = 440, 240
DENSE = 270
_SHORT = 400
_EDGE = 3000
_MIDDLE = 250
_SPACES = re.compile("  +")
_SENTENCE = 60
_WHOLE = 1600
_TOGETHER = 700


def instruction(text: str) -> str:
    """The part of a turn that reads as the ask: its first or last paragraph where short, else both ends.

    Asks stand before or after the material and are short beside it, in every language. At most LONGEST long.
    """
    if len(text) > 2 * _EDGE:
        text = f"{text[:_EDGE]}\n\n{text[-_EDGE:]}"
    if "  " in text:
        text = _SPACES.sub(" ", text)
    if "```" in text:
        text = "\n\n".join(text.split("```")[::2])
    if len(text) <= _TOGETHER:
        return _ends(text.strip())
    paragraphs = [stripped for part in text.split("\n\n") if (stripped := part.strip())]
    if len(paragraphs) <= 1:
        return _ends(paragraphs[0]) if paragraphs else ""
    first, last = paragraphs[0], paragraphs[-1]
    kept = [part for part in (first, last) if len(part) <= _SHORT]
    if not kept:
        return f"{first[:HEAD]}\n{last[-TAIL:]}"
    if len(text) <= _WHOLE:
        kept[1:1] = [part for part in paragraphs[1:-1] if len(part) <= _MIDDLE][:4]
    return _ends("\n".join(kept))


def shortened(text: str) -> str:
    """An ask in a script that says in one character what takes others two or three."""
    return text if len(text) <= DENSE else f"{text[: DENSE * 5 // 8]}\n{text[-DENSE * 3 // 8 :]}"


def edges(text: str) -> str:
    """The first sentence and the last, each by its beginning and its end: verbs of asking stand there."""
    stops = [at for mark in _STOPS if (at := text.find(mark, 3)) > 0]
    first = text[: min(stops) + 1] if stops else text
    body = text.rstrip(_STOP_CHARS)
    begin = max(body.rfind(mark) for mark in _STOPS) + 1
    return _both(first) if begin < len(first) or not body else f"{_both(first)}\n{_both(body[begin:])}"


_STOPS = (". ", "! ", "? ", ": ", "\n", "\u3002", "\uff01", "\uff1f", "\u061f", "\u0964", ":")
_STOP_CHARS = " .!?:\n\t\u3002\uff01\uff1f\u061f\u0964"


def _ends(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _both(sentence: str) -> str:
    """Whole words where there are spaces, a few characters where there are none."""
    sentence = sentence.strip()
    if len(sentence) <= _SENTENCE:
        return sentence
    begin = sentence[:34].rpartition(" ")[0] or sentence[:14]
    end = sentence[-26:].partition(" ")[2] or sentence[-16:]
    return f"{begin}\n{end}"
