"""Near names for a word that is none of them: a slip of the keys, another spelling, a part of a name, a relative.

Names that share pairs of letters with the word are found by an index, and only the best of them compared in full, so
that an unknown word costs a millisecond or two among 1,000 models.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable

MAX_WORD = 64  # the names compared are shorter; a longer word is no slip, and would be slow to compare
_COMPARED = 24  # names compared in full: enough for the best three, few enough to be quick
_NEAR = 0.6  # below it names only look alike by chance, tried on config keys and model ids
_PART = 3  # letters that must agree before a part or a beginning counts


class NearNames:
    """An index of names to look near ones up in."""

    __slots__ = ("_grams", "_names", "_sizes")

    def __init__(self, names: Iterable[str]) -> None:
        self._names = [(name, _squash(name)) for name in dict.fromkeys(names)]
        self._grams: dict[str, list[int]] = {}
        self._sizes: list[int] = []
        for index, (_, squashed) in enumerate(self._names):
            grams = _pairs(squashed)
            self._sizes.append(len(grams))
            for gram in grams:
                self._grams.setdefault(gram, []).append(index)

    def find(self, word: str, *, allowed: Callable[[str], bool] | None = None, limit: int = 3) -> tuple[str, ...]:
        """Give up to `limit` names near the word, the nearest first; only those that `allowed` lets through."""
        if not word or len(word) > MAX_WORD:
            return ()
        squashed = _squash(word)
        shared = (index for index in self._alike(squashed) if allowed is None or allowed(self._names[index][0]))
        scores = {index: _score(squashed, self._names[index][1]) for index in itertools.islice(shared, _COMPARED)}
        near = sorted((index for index, score in scores.items() if score >= _NEAR), key=lambda i: (-scores[i], i))
        return tuple(self._names[index][0] for index in near[:limit])

    def _alike(self, squashed: str) -> list[int]:
        """Order the names that share pairs with the word by how many they share (Dice's coefficient)."""
        grams = _pairs(squashed)
        counts: collections.Counter[int] = collections.Counter()
        for gram in grams:
            counts.update(self._grams.get(gram, ()))
        own, sizes = len(grams), self._sizes
        return sorted(counts, key=lambda index: (-counts[index] / (own + sizes[index]), index))


def near(word: str, names: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Give up to `limit` of the names that are near the word, the nearest first."""
    return NearNames(names).find(word, limit=limit)


def listed(words: Iterable[str]) -> str:
    """Write words as `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(found: tuple[str, ...]) -> str:
    """Write near names as the end of a message; nothing when there are none."""
    return f"; did you mean {listed(found)}?" if found else ""


def _squash(name: str) -> str:
    """Keep what a reader compares: letters and digits, whatever their case."""
    folded = name.casefold()
    return "".join(filter(str.isalnum, folded)) or folded


def _pairs(squashed: str) -> set[str]:
    padded = f"\0{squashed}\0"
    return set(map("".join, itertools.pairwise(padded)))


def _score(word: str, name: str) -> float:
    """Say how near two squashed names are, 0 to 1: by slips, by one being part of the other, by a common beginning."""
    shorter, longer = sorted((len(word), len(name)))
    part = shorter / longer
    score = 1 - _slips(word, name) / longer if part >= _NEAR else 0.0
    if shorter >= _PART and (word in name or name in word):
        return max(score, _NEAR + (1 - _NEAR) * part)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(word, name, strict=False)))
    if common >= max(_PART, len(word) / 2):
        return max(score, _NEAR + (1 - _NEAR) * common / longer / 2)
    return score


def _slips(one: str, other: str) -> int:
    """Count letters put in, left out, changed or swapped with the next (optimal string alignment)."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, against in enumerate(other, 1):
            least = min(above[column] + 1, line[-1] + 1, above[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                least = min(least, before[column - 2] + 1)
            line.append(least)
        before, above = above, line
    return above[-1]
