"""What the model sees of a turn: numbers that mean the same in every language.

Shape (length, sentences, marks, code, material), what is asked (words of each concept, anywhere and where verbs of
asking stand), and two learned sums over words: how hard such asks are, and how far a strong model's answer is better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Set as AbstractSet

from zurelay.auto import ask, gap, lexicon
from zurelay.auto.content import Content, Turn
from zurelay.auto.data import STEM, asking, leaning
from zurelay.model import Input

# Four kinds of concepts, by how much thought what they ask for takes.
DEEP = ("prove", "derive", "design", "build", "debug", "rewrite", "analyse", "discuss", "model")
DOMAIN = (
    *("math", "algo", "distributed", "lowlevel", "law", "finance", "medicine", "stats", "science"),
    *("security", "scale"),
)
MIDDLE = ("compare", "explain", "write", "plan", "advise", "review", "quiz", "tech")
LIGHT = (
    *("summarise", "translate", "correct", "rephrase", "extract", "classify", "convert", "lookup"),
    *("command", "greet", "thanks", "brief"),
)
# What tells that the work goes on: words to continue, and words that take a farewell back (but, now, wrong).
FOLLOWING = ("go_on", "more")
CONCEPTS = (*DEEP, *DOMAIN, *MIDDLE, *LIGHT)
KIND = {
    **dict.fromkeys(DEEP, "deep"),
    **dict.fromkeys(DOMAIN, "domain"),
    **dict.fromkeys(MIDDLE, "middle"),
    **dict.fromkeys(LIGHT, "light"),
}
_BLANK: dict[str, float] = {
    **{f"{name}{part}": 0.0 for name in CONCEPTS for part in ("", "_leads")},
    **{f"{kind}{part}": 0.0 for kind in ("deep", "domain", "middle", "light") for part in ("", "_kinds", "_leads")},
    **dict.fromkeys(FOLLOWING, 0.0),
}

# Marks as bytes where they are ASCII, which is counted faster, and as characters of other scripts.
_CLAUSES, _CLAUSES_WIDE = b",;:", "\u3001\uff0c\u060c\u061b\uff1b\uff1a"
_SENTENCES, _SENTENCES_WIDE = b"!?", "\u3002\uff01\uff1f\u061f\u0964"
_QUOTES, _QUOTES_WIDE = b'"`', "\u201c\u201e\u00ab\u300c"
_MATHS, _MATHS_WIDE = (
    b"^\\$=",
    "\u2264\u2265\u2260\u2211\u220f\u222b\u221a\u2200\u2203\u2208\u221e\u2261\u00b1\u00b2\u00b3\u207f",
)
_QUESTIONS = ("?", "\uff1f", "\u061f")
_BRACES = b"{};=()<>"
_DIGITS = bytes(c if chr(c).isdigit() else 0x20 for c in range(128)) + b" " * 128

CODE = 0.03
"""Share of braces, brackets and operators above which a text is taken to hold code."""
_CODE_HEAD, _CODE_TAIL = 1500, 500


def of(content: Content, turn: Turn) -> dict[str, float]:
    """The features of one user turn in its request. Neither case nor surrounding space makes a difference."""
    text = turn.text.strip()
    asked = asked_of(content, text)
    found = lexicon.scripts(asked)
    low = asked.lower()
    words = lexicon.split(low)
    counts = Counter(words)
    distinct = set(counts)
    narrow = asked.encode("ascii", "ignore")
    number = _numbers(narrow)
    names = lexicon.languages(distinct, found, len(asked))
    near = lexicon.pairs(low) if lexicon.dense(found) else frozenset[str]()
    edges = ask.edges(low)
    leading = lexicon.split(edges)
    features = _concepts(lexicon.hits(distinct, leading, low, near, names), set(leading), edges)
    features.update(_shape(asked, narrow, len(asked) + 1.5 * lexicon.dense(found), words, counts))
    features.update(_material(text, len(text) - len(asked)))
    features["numbers"] = number
    features["english"] = float("en" in names)
    features["asks"] = asking(tokens(words, near))
    # The gap was learned from English benchmarks and says nothing of other languages.
    features["gap"] = _gap(asked, words, counts, number) if features["english"] else 0.0
    features["debug_code"] = min(1.0, features["debug"] + features["lowlevel"]) * (features["code"] > CODE)
    features["system"] = math.log2(1 + len(content.system) / 200) if content.system else 0.0
    features["schema"] = float(content.schema)
    features.update(_media(turn.media) if turn.media else _NO_MEDIA)
    return features


def _gap(asked: str, words: list[str], counts: Counter[str], number: int) -> float:
    built = gap.syntax(asked, counts, len(words), number)
    return gap.estimate(leaning(counts), built, word_problem=gap.is_word_problem(words, number))


def _media(held: AbstractSet[Input]) -> dict[str, float]:
    return {
        "image": float(Input.IMAGE in held),
        "document": float(Input.PDF in held),
        "sound": float(Input.AUDIO in held or Input.VIDEO in held),
    }


_NO_MEDIA = _media(frozenset())


def asked_of(content: Content, text: str) -> str:
    """What a turn asks; cut shorter where a script says as much in fewer characters."""
    asked = ask.instruction(text)
    if content.system:
        asked = ask.standing(content.system, asked)
    if len(asked) <= ask.DENSE or asked.isascii() or lexicon.dense(lexicon.scripts(asked)) <= ask.DENSE:
        return asked
    return ask.shortened(asked)


def numbers(asked: str) -> int:
    """How many numbers a text has."""
    return _numbers(asked.encode("ascii", "ignore"))


def _numbers(narrow: bytes) -> int:
    return len(narrow.translate(_DIGITS).split())


def _shape(asked: str, narrow: bytes, info: float, words: list[str], counts: Counter[str]) -> dict[str, float]:
    size = len(words) + 1
    wide = "" if len(narrow) == len(asked) else asked
    return {
        "length": math.log2(1 + info / 16),
        "words": math.log2(size),
        "clauses": _count(narrow, _CLAUSES, wide, _CLAUSES_WIDE),
        "sentences": asked.count(". ") + asked.count(".\n") + _count(narrow, _SENTENCES, wide, _SENTENCES_WIDE),
        "questions": sum(map(asked.count, _QUESTIONS)) if wide else narrow.count(b"?"),
        "asks_last": float(asked.rstrip().endswith(_QUESTIONS)),
        "quotes": _count(narrow, _QUOTES, wide, _QUOTES_WIDE),
        "maths": _count(narrow, _MATHS, wide, _MATHS_WIDE),
        "lines": asked.count("\n"),
        "word_length": info / size,
        "variety": len(counts) / size,
    }


def _count(narrow: bytes, members: bytes, wide: str, others: str) -> float:
    return len(narrow) - len(narrow.translate(None, members)) + (sum(map(wide.count, others)) if wide else 0)


def _material(text: str, rest: int) -> dict[str, float]:
    """What the ask brings along: how much, and whether it is code."""
    sample = text if len(text) <= _CODE_HEAD + _CODE_TAIL else text[:_CODE_HEAD] + text[-_CODE_TAIL:]
    return {
        "material": math.log2(1 + max(0, rest) / 100),
        "code": _count(sample.encode("ascii", "ignore"), _BRACES, "", "") / (len(sample) + 1),
        "fence": float("```" in sample),
    }


def tokens(words: list[str], near: AbstractSet[str]) -> set[str]:
    """What tells an ask: its words cut to STEM letters, its first word, its pairs in scripts without spaces."""
    found = {word[:STEM] for word in set(words)}
    found.update(pair for pair in near if pair.isalnum())
    if words:
        found.add(f"^{words[0][:STEM]}")
    return found


def _concepts(found: dict[str, tuple[str, ...]], leading: set[str], edges: str) -> dict[str, float]:
    features = _BLANK.copy()
    for word, concepts in found.items():
        # A phrase or a part of a word leads where it stands in the edges' text.
        leads = word in leading or ((" " in word or not word.isascii()) and word in edges)
        for concept in concepts:
            features[concept] += 1
            features[f"{concept}_leads"] = float(leads or features.get(f"{concept}_leads", 0.0))
    for concept in {concept for concepts in found.values() for concept in concepts}:
        kind = KIND.get(concept)
        if kind is not None:
            features[kind] += features[concept]
            features[f"{kind}_kinds"] += 1
            features[f"{kind}_leads"] += features[f"{concept}_leads"]
    return features
