from __future__ import annotations

import pytest

from bench import figures, goals
from bench.goals import Bound, Goal, Met

UNDER = Goal(what="", title="", name="", unit="ms", must=Bound(1.8, over=False), aim=Bound(1.3, over=False))
OVER = Goal(what="", title="", name="", unit="/s", must=Bound(1300, over=True), aim=Bound(2000, over=True))
AIM_ALONE = Goal(what="", title="", name="", unit="x", aim=Bound(1, over=False))


@pytest.mark.parametrize(
    ("goal", "found", "met"),
    [
        (UNDER, 1.29, Met.AIM),
        (UNDER, 1.3, Met.MUST),
        (UNDER, 1.8, Met.NO),
        (OVER, 2001, Met.AIM),
        (OVER, 1301, Met.MUST),
        (OVER, 1300, Met.NO),
        (AIM_ALONE, 0.99, Met.AIM),
        (AIM_ALONE, 1.0, Met.NO),
        (UNDER, None, Met.UNKNOWN),
    ],
)
def test_a_goal_is_met_as_its_bounds_say(goal: Goal, found: float | None, met: Met) -> None:
    assert met == goals.met(goal, found)


def test_a_goal_by_another_target_is_a_ratio() -> None:
    found = figures.Figures()
    rate = figures.Quantity(title=figures.WHOLE, name="a second, 32 connections", unit="/s")
    found.add(rate, figures.ZURELAY, 3000)
    found.add(rate, figures.LITELLM, 200)
    judged = {one.goal.what: one for one in goals.judged(found.all())}
    assert (15.0, Met.NO) == (judged["requests by LiteLLM's"].found, judged["requests by LiteLLM's"].met)
    assert judged["requests by Portkey's"].met is Met.UNKNOWN


def test_a_goal_by_a_target_that_did_nothing_is_not_judged() -> None:
    found = figures.Figures()
    rate = figures.Quantity(title=figures.WHOLE, name="a second, 32 connections", unit="/s")
    found.add(rate, figures.ZURELAY, 3000)
    found.add(rate, figures.LITELLM, 0)
    judged = {one.goal.what: one for one in goals.judged(found.all())}
    assert judged["requests by LiteLLM's"].met is Met.UNKNOWN
