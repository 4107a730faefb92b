"""Learn what Zurelay Auto weighs: data/auto.json's word weights and trees, from benchmarks and from examples.

    python -m venv /tmp/learn && /tmp/learn/bin/pip install msgspec numpy scipy scikit-learn
    PYTHONPATH=service /tmp/learn/bin/python tools/learn_auto.py --benchmarks DIR [--check]

Examples are tests/fixtures/auto/*.jsonl: requests with the category that they should get. Benchmarks are files
DIR/{mmlu,gsm8k,mt_bench}.csv with columns prompt, weak, strong: the measured quality of a weak and a strong model's
answer to that prompt. The word lists in auto.json are written by hand and stay as they are. With --check nothing is
written: everything is fitted on four fifths and measured on the fifth, five times.

numpy, scipy and scikit-learn are needed here alone; the service reads the file and adds up.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import evaluate_auto
import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from zurelay.auto import content, data, features, gap, lexicon, score
from zurelay.auto.content import Role

ROOT = pathlib.Path(__file__).parent.parent
FILE = ROOT / "service" / "zurelay" / "data" / "auto.json"
TOLD = 30
LEVELS = {"simple": 0.0, "standard": 1.0, "complex": 2.0}
# Conversations and tool loops are decided by rules on top; the model sees single turns.
BY_RULE = frozenset({"continue", "farewell", "aside", "agent", "tools"})

# The gap model's target leans on the gap between the models, a little on the weak one's failures alone.
GAP_SHARE = 0.85
SET_WEIGHT = {"mmlu": 1.0, "gsm8k": 3.0, "mt_bench": 4.0}
RIDGE, SYNTAX_SCALE, WORD_PROBLEM_SCALE, KEPT_WORDS = 15.0, 0.15, 2.0, 5000
ASK_RIDGE, KEPT_ASKS = 0.25, 6000
WORD_PROBLEM = ("commas", "subclause", "comparison", "order", "and")
SYNTAX = (*gap.NAMES, *gap.GROUPS)

TREES = {
    "n_estimators": 25,
    "max_depth": 6,
    "learning_rate": 0.2,
    "subsample": 0.6,
    "min_samples_leaf": 5,
    "max_features": 0.15,
}
BAG = 3
# Trees that tell exam questions, as benchmarks ask them, from what people ask otherwise.
EXAM_TREES = {
    "n_estimators": 30,
    "max_depth": 4,
    "learning_rate": 0.2,
    "subsample": 0.7,
    "min_samples_leaf": 5,
    "max_features": 0.3,
}
EXAM_SHARE = 0.8
BENCH_ROWS = {"mmlu": 1200, "gsm8k": 300, "mt_bench": 22}
REPEATED = {"mmlu": 1, "gsm8k": 1, "mt_bench": 3}


class Prompt(NamedTuple):
    """A benchmark's prompt and what two models made of it."""

    text: str
    weak: float
    strong: float


class Parts(NamedTuple):
    """What the gap model reads of a text."""

    words: list[str]
    syntax: list[float]
    word_problem: bool
    ask: frozenset[str]


def benchmarks(folder: pathlib.Path) -> dict[str, list[Prompt]]:
    """Read the sets, without the format of multiple choice."""
    return {
        name: [Prompt(evaluate_auto.stripped(text), weak, strong) for text, weak, strong in rows]
        for name, rows in ((name, evaluate_auto.benchmark(folder, name)) for name in SET_WEIGHT)
    }


def parts(asked: str) -> Parts:
    """Take an ask apart as features.of does."""
    low = asked.lower()
    words = lexicon.split(low)
    near = lexicon.pairs(low)
    counts = Counter(words)
    numbers = features.numbers(asked)
    built = gap.syntax(asked, counts, len(words), numbers)
    problem = gap.is_word_problem(words, numbers)
    return Parts(words, [built[name] for name in SYNTAX], problem, frozenset(features.tokens(words, near)))


