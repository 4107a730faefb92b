from __future__ import annotations

import pytest

from bench.guard import judge
from bench.guard.measure import Least, least

RECORDED = {"request": 0.5, "chunk": 0.02}


@pytest.mark.parametrize(
    ("share", "holds", "said"),
    [
        (1.0, True, "1.00 times"),
        (1.06, True, "1.06 times"),
        (judge.BOUND + 0.001, False, "is noise"),
        (1.2, False, "1.20 times"),
        (0.8, True, "record it"),
    ],
)
@pytest.mark.parametrize("name", RECORDED)
def test_a_fifth_more_fails_and_noise_does_not(name: str, share: float, holds: bool, said: str) -> None:
    found = {one: cost * share if one == name else cost for one, cost in RECORDED.items()}
    verdicts = dict(zip(found, judge.judged(found, RECORDED), strict=True))
    assert holds == verdicts[name].holds
    assert said in verdicts[name].said
    assert all(verdict.holds for one, verdict in verdicts.items() if one != name)


def test_a_cost_that_nobody_recorded_fails() -> None:
    (verdict,) = judge.judged({"turn": 1.0}, RECORDED)
    assert not verdict.holds
    assert "--record" in verdict.said


def test_a_cost_is_in_yardsticks() -> None:
    assert {"request": 0.5, "chunk": 0.025} == judge.costs(Least(request=2, chunk=0.1, yardstick=4))


def test_the_least_of_all_processes_counts() -> None:
    first, second = Least(request=3, chunk=1, yardstick=9), Least(request=2, chunk=4, yardstick=8)
    assert Least(request=2, chunk=1, yardstick=8) == least([first, second])


def test_the_middle_run_is_recorded() -> None:
    assert {"request": 0.5} == judge.middle([{"request": cost} for cost in (0.9, 0.5, 0.4)])
