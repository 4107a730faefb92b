"""The tables that Auto decides by, from data/auto.json: word lists by concept and language, word weights, trees.

The file is written by tools/learn_auto.py and meant to be read: every word stands under what it counts for.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterable
from typing import Any

import msgspec


class Known(msgspec.Struct, frozen=True, array_like=True):
    """What a word says (of the gap between models, or of the category), and how rare the word is."""

    weight: float
    rarity: float


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
    """The whole file. `words` match a word cut to CUT letters, `parts` match anywhere (scripts without spaces)."""

    about: str
    stop: dict[str, tuple[str, ...]]
    words: dict[str, dict[str, str]]
    parts: dict[str, dict[str, str]]
    grammar: dict[str, str]
    features: tuple[str, ...]
    trees: tuple[Tree, ...]
    base: float
    moves: dict[str, tuple[float, float]]
    syntax: Syntax
    known: dict[str, Known]
    asks: dict[str, Known]


CUT = 8


def load(raw: bytes) -> Tables:
    """Decode the file; a wrong shape raises msgspec.ValidationError naming the place."""
    return msgspec.json.decode(raw, type=Tables)


def leaning(words: Iterable[str], known: dict[str, Known]) -> float:
    """The weights of the known words, rare ones counting more, over the length of the text in such words (tf-idf)."""
    total = square = 0.0
    for word in words:
        found = known.get(word)
        if found is not None:
            total += found.weight * found.rarity
            square += found.rarity * found.rarity
    return total / math.sqrt(square) if square else 0.0


def by_word(concepts: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Turn {concept: "word word"} round, words cut: {word: concepts}. `_` joins a phrase of two words."""
    turned: dict[str, list[str]] = {}
    for concept, listed in concepts.items():
        for word in listed.split():
            key = " ".join(part[:CUT] for part in word.split("_"))
            turned.setdefault(key, []).append(concept)
    return {word: tuple(dict.fromkeys(found)) for word, found in turned.items()}


def by_part(concepts: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Turn {concept: "part part"} into pairs (part, concept)."""
    return tuple((part.replace("_", " "), concept) for concept, listed in concepts.items() for part in listed.split())


def union(tables: Iterable[dict[str, Any]]) -> frozenset[str]:
    """All keys of several tables."""
    return frozenset(key for table in tables for key in table)


TABLES = load(pkgutil.get_data("zurelay", "data/auto.json") or b"")
