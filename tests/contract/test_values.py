from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.contract.values import Seconds, at, normal, say


@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param({"timeout": "600.000s"}, {"timeout": "600s"}, id="durations"),
        pytest.param({"size": 1 << 40}, {"size": str(1 << 40)}, id="64-bit integers"),
        pytest.param({"mode": "NONE", "on": False, "n": 0, "name": "", "list": [], "gone": None}, {}, id="zeros"),
    ],
)
def test_two_spellings_are_one_value(written: Any, told: Any) -> None:
    assert normal(written) == normal(told)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"timeout": "0s"}, {}, id="a timeout of nothing is none at all"),
        pytest.param({"http2": {}}, {}, id="an empty message is there"),
        pytest.param({"list": [0]}, {"list": []}, id="a zero in a list is there"),
    ],
)
def test_what_differs_stays_different(one: Any, other: Any) -> None:
    assert normal(one) != normal(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["1s", "0.5s", "7", "NONE"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_normal_stays_normal_and_can_be_said(value: Any) -> None:
    once = normal(value)

    assert normal(once) == once
    assert say(once)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b", 1),
        ("a.c.0.d", 2),
        ("a.c.1.d", None),
        ("a.b.c", None),
        ("a.c.x", None),
        ("x", None),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, found: Any) -> None:
    assert at({"a": {"b": 1, "c": [{"d": 2}]}}, path) == found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "unset"),
        (Seconds(20), "20s"),
        (Seconds(0.25), "0.25s"),
        ("CLEAR", "CLEAR"),
        (True, "true"),
        (7, "7"),
        ({"a": [Seconds(1)]}, '{"a":["1s"]}'),
        (["x" * 300], '["' + "x" * 117 + "…"),
    ],
)
def test_values_are_said_for_people(value: Any, said: str) -> None:
    assert say(value) == said
