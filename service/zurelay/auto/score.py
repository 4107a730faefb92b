"""A turn's score from its features: boosted trees, learned by tools/learn_auto.py, as a walk over arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import TypeAlias

from zurelay.auto.data import TABLES, Tree

# (feature, threshold, where not above it, where above it); a leaf is (-1, its value, None, None).
Node: TypeAlias = "tuple[int, float, Node | None, Node | None]"

# The trees put simple, standard and complex at 0, 1 and 2; about halfway between two lies the default threshold.
FIRST, SECOND = 0.6, 1.48
LOW, HIGH = 0.35, 0.65
_SCALE = (HIGH - LOW) / (SECOND - FIRST)
# An exam question, as benchmarks ask them, is standard at its mean, and goes by how far a strong model is better.
SHARP, CENTRE, SLOPE = 3.0, 0.95, 4.5
HARDLY = 0.01


def nodes(tree: Tree, at: int = 0) -> Node:
    """A tree of the tables as nested nodes."""
    feature, threshold = tree.feature[at], tree.threshold[at]
    if feature < 0:
        return -1, threshold, None, None
    return feature, threshold, nodes(tree, at + 1), nodes(tree, tree.right[at])


_values = operator.itemgetter(*TABLES.features)
_TREES = tuple(map(nodes, TABLES.trees))
_EXAM = tuple(map(nodes, TABLES.exam))


def of(features: Mapping[str, float]) -> float:
    """The score of a turn, from 0 (simple) to 1 (complex)."""
    return min(1.0, max(0.0, LOW + (raw(features) - FIRST) * _SCALE))


def raw(features: Mapping[str, float]) -> float:
    """The sum of all trees, and what exam questions go by in so far as it reads as one.

    An ask that begins or ends with hard work (to prove, to design) and is complex for it is no question of an exam,
    whatever text comes along: there, no word says what is asked.
    """
    values = _values(features)
    own = TABLES.base + _sum(_TREES, values)
    if not features["english"] or (features["deep_leads"] and own >= SECOND):
        return own
    exam = 1 / (1 + math.exp(-SHARP * (TABLES.exam_base + _sum(_EXAM, values))))
    if exam < HARDLY:
        return own
    return own + exam * (CENTRE + SLOPE * features["gap"] - own)


def _sum(trees: tuple[Node, ...], values: tuple[float, ...]) -> float:
    total = 0.0
    for tree in trees:
        feature, value, left, right = tree
        while left and right:
            feature, value, left, right = left if values[feature] <= value else right
        total += value
    return total


def reasons(features: Mapping[str, float], most: int = 4) -> tuple[str, ...]:
    """The features that moved the score most, by a linear model of the trees, each with its share of the score."""
    moved = [(weight * (features[name] - mean), name) for name, (mean, weight) in TABLES.moves.items()]
    moved.sort(key=_size, reverse=True)
    return tuple(f"{name} {share * _SCALE:+.2f}" for share, name in moved[:most])


def _size(item: tuple[float, str]) -> float:
    return abs(item[0])
