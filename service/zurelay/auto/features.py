"""What the model sees of a turn: numbers that mean the same in every language.

Shape (length, sentences, marks, code, material), what is asked (words of each concept, anywhere and where verbs of
asking stand), and how far a strong model's answer is likely to be better.
"""

from __future__ import annotations

import math

from zurelay.auto import ask, gap, lexicon
from zurelay.auto.content import Content, Turn
from zurelay.auto.data import TABLES, leaning
from zurelay.model import Input

# Four kinds of concepts, by how much thought what they ask for takes.
DEEP = ("prove", "derive", "design", "build", "debug", "rewrite", "analyse", "discuss", "model")
DOMAIN = (
    "math",
    "algo",
    "distributed",
    "lowlevel",
    "law",
    "finance",
    "medicine",
    "stats",
    "science",
    "security",
    "scale",
)
MIDDLE = ("compare", "explain", "write", "plan", "advise", "review", "quiz", "tech")
LIGHT = (
    *("summarise", "translate", "correct", "rephrase", "extract", "classify", "convert", "lookup"),
    *("command", "greet", "thanks", "brief"),
)
CONCEPTS = (*DEEP, *DOMAIN, *MIDDLE, *LIGHT)
_KINDS = {"deep": DEEP, "domain": DOMAIN, "middle": MIDDLE, "light": LIGHT}

_CLAUSES = (",", ";", ":", "\u3001", "\uff0c", "\u060c", "\u061b", "\uff1b", "\uff1a")
_SENTENCES = (". ", ".\n", "!", "?", "\u3002", "\uff01", "\uff1f", "\u061f", "\u0964")
_QUESTIONS = ("?", "\uff1f", "\u061f")
_QUOTES = ('"', "\u201c", "\u201e", "\u00ab", "\u300c", "`")
_MATHS = tuple("^\\$=\u2264\u2265\u2260\u2211\u220f\u222b\u221a\u2200\u2203\u2208\u221e\u2261\u00b1\u00b2\u00b3\u207f")
_BRACES = tuple("{};=()<>")
_UPPER = bytes(range(65, 91))
_CODE_HEAD, _CODE_TAIL = 1500, 500


def of(content: Content, turn: Turn) -> dict[str, float]:
    """The features of one user turn in its request."""
    text = turn.text
    asked = ask.instruction(text)
    low = asked.lower()
    found = lexicon.scripts(asked)
    words = lexicon.split(low)
    names = lexicon.languages(words, found, len(asked))
    features = _shape(text, asked, words, lexicon.info(asked, found))
    features.update(_concepts(words, low, names))
    numbers = sum(word[0].isdigit() for word in words)
    features["numbers"] = numbers
    built = gap.syntax(asked, words, numbers)
    features["gap"] = gap.estimate(words, built, word_problem=gap.is_word_problem(words, numbers))
    features["asks"] = leaning(lexicon.marks(words, asked), TABLES.asks)
    features["debug_code"] = min(1.0, features["debug"] + features["lowlevel"]) * (features["code"] > CODE)
    features["system"] = math.log2(1 + len(content.system) / 200)
    features["schema"] = float(content.schema)
    features["image"] = float(Input.IMAGE in turn.media)
    features["document"] = float(Input.PDF in turn.media)
    features["sound"] = float(Input.AUDIO in turn.media or Input.VIDEO in turn.media)
    return features


CODE = 0.03
"""Share of braces, brackets and operators above which a text is taken to hold code."""


def _shape(text: str, asked: str, words: list[str], info: float) -> dict[str, float]:
    size = len(words) + 1
    rest = len(text) - len(asked)
    sample = text if rest < _CODE_TAIL else text[:_CODE_HEAD] + text[-_CODE_TAIL:]
    narrow = asked.encode("ascii", "ignore")
    return {
        "length": math.log2(1 + info / 16),
        "words": math.log2(size),
        "material": math.log2(1 + max(0, rest) / 100),
        "code": sum(map(sample.count, _BRACES)) / (len(sample) + 1),
        "fence": float("```" in sample),
        "clauses": sum(map(asked.count, _CLAUSES)),
        "sentences": sum(map(asked.count, _SENTENCES)),
        "questions": sum(map(asked.count, _QUESTIONS)),
        "asks_last": float(asked.rstrip().endswith(_QUESTIONS)),
        "quotes": sum(map(asked.count, _QUOTES)),
        "maths": sum(map(asked.count, _MATHS)),
        "lines": asked.count("\n"),
        "capitals": (len(narrow) - len(narrow.translate(None, _UPPER))) / (len(asked) + 1),
        "word_length": info / size,
        "variety": len(set(words)) / size,
    }


def _concepts(words: list[str], low: str, names: tuple[str, ...]) -> dict[str, float]:
    anywhere = lexicon.concepts(words, low, names)
    edges = ask.edges(low)
    leading = lexicon.concepts(lexicon.split(edges), edges, names)
    features: dict[str, float] = {}
    for concept in CONCEPTS:
        features[concept] = anywhere.get(concept, 0)
        features[f"{concept}_leads"] = float(concept in leading)
    features["go_on"] = anywhere.get("go_on", 0)
    for kind, members in _KINDS.items():
        features[kind] = sum(anywhere.get(member, 0) for member in members)
        features[f"{kind}_kinds"] = sum(member in anywhere for member in members)
        features[f"{kind}_leads"] = sum(member in leading for member in members)
    return features