class GapModel:
    """Ridge regression on rare words and on syntax; word problems by syntax alone."""

    def fit(self, sets: dict[str, tuple[list[Parts], np.ndarray]]) -> GapModel:
        """Fit to each set's targets about their mean: only differences within a set count."""
        texts = [part for seen, _ in sets.values() for part in seen]
        target = np.concatenate([wanted - wanted.mean() for _, wanted in sets.values()])
        weight = np.concatenate([np.full(len(wanted), SET_WEIGHT[name]) for name, (_, wanted) in sets.items()])
        built = np.array([part.syntax for part in texts])
        self.mean, self.spread = built.mean(0), built.std(0) + 1e-9
        self.vectorizer = TfidfVectorizer(analyzer=known_words, min_df=3).fit(texts)
        self.model = Ridge(RIDGE).fit(self.design(texts), target, weight)
        words = self.vectorizer.get_feature_names_out()
        kept = heaviest(words, self.model.coef_[: len(words)], self.vectorizer.idf_, KEPT_WORDS)
        self.vectorizer = TfidfVectorizer(analyzer=known_words, vocabulary=kept).fit(texts)
        self.model = Ridge(RIDGE).fit(self.design(texts), target, weight)
        return self

    def design(self, texts: Sequence[Parts]) -> csr_matrix:
        """One row a text: words, syntax, and syntax once more where it is a word problem."""
        problem = np.array([float(part.word_problem) for part in texts])[:, None]
        words = self.vectorizer.transform(texts).multiply(1 - problem)
        built = (np.array([part.syntax for part in texts]) - self.mean) / self.spread * SYNTAX_SCALE
        chosen = [SYNTAX.index(name) for name in WORD_PROBLEM]
        return hstack([words, csr_matrix(built), csr_matrix(built[:, chosen] * problem * WORD_PROBLEM_SCALE)]).tocsr()

    def predict(self, texts: Sequence[Parts]) -> np.ndarray:
        """The expected gap of each text."""
        return self.design(texts) @ self.model.coef_

    def tables(self) -> dict[str, Any]:
        """What auto.json holds of it."""
        count = len(self.vectorizer.vocabulary_)
        names = self.vectorizer.get_feature_names_out()
        words = word_table(dict(zip(names, self.vectorizer.idf_, strict=True)), self.model.coef_[:count], 0.004)
        plain = self.model.coef_[count : count + len(SYNTAX)] / self.spread * SYNTAX_SCALE
        chosen = [SYNTAX.index(name) for name in WORD_PROBLEM]
        extra = self.model.coef_[count + len(SYNTAX) :] / self.spread[chosen] * SYNTAX_SCALE * WORD_PROBLEM_SCALE
        return {
            "known": words,
            "syntax": {
                "names": list(SYNTAX),
                "mean": [round(float(each), 4) for each in self.mean],
                "weight": [round(float(each), 5) for each in plain],
                "word_problem": {name: round(float(each), 5) for name, each in zip(WORD_PROBLEM, extra, strict=True)},
            },
        }


