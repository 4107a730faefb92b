"""A turn's score from its features: boosted trees, learned by tools/learn_auto.py, as a walk over arrays."""

from __future__ import annotations

from collections.abc import Mapping

from zurelay.auto.data import TABLES

_FEATURES = TABLES.features
_TREES = tuple((tree.feature, tree.threshold, tree.right) for tree in TABLES.trees)

# The trees put simple, standard and complex at 0, 1 and 2; halfway between two lies the default threshold.
_FIRST, _SECOND = 0.55, 1.35
# The trees blur the gap a little; adding it keeps its order among texts that are otherwise alike.
GAP = 1.0
LOW, HIGH = 0.35, 0.65
_SCALE = (HIGH - LOW) / (_SECOND - _FIRST)


def of(features: Mapping[str, float]) -> float:
    """The score of a turn, from 0 (simple) to 1 (complex)."""
    return min(1.0, max(0.0, LOW + (raw(features) - _FIRST) * _SCALE))


def raw(features: Mapping[str, float]) -> float:
    """The sum of all trees."""
    values = [features[name] for name in _FEATURES]
    total = TABLES.base + GAP * features["gap"]
    for split, threshold, right in _TREES:
        node = 0
        feature = split[0]
        while feature >= 0:
            node = node + 1 if values[feature] <= threshold[node] else right[node]
            feature = split[node]
        total += threshold[node]
    return total


def reasons(features: Mapping[str, float], most: int = 4) -> tuple[str, ...]:
    """The features that moved the score most, by a linear model of the trees, each with its share of the score."""
    moved = [(weight * (features[name] - mean), name) for name, (mean, weight) in TABLES.moves.items()]
    moved.sort(key=_size, reverse=True)
    return tuple(f"{name} {share * _SCALE:+.2f}" for share, name in moved[:most])


def _size(item: tuple[float, str]) -> float:
    return abs(item[0])
