"""The walk over the trees."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.auto import content, features, score
from zurelay.auto.data import TABLES, Tree
from zurelay.model import Auto

BLANK = features.of(content.Content(), content.Turn(role=content.Role.USER, text=""))


def of(text: str) -> dict[str, float]:
    return features.of(content.Content(), content.Turn(role=content.Role.USER, text=text))


def test_the_sum_of_the_trees_is_taken_leaf_by_leaf() -> None:
    found = of("Prove that there are infinitely many primes.")
    values = [found[name] for name in TABLES.features]

    def leaf(split: tuple[int, ...], at: tuple[float, ...], right: tuple[int, ...], node: int) -> float:
        if split[node] < 0:
            return at[node]
        return leaf(split, at, right, node + 1 if values[split[node]] <= at[node] else right[node])

    def total(trees: tuple[Tree, ...]) -> float:
        return sum(leaf(tree.feature, tree.threshold, tree.right, 0) for tree in trees)

    own = TABLES.base + total(TABLES.trees)
    exam = 1 / (1 + math.exp(-score.SHARP * (TABLES.exam_base + total(TABLES.exam))))
    by_gap = score.CENTRE + score.SLOPE * found["gap"]
    assert score.raw(found) == pytest.approx(own + exam * (by_gap - own), abs=score.HARDLY * 3)


def test_the_default_thresholds_are_those_of_the_settings() -> None:
    assert Auto().thresholds == (score.LOW, score.HIGH)


@given(st.dictionaries(st.sampled_from(TABLES.features), st.floats(-1e6, 1e6), max_size=20))
def test_a_score_lies_between_nought_and_one(changed: dict[str, float]) -> None:
    assert 0.0 <= score.of({**BLANK, **changed}) <= 1.0


def test_reasons_are_few_and_name_features() -> None:
    told = score.reasons(of("Prove that there are infinitely many primes."))

    assert len(told) == 4
    assert all(reason.split()[0] in TABLES.features for reason in told)