class AskModel:
    """Ridge regression of the examples' level on the tokens of their asks, in all languages at once."""

    def fit(self, asks: Sequence[frozenset[str]], levels: np.ndarray, weights: np.ndarray) -> AskModel:
        """Fit, keep the heaviest tokens, fit again. Tokens left out keep their share of the length, as unknown ones."""
        seen = Counter(token for ask in asks for token in ask)
        rarity = {token: round(math.log((1 + len(asks)) / (1 + count)) + 1, 1) for token, count in seen.items()}
        self.rarity = dict(sorted(rarity.items()))
        first = Ridge(ASK_RIDGE).fit(self.design(asks), levels - 1.0, weights)
        kept = heaviest(list(self.rarity), first.coef_, np.array(list(self.rarity.values())), KEPT_ASKS)
        self.rarity = {token: self.rarity[token] for token in kept}
        self.weight = Ridge(ASK_RIDGE, fit_intercept=False).fit(self.design(asks), levels - 1.0, weights).coef_
        return self

    def design(self, asks: Sequence[frozenset[str]]) -> csr_matrix:
        """One row an ask: the rarity of its known tokens over its length."""
        place = {token: at for at, token in enumerate(self.rarity)}
        row, column, value = [], [], []
        for at, ask_ in enumerate(asks):
            length = math.sqrt(sum(self.rarity.get(token, data.UNKNOWN) ** 2 for token in ask_)) or 1.0
            for token in ask_ & place.keys():
                row.append(at)
                column.append(place[token])
                value.append(self.rarity[token] / length)
        return csr_matrix((value, (row, column)), shape=(len(asks), len(place)))

    def predict(self, asks: Sequence[frozenset[str]]) -> np.ndarray:
        """Levels above or below standard."""
        return self.design(asks) @ self.weight

    def table(self) -> dict[str, str]:
        """What auto.json holds of it."""
        return word_table(self.rarity, self.weight, 0.02)


def heaviest(words: Sequence[str], weights: np.ndarray, rarity: np.ndarray, count: int) -> list[str]:
    """The words that move the texts most: weight by how often the word comes."""
    moved = np.abs(weights) * np.exp(-rarity / 2)
    return sorted(words[at] for at in np.argsort(-moved, kind="stable")[:count])


def word_table(rarity: Mapping[str, float], weights: np.ndarray, step: float) -> dict[str, str]:
    """Words under their rounded weight and rarity, the heaviest first, as auto.json holds them."""
    groups: dict[tuple[float, float], list[str]] = {}
    for (word, rare), weight in zip(rarity.items(), weights, strict=True):
        groups.setdefault((round(float(weight) / step) * step, round(float(rare), 1)), []).append(word)
    ranked = sorted(groups, reverse=True)
    return {f"{weight:+.3f} {rare:.1f}": " ".join(sorted(groups[weight, rare])) for weight, rare in ranked}


def known_words(part: Parts) -> list[str]:
    """A text's words as the gap model knows them."""
    return part.words


def targets(prompts: Sequence[Prompt]) -> np.ndarray:
    """What the gap model is fitted to."""
    return np.array([GAP_SHARE * (p.strong - p.weak) + (1 - GAP_SHARE) * (1 - p.weak) for p in prompts])


def examples() -> list[dict[str, Any]]:
    """The labelled requests that the model, not a rule, decides."""
    return [row for row in evaluate_auto.examples() if row["kind"] not in BY_RULE]


def featured(body: dict[str, Any]) -> tuple[dict[str, float], Parts]:
    """The features of a request's last user turn, and what the gap model reads of it."""
    read = content.read(body)
    turn = [turn for turn in read.turns if turn.role is Role.USER][-1]
    return features.of(read, turn), parts(features.asked_of(read, turn.text.strip()))


