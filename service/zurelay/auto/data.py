"""The tables that Auto decides by, from data/auto.json: word lists by concept and language, word weights, trees.

The file is written by tools/learn_auto.py and meant to be read: every word stands under what it counts for.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import msgspec


class Tree(msgspec.Struct, frozen=True, array_like=True):
    """A binary tree as parallel arrays. A leaf has feature -1 and its value in `threshold`; left is the next node."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    right: tuple[int, ...]


class Syntax(msgspec.Struct, frozen=True):
    """A linear model over counts of how sentences are built."""

    names: tuple[str, ...]
    mean: tuple[float, ...]
    weight: tuple[float, ...]
    word_problem: dict[str, float]


class Tables(msgspec.Struct, frozen=True):
    """The whole file. `words` match a word cut to CUT letters, `parts` match anywhere (scripts without spaces).

    `known` and `asks` list words under "weight rarity": what they say of the gap between models, and of the category.
    """

    about: str
    stop: dict[str, tuple[str, ...]]
    words: dict[str, dict[str, str]]
    parts: dict[str, dict[str, str]]
    grammar: dict[str, str]
    features: tuple[str, ...]
    trees: tuple[Tree, ...]
    base: float
    exam: tuple[Tree, ...]
    exam_base: float
    moves: dict[str, tuple[float, float]]
    syntax: Syntax
    known: dict[str, str]
    asks: dict[str, str]


CUT = 8
# Words of asks are cut shorter, so that more inflected forms are one; how rare a token counts that isn't listed.
STEM = 5
UNKNOWN = 4.5


def load(raw: bytes) -> Tables:
    """Decode the file; a wrong shape raises msgspec.ValidationError naming the place."""
    return msgspec.json.decode(raw, type=Tables)


def leaning(counts: Mapping[str, int]) -> float:
    """What the words of a text say of the gap: weights times rarity over the text's length in known words (tf-idf)."""
    total = square = 0.0
    for word in counts.keys() & KNOWN.keys():
        share, part = KNOWN[word]
        count = counts[word]
        total += count * share
        square += count * count * part
    # Rounded, since the order in which a set's floats are summed differs from one process to the next.
    return round(total / math.sqrt(square), 6) if square else 0.0


def asking(tokens: AbstractSet[str]) -> float:
    """What the tokens of an ask say of its category. Unknown ones count as rare: they make the sum less sure."""
    known = tokens & ASKS.keys()
    total, square = 0.0, UNKNOWN * UNKNOWN * (len(tokens) - len(known))
    for token in known:
        share, part = ASKS[token]
        total += share
        square += part
    return round(total / math.sqrt(square), 6) if known else 0.0


def weighed(listed: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Turn {"weight rarity": "word word"} round: {word: (weight, rarity)}. A pair of words is joined by `_`."""
    return {
        word.replace("_", " "): (float(key.split()[0]), float(key.split()[1]))
        for key, words in listed.items()
        for word in words.split()
    }


def _shares(known: tuple[float, float]) -> tuple[float, float]:
    """A word's share of the sum, and of the squared length."""
    weight, rarity = known
    return weight * rarity, rarity * rarity


def by_word(concepts: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Turn {concept: "word word"} round, words cut: {word: concepts}. `_` joins a phrase of two words."""
    turned: dict[str, list[str]] = {}
    for concept, listed in concepts.items():
        for word in listed.split():
            key = " ".join(part[:CUT] for part in word.split("_"))
            turned.setdefault(key, []).append(concept)
    return {word: tuple(dict.fromkeys(found)) for word, found in turned.items()}


def by_part(concepts: dict[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Turn {concept: "part part"} into pairs (part, concepts). `_` stands for a space."""
    turned: dict[str, list[str]] = {}
    for concept, listed in concepts.items():
        for part in listed.split():
            turned.setdefault(part.replace("_", " "), []).append(concept)
    return tuple((part, tuple(found)) for part, found in turned.items())


def by_pair(parts: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Parts by their first two characters, so that a text's pairs find the few that it may hold."""
    turned: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for part, concepts in parts:
        turned.setdefault(part[:2], []).append((part, concepts))
    return turned


TABLES = load(pkgutil.get_data("zurelay", "data/auto.json") or b"")
KNOWN = {word: _shares(known) for word, known in weighed(TABLES.known).items()}
ASKS = {token: _shares(known) for token, known in weighed(TABLES.asks).items()}
