"""How far a strong model's answer is likely to be better than a weak one's: a linear model, learned from benchmarks.

Two parts: how rare words lean (names of hard subjects up, everyday ones down), and how sentences are built
(clauses, comparisons, order), which tells long word problems from short ones whatever they are about.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from zurelay.auto.data import TABLES, by_word

_GRAMMAR = {word: groups[0] for word, groups in by_word(TABLES.grammar).items()}
_SYNTAX = TABLES.syntax
_WEIGHTS = tuple(zip(_SYNTAX.names, _SYNTAX.weight, strict=True))
_MEAN = -sum(mean * weight for mean, weight in zip(_SYNTAX.mean, _SYNTAX.weight, strict=True))
_WORD_PROBLEM = tuple(
    (name, mean, _SYNTAX.word_problem[name])
    for name, mean in zip(_SYNTAX.names, _SYNTAX.mean, strict=True)
    if name in _SYNTAX.word_problem
)
_QUANTITY = frozenset({"many", "much", "long", "far", "old", "often", "fast", "big"})

NAMES = ("length", "commas", "sentences", "questions", "numbers", "lines", "brackets", "word-length", "variety")
_NUMBERS = 2
GROUPS = ("subclause", "comparison", "order", "multiple", "negation", "condition", "and")


def syntax(text: str, counts: Mapping[str, int], size: int, numbers: int) -> dict[str, float]:
    """Counts of how the sentences are built, on a logarithmic scale. `size` is the number of words."""
    grammar = dict.fromkeys(GROUPS, 0)
    for word in counts.keys() & _GRAMMAR.keys():
        grammar[_GRAMMAR[word]] += counts[word]
    found = {name: math.log1p(count) for name, count in grammar.items()}
    found["length"] = math.log1p(len(text))
    found["commas"] = math.log1p(text.count(",") + text.count(";"))
    found["sentences"] = math.log1p(text.count(". ") + text.count("?") + text.count(".\n"))
    found["questions"] = math.log1p(text.count("?"))
    found["numbers"] = math.log1p(numbers)
    found["lines"] = math.log1p(text.count("\n"))
    found["brackets"] = math.log1p(text.count("("))
    found["word-length"] = len(text) / (size + 1)
    found["variety"] = len(counts) / (size + 1)
    return found


def is_word_problem(words: list[str], numbers: int) -> bool:
    """Numbers in prose and a question after a quantity."""
    if numbers < _NUMBERS or "how" not in words:
        return False
    return any(first == "how" and second in _QUANTITY for first, second in itertools.pairwise(words))


def estimate(leaning: float, built: dict[str, float], *, word_problem: bool) -> float:
    """The expected gap, 0 for the mean text. A word problem's subject says nothing, its sentences all."""
    total = _MEAN + sum([weight * built[name] for name, weight in _WEIGHTS])
    if not word_problem:
        return total + leaning
    return total + sum(weight * (built[name] - mean) for name, mean, weight in _WORD_PROBLEM)