class Learner:
    """Examples and benchmarks as matrices, and the two models fitted to any part of them."""

    def __init__(self, rows: list[dict[str, Any]], sets: dict[str, list[Prompt]]) -> None:
        seen = [featured(row["body"]) for row in rows]
        late = ("gap", "asks")
        self.names = [name for name in seen[0][0] if name not in (*late, *features.FOLLOWING)] + [*late]
        self.rows, self.sets = rows, sets
        self.matrix, self.parts = self.table(seen), [part for _, part in seen]
        self.levels = np.array([LEVELS[row["expect"]] for row in rows])
        self.weights = 1 / np.bincount(self.levels.astype(int))[self.levels.astype(int)] * len(rows) / 3
        bench = {name: [featured(evaluate_auto.one_turn(p.text)) for p in prompts] for name, prompts in sets.items()}
        self.bench = {name: (self.table(found), [part for _, part in found]) for name, found in bench.items()}

    def table(self, seen: Sequence[tuple[dict[str, float], Parts]]) -> np.ndarray:
        """Features as a matrix, in the order of names."""
        return np.array([[found[name] for name in self.names] for found, _ in seen], dtype=float)

    def fit_gap(self, chosen: dict[str, np.ndarray]) -> GapModel:
        """Fit the gap model to some of each set."""
        return GapModel().fit(
            {n: ([self.bench[n][1][i] for i in c], targets([self.sets[n][i] for i in c])) for n, c in chosen.items()}
        )

    def fit_asks(self, own: np.ndarray) -> AskModel:
        """Fit the ask model to some of the examples."""
        return AskModel().fit([self.parts[i].ask for i in own], self.levels[own], self.weights[own])

    def unseen_asks(self, own: np.ndarray) -> np.ndarray:
        """Each example's level by an ask model that hasn't seen it, nor the same ask of other material."""
        asks = np.array([crc32(" ".join(sorted(self.parts[i].ask)).encode()) for i in own])
        fold = np.random.RandomState(0).randint(0, 8, len(own))
        fold = np.array([fold[np.flatnonzero(asks == each)[0]] for each in asks])
        found = np.zeros(len(own))
        for left in range(8):
            out = fold == left
            found[out] = self.fit_asks(own[~out]).predict([self.parts[i].ask for i in own[out]])
        return found

    @staticmethod
    def filled(matrix: np.ndarray, gaps: np.ndarray, asks: np.ndarray) -> np.ndarray:
        """Fill in the two learned features."""
        return np.c_[matrix[:, :-2], gaps, asks]

    def fit_trees(
        self, own: np.ndarray, gaps: dict[str, np.ndarray], model: GapModel, chosen: dict[str, np.ndarray]
    ) -> tuple[Trees, AskModel]:
        """Fit the trees to some examples, and those of exams to some benchmark rows beside them."""
        asks = self.fit_asks(own)
        x = self.filled(self.matrix[own], self.gaps(own, model), self.unseen_asks(own))
        random = np.random.RandomState(1)
        bench = []
        for name, picked in chosen.items():
            few = random.permutation(picked)[: BENCH_ROWS[name]]
            bench += [self.bench_rows(name, few, gaps[name][few], asks)] * REPEATED[name]
        return Trees(self.names).fit(x, self.levels[own], self.weights[own], np.vstack(bench)), asks

    def bench_rows(self, name: str, rows: np.ndarray, gaps: np.ndarray, asks: AskModel) -> np.ndarray:
        """Some rows of a benchmark with the learned features."""
        matrix, seen = self.bench[name]
        return self.filled(matrix[rows], gaps, asks.predict([seen[i].ask for i in rows]))

    def own_rows(self, rows: np.ndarray, model: GapModel, asks: AskModel) -> np.ndarray:
        """Some examples with the learned features."""
        return self.filled(self.matrix[rows], self.gaps(rows, model), asks.predict([self.parts[i].ask for i in rows]))

    def gaps(self, rows: np.ndarray, model: GapModel) -> np.ndarray:
        """The gaps of some examples; 0 where features.of gives 0, since they aren't English."""
        return model.predict([self.parts[i] for i in rows]) * self.matrix[rows, self.names.index("english")]

    def folds(self, seed: int) -> Iterator[dict[str, np.ndarray]]:
        """Five masks over each set: True is the fifth that is left out."""
        random = np.random.RandomState(seed)
        drawn = {name: random.permutation(len(prompts)) % 5 for name, prompts in self.sets.items()}
        for fold in range(5):
            yield {name: each == fold for name, each in drawn.items()}

    def out_of_fold_gaps(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Each benchmark row's estimate by a model that hasn't seen it."""
        found = {name: np.zeros(len(prompts)) for name, prompts in self.sets.items()}
        for left in self.folds(seed):
            model = self.fit_gap({name: np.flatnonzero(~mask) for name, mask in left.items()})
            for name, mask in left.items():
                found[name][mask] = model.predict([self.bench[name][1][i] for i in np.flatnonzero(mask)])
        return found


class Trees:
    """A few boosted models with different draws, whose mean is steadier than each, and one that tells exams."""

    def __init__(self, names: Sequence[str]) -> None:
        """Exams alone may look at the column `english`: the benchmarks are English, the asks aren't."""
        self.english, self.leads = names.index("english"), names.index("deep_leads")

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, exams: np.ndarray) -> Trees:
        """Fit each with its own seed."""
        blind = x.copy()
        blind[:, self.english] = 0.0
        self.members = [
            GradientBoostingRegressor(random_state=seed, **TREES).fit(blind, y, weight) for seed in range(BAG)
        ]
        both = np.vstack([x, exams])[:, :-2]
        is_exam = np.repeat([0, 1], [len(x), len(exams)])
        share = np.repeat([1 / len(x), EXAM_SHARE / len(exams)], [len(x), len(exams)]) * len(both)
        self.exam = GradientBoostingClassifier(random_state=0, **EXAM_TREES).fit(both, is_exam, share)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """What score.raw gives."""
        own = np.mean([member.predict(x) for member in self.members], axis=0)
        exam = x[:, self.english] / (1 + np.exp(-score.SHARP * self.exam.decision_function(x[:, :-2])))
        exam[(x[:, self.leads] > 0) & (own >= score.SECOND)] = 0.0
        return own + exam * (score.CENTRE + score.SLOPE * x[:, -2] - own)

    def tables(self) -> dict[str, Any]:
        """What auto.json holds of it."""
        stages = [stage for member in self.members for stage in member.estimators_[:, 0]]
        base = np.mean([member.init_.constant_[0][0] for member in self.members])
        prior = self.exam.init_.class_prior_
        return {
            "trees": [tree_table(stage.tree_, TREES["learning_rate"] / BAG) for stage in stages],
            "base": round(float(base), 5),
            "exam": [tree_table(stage.tree_, EXAM_TREES["learning_rate"]) for stage in self.exam.estimators_[:, 0]],
            "exam_base": round(float(np.log(prior[1] / prior[0])), 5),
        }


