"""What a turn asks, apart from the material that it brings along: code, logs, an article to summarise."""

from __future__ import annotations

import re

from zurelay.auto import lexicon

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
# A system prompt up to this length may be the ask itself; then this much of the user's text is enough.
_ORDER, _SAMPLE = 400, 200
# What stands in quotation marks from this length on is material: a text to translate, a message to label.
# No mark that opens may stand within: else a run of them would be read to its end once for each.
_QUOTED = re.compile(
    '"[^"\n]{12,}"|\u201c[^\u201c\u201d\n]{12,}\u201d|\u201e[^\u201e\u201c\u201d\n]{12,}[\u201c\u201d]'
    "|\u00ab[^\u00ab\u00bb\n]{12,}\u00bb|\u300c[^\u300c\u300d\n]{8,}\u300d"
)
_MARKS = ('"', "\u201c", "\u201e", "\u00ab", "\u300c")
_ENOUGH = 16
_ASKS, _OPENS = "?\uff1f\u061f", ":\uff1a"
# By how much one end must read more as the ask than the other to be taken alone.
_SURE = 2
_TAG = re.compile(r"<([A-Za-z_-]{2,30})>")
_RULE = re.compile(r"\n[-=*_]{3,}(?=\n)")
_DATA = b"{}[]()=<>|\\/_#;:+*0123456789"
_DATA_SHARE = 0.12


def instruction(text: str) -> str:
    """The part of a turn that reads as the ask: its first or last paragraph where short, else both ends.

    Asks stand before or after the material and are short beside it, in every language. At most LONGEST long.
    """
    if len(text) > 2 * _EDGE:
        text = f"{text[:_EDGE]}\n\n{text[-_EDGE:]}"
    if "```" in text:
        text = "\n\n".join(text.split("```")[::2])
    if "</" in text:
        text = _untagged(text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    return _ends(_unquoted(_chosen(text.strip())))


def standing(system: str, asked: str) -> str:
    """The ask with a system prompt before it that is a short standing order: what comes from the user is material."""
    if not 0 < len(system) <= _ORDER or not lexicon.is_chore(system):
        return asked
    return _ends(f"{system}\n{asked if len(asked) <= _SAMPLE else asked[:_SAMPLE]}")


def _chosen(text: str) -> str:
    """The paragraphs that read as the ask."""
    if len(text) <= DENSE or (len(text) <= _TOGETHER and len(text.encode("utf-8", "replace")) < 2 * len(text)):
        return text
    if "\n" not in text:
        return text
    if "\n--" in text or "\n==" in text:
        text = _RULE.sub("\n\n", text)
    paragraphs = [stripped for part in text.split("\n\n") if (stripped := part.strip())]
    if not paragraphs:
        return ""
    head, tail = _edge(paragraphs[0], 0), _edge(paragraphs[-1], -1)
    kept = [part for part in (head, tail) if part and len(part) <= _SHORT]
    if not kept:
        return f"{(head or text)[:HEAD]}\n{(tail or text)[-TAIL:]}"
    if len(kept) == 1 or head == tail:
        return kept[0]
    lead = _asking(head) - _asking(tail)
    if abs(lead) >= _SURE:
        return head if lead > 0 else tail
    if len(text) <= _WHOLE:
        kept[1:1] = [part for part in paragraphs[1:-1] if len(part) <= _MIDDLE and not _is_data(part)][:4]
    return "\n".join(kept)


def _edge(paragraph: str, side: int) -> str:
    """The first (0) or last (-1) paragraph without its lines of data; of a long one, the line at that side."""
    if "\n" not in paragraph:
        return "" if _is_data(paragraph) else paragraph
    lines = [line for line in paragraph.split("\n") if not _is_data(line)]
    if not lines:
        return ""
    rest = "\n".join(lines)
    is_long = len(rest) > _SHORT and len(lines[side]) <= _SHORT
    return lines[side] if is_long or len(rest) < len(paragraph) / 2 else rest


def _asking(part: str) -> int:
    """How much a paragraph reads as an ask: verbs of asking in any language, a question, a colon at its end."""
    low = part.lower()
    score = 2 * (part[-1] in _ASKS) + (part[-1] in _OPENS) + len(lexicon.VERBS.intersection(lexicon.split(low)))
    return score if part.isascii() else score + len(lexicon.pairs(low) & lexicon.VERB_PAIRS)


def _is_data(part: str) -> bool:
    """Whether a text is mostly signs and digits: code, a log, a table."""
    raw = part.encode("ascii", "ignore")
    return len(raw) - len(raw.translate(None, _DATA)) > _DATA_SHARE * len(part)


def _untagged(text: str) -> str:
    """A text without what stands between its first tag and the last one that closes it."""
    opened = _TAG.search(text)
    if opened is None:
        return text
    closed = text.rfind(f"</{opened[1]}>")
    if closed < opened.end():
        return text
    rest = f"{text[: opened.start()]}\n\n{text[closed + len(opened[1]) + 3 :]}"
    return rest if rest.strip() else text


def _unquoted(text: str) -> str:
    """An ask without its long quotations, unless it is hardly more than one."""
    if not any(mark in text for mark in (_MARKS[:1] if text.isascii() else _MARKS)):
        return text
    rest = _QUOTED.sub('""', text)
    return rest if len(rest) >= _ENOUGH or len(rest) * 2 > len(text) else text


def shortened(text: str) -> str:
    """An ask in a script that says in one character what takes others two or three."""
    return text if len(text) <= DENSE else f"{text[: DENSE * 5 // 8]}\n{text[-DENSE * 3 // 8 :]}"


def edges(text: str) -> str:
    """The first sentence and the last, each by its beginning and its end: verbs of asking stand there."""
    marks = _STOPS_ASCII if text.isascii() else _STOPS
    stops = [at for mark in marks if (at := text.find(mark, 3)) > 0]
    first = text[: min(stops) + 1] if stops else text
    body = text.rstrip(_STOP_CHARS)
    begin = max([body.rfind(mark) for mark in marks]) + 1
    return _both(first) if begin < len(first) or not body else f"{_both(first)}\n{_both(body[begin:])}"


_STOPS = (". ", "! ", "? ", ": ", "\n", "\u3002", "\uff01", "\uff1f", "\u061f", "\u0964", ":")
_STOPS_ASCII = tuple(mark for mark in _STOPS if mark.isascii())
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
