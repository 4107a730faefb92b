"""What a text asks for, by word lists in many languages: proving, designing, translating, looking up.

Words of spaced scripts are compared cut to their first letters, so that most inflected forms are found; in scripts
without spaces the list's entries are looked for anywhere. A language's list is used only where that language is
likely, told by script and by its commonest words: "note" means one thing in French and another in English.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Set as AbstractSet

from zurelay.auto.data import CUT, TABLES, by_pair, by_part, by_word

# The shortest word that tells what a text is about.
TELLING = 3
# What parts words beside ASCII's signs: punctuation of Latin, East Asian, Arabic and Indic scripts.
_MARKS = (
    "\u00a1\u00ab\u00b7\u00bb\u00bf\u2010\u2011\u2012\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u2026\u2192"
    "\u3001\u3002\u300a\u300b\u300c\u300d\u30fb\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u060c\u061b\u061f\u0964"
)
_PARTING = bytes(c if chr(c).isalnum() else 0x20 for c in range(128)) + bytes(range(128, 256))
_WORDS = {language: by_word(concepts) for language, concepts in TABLES.words.items()}
_KEYS = {language: frozenset(words) for language, words in _WORDS.items()}
_PHRASES = frozenset(key.partition(" ")[0] for keys in _KEYS.values() for key in keys if " " in key)
_PARTS = {language: by_pair(by_part(concepts)) for language, concepts in TABLES.parts.items()}
_STOP = {language: frozenset(words) for language, words in TABLES.stop.items()}
_LATIN = tuple(language for language in ("en", "pt", "es", "fr", "de", "id") if language in _STOP)
COMMON = frozenset(word[:CUT] for words in _STOP.values() for word in words)

# Concepts that no verb of asking stands for; and those of small chores, which standing orders to a service are.
_MUTE = frozenset(
    {
        *("math", "algo", "distributed", "lowlevel", "law", "finance", "medicine", "stats", "science", "security"),
        *("scale", "tech", "greet", "thanks", "go_on", "more", "model", "brief"),
    }
)
_CHORES = frozenset({"summarise", "translate", "correct", "rephrase", "extract", "classify", "convert"})
VERBS = frozenset(word for words in _WORDS.values() for word, found in words.items() if not _MUTE.issuperset(found))
VERB_PAIRS = frozenset(
    pair
    for starts in _PARTS.values()
    for pair, parts in starts.items()
    if any(not _MUTE.issuperset(found) for _, found in parts)
)
_CHORE_WORDS = frozenset(
    word for words in _WORDS.values() for word, found in words.items() if not _CHORES.isdisjoint(found)
)
_CHORE_PARTS = tuple(
    part
    for starts in _PARTS.values()
    for parts in starts.values()
    for part, found in parts
    if not _CHORES.isdisjoint(found)
)
_LOOKUP = frozenset(word for words in _WORDS.values() for word, found in words.items() if "lookup" in found)
_LOOKUP_PARTS = "|".join(concepts["lookup"] for concepts in TABLES.parts.values() if "lookup" in concepts)
_DENSE_PAIR = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_DENSE_RUN = re.compile(r"[\u0e00-\u0e7f\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")

# High bytes of UTF-16 by script, and how many such letters tell the language.
_SCRIPTS: tuple[tuple[str, bytes, int], ...] = (
    ("ko", bytes([0x11, *range(0xAC, 0xD8)]), 2),
    ("ja", bytes([0x30, 0x31]), 1),
    ("zh", bytes(range(0x34, 0xA0)), 1),
    ("ru", bytes([4, 5]), 2),
    ("ar", bytes([6, 7, 8]), 2),
    ("hi", bytes([9]), 2),
    ("th", bytes([0x0E]), 2),
)
# Letters per character of a script written without spaces: what a Latin text would need for the same.
_DENSE = frozenset({"ko", "ja", "zh", "th"})


def split(text: str) -> list[str]:
    """The words of a lower-cased text, each cut to CUT letters."""
    if text.isascii():
        return [word[:CUT] for word in text.encode().translate(_PARTING).decode().split()]
    for mark in _MARKS:
        if mark in text:
            text = text.replace(mark, " ")
    words = text.encode("utf-8", "surrogatepass").translate(_PARTING).decode("utf-8", "surrogatepass").split()
    return [word[:CUT] for word in words]


def scripts(text: str) -> dict[str, int]:
    """Letters of each script but Latin, named by its main language. Punctuation of East Asia counts as kana's."""
    if text.isascii():
        return {}
    rest = text.encode("utf-16-be", "surrogatepass")[::2]
    found = {}
    for name, members, least in _SCRIPTS:
        less = rest.translate(None, members)
        if len(rest) - len(less) > least:
            found[name] = len(rest) - len(less)
        rest = less
    return found


def languages(words: AbstractSet[str], found: dict[str, int], length: int) -> tuple[str, ...]:
    """The word lists that a text is read by: those for all languages, and those that its script and words point to."""
    names = ["x", "rest"]
    if "ko" in found:
        names.append("ko")
    elif "zh" in found or "ja" in found:
        # Kana's block holds 。 and 「 too, so a Chinese text has a few: Japanese is more than a quarter kana.
        names.append("ja" if found.get("ja", 0) * 3 > found.get("zh", 0) else "zh")
    names.extend(name for name in ("ru", "ar", "hi", "th") if name in found)
    if sum(found.values()) * 2 < length:
        marks = [len(words & _STOP[name]) for name in _LATIN]
        most = max(marks)
        names.extend(name for name, count in zip(_LATIN, marks, strict=True) if count == most)
    return tuple(names)


def hits(
    words: AbstractSet[str], leading: list[str], text: str, near: AbstractSet[str], names: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """The listed words and parts of a lower-cased text, each with its concepts, and the phrases of its edges.

    `leading` are the words of the edges in order, `near` the text's pairs.
    """
    phrases = {f"{first} {second}" for first, second in itertools.pairwise(leading) if first in _PHRASES}
    own = words | phrases if phrases else words
    found: dict[str, tuple[str, ...]] = {}
    for name in reversed(names):
        if name in _WORDS:
            listed = _WORDS[name]
            found.update((word, listed[word]) for word in own & _KEYS[name])
        if name in _PARTS:
            starts = _PARTS[name]
            for start in near & starts.keys():
                found.update((part, concepts) for part, concepts in starts[start] if part in text)
    return found


def pairs(text: str) -> AbstractSet[str]:
    """All pairs of neighbouring characters in a text that has a script without spaces: what words are there."""
    return set(map(operator.add, text, text[1:])) if _DENSE_PAIR.search(text) else frozenset()


def dense(found: dict[str, int]) -> int:
    """Characters of scripts written without spaces, each of which says as much as two or three Latin letters."""
    return sum(count for name, count in found.items() if name in _DENSE)


def telling(text: str) -> set[str]:
    """The words of a text that tell what it is about: long enough, and not among a language's commonest.

    Where there are no spaces, pairs of characters stand for words; hiragana, which is grammar, is left out.
    """
    words = {word for word in split(text) if len(word) >= TELLING and word not in COMMON and word not in _LOOKUP}
    runs = _DENSE_RUN.findall(text)
    if not runs:
        return words
    near = {pair for run in runs for pair in pairs(run) if pair not in _LOOKUP_PARTS}
    return {word for word in words if word.isascii()} | near


def is_chore(text: str) -> bool:
    """Whether a text orders a small chore: to translate, to label, to extract."""
    low = text.lower()
    if not _CHORE_WORDS.isdisjoint(split(low)):
        return True
    return not low.isascii() and any(part in low for part in _CHORE_PARTS)