def moves(x: np.ndarray, names: Sequence[str], model: Trees) -> dict[str, list[float]]:
    """A linear model of the trees over the examples, to say what moved a score: mean and weight of each feature."""
    mean, spread = x.mean(0), x.std(0) + 1e-9
    line = Ridge(10.0).fit((x - mean) / spread, model.predict(x)).coef_ / spread
    told = {n: [round(float(m), 3), round(float(w), 4)] for n, m, w in zip(names, mean, line, strict=True) if w}
    heaviest_first = np.argsort(-abs(line * spread))[:TOLD]
    return {names[at]: told[names[at]] for at in heaviest_first if names[at] in told}


def tree_table(nodes: Any, rate: float) -> list[list[float]]:
    """A tree in preorder, so that a node's left child is the next node; values include the learning rate."""
    order, todo = [], [0]
    while todo:
        at = todo.pop()
        order.append(at)
        if nodes.children_left[at] >= 0:
            todo += [nodes.children_right[at], nodes.children_left[at]]
    place = {at: index for index, at in enumerate(order)}
    leaf = [nodes.children_left[at] < 0 for at in order]
    value = [nodes.value[at][0][0] * rate if end else nodes.threshold[at] for at, end in zip(order, leaf, strict=True)]
    return [
        [-1 if end else int(nodes.feature[at]) for at, end in zip(order, leaf, strict=True)],
        [round(float(each), 4) for each in value],
        [0 if end else place[nodes.children_right[at]] for at, end in zip(order, leaf, strict=True)],
    ]


def apgr(prompts: Sequence[Prompt], scores: np.ndarray) -> float:
    """The figure of evaluate_auto for an array of scores."""
    return evaluate_auto.apgr(list(prompts), list(scores))


def check(learner: Learner) -> None:
    """Print what the learned part reaches on what it hasn't seen."""
    gaps = learner.out_of_fold_gaps()
    print("gap model alone, APGR:", {name: round(apgr(p, gaps[name]), 3) for name, p in learner.sets.items()})
    scores = {name: np.zeros(len(prompts)) for name, prompts in learner.sets.items()}
    everything = np.arange(len(learner.rows))
    for left in learner.folds(0):
        kept = {name: np.flatnonzero(~mask) for name, mask in left.items()}
        trees, asks = learner.fit_trees(everything, gaps, learner.fit_gap(kept), kept)
        for name, mask in left.items():
            rows = np.flatnonzero(mask)
            scores[name][rows] = trees.predict(learner.bench_rows(name, rows, gaps[name][rows], asks))
    print("whole model, APGR:", {name: round(apgr(p, scores[name]), 3) for name, p in learner.sets.items()})
    whole = {name: np.arange(len(prompts)) for name, prompts in learner.sets.items()}
    model = learner.fit_gap(whole)
    languages = np.array([row["lang"] for row in learner.rows])
    asked = np.array([crc32(" ".join(sorted(part.ask)).encode()) % 6 for part in learner.parts])
    for title, groups in (("each language left out", languages), ("sixths left out", asked)):
        guessed = np.zeros(len(groups))
        for group in sorted(set(groups)):
            out = groups == group
            trees, asks = learner.fit_trees(np.flatnonzero(~out), gaps, model, whole)
            guessed[out] = trees.predict(learner.own_rows(np.flatnonzero(out), model, asks))
        found = np.digitize(guessed, (score.FIRST, score.SECOND))
        right, far = float(np.mean(found == learner.levels)), int(np.sum(abs(found - learner.levels) == 2))
        english = float(np.mean((found == learner.levels)[languages == "en"]))
        print(f"examples, {title}: {right:.3f} right, English {english:.3f}, off by two {far}")
    names = [evaluate_auto.LEVELS[level] for level in found]
    print(evaluate_auto.confusion(zip((row["expect"] for row in learner.rows), names, strict=True)), "\n")
    for column in ("lang", "kind"):
        rows = ((row[column], row["expect"] == name) for row, name in zip(learner.rows, names, strict=True))
        print(evaluate_auto.table(column, rows), "\n")


def learn(learner: Learner) -> dict[str, Any]:
    """Fit to everything and give the learned tables."""
    whole = {name: np.arange(len(prompts)) for name, prompts in learner.sets.items()}
    everything = np.arange(len(learner.rows))
    gaps, model = learner.out_of_fold_gaps(), learner.fit_gap(whole)
    trees, asks = learner.fit_trees(everything, gaps, model, whole)
    told = moves(learner.own_rows(everything, model, asks), learner.names, trees)
    learned = {"features": learner.names, **trees.tables(), "moves": told, **model.tables()}
    return {**learned, "asks": asks.table()}


def main() -> None:
    """Read, fit, and write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    learner = Learner(examples(), benchmarks(args.benchmarks))
    if args.check:
        check(learner)
        return
    tables = json.loads(FILE.read_text(encoding="utf-8"))
    tables.update(learn(learner))
    FILE.write_text(dump(tables), encoding="utf-8")


def dump(tables: dict[str, Any]) -> str:
    """JSON with one line a word list, a tree or a word, for reviewing and for diffs."""
    lines = []
    for key, value in tables.items():
        if isinstance(value, dict) and key != "syntax":
            inner = []
            for name, held in value.items():
                if isinstance(held, dict):
                    listed = ",\n   ".join(
                        f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}"
                        for k, v in held.items()
                    )
                    inner.append(f"{json.dumps(name)}: {{\n   {listed}}}")
                else:
                    inner.append(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(held, ensure_ascii=False)}")
            lines.append(f"{json.dumps(key)}: {{\n  " + ",\n  ".join(inner) + "}")
        elif key in ("trees", "exam"):
            lines.append(
                f'"{key}": [\n  ' + ",\n  ".join(json.dumps(tree, separators=(",", ":")) for tree in value) + "]"
            )
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
