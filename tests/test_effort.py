"""Reasoning effort: words, the nearest level, what is sent and what is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import model
from zurelay import effort
from zurelay.errors import InvalidRequest
from zurelay.model import Effort

LEVELS = st.sets(st.sampled_from(Effort), min_size=1).map(lambda found: tuple(sorted(found)))
NEAREST = {
    "accepted as it is": ("high", "low medium high", "high"),
    "one step down": ("xhigh", "low high", "high"),
    "one step up": ("minimal", "low high", "low"),
    "two equally near: the lower": ("medium", "low high", "low"),
    "two equally near, further out: the lower": ("medium", "minimal xhigh", "minimal"),
    "the top of the ladder": ("max", "low medium", "medium"),
    "minimal never turns reasoning off": ("minimal", "none medium", "medium"),
    "low never turns reasoning off": ("low", "none max", "max"),
    "none where it is accepted": ("none", "none low", "none"),
    "none where reasoning can't be turned off: the lowest": ("none", "medium high", "medium"),
    "a model that only knows none": ("high", "none", "none"),
    "Opus 4.6 without xhigh": ("xhigh", "low medium high max", "high"),
    "Gemini 3.1 Pro takes no minimal": ("minimal", "low high", "low"),
}


@pytest.mark.parametrize(
    ("asked", "levels", "expected"), [pytest.param(*row, id=name) for name, row in NEAREST.items()]
)
def test_a_level_runs_at_the_nearest_accepted(asked: str, levels: str, expected: str) -> None:
    accepted = tuple(Effort[word] for word in levels.split())
    assert Effort[expected] is effort.nearest(Effort[asked], accepted)


def by_brute_force(asked: Effort, levels: tuple[Effort, ...]) -> Effort:
    """The rule of SPEC 4, word by word."""
    if asked in levels:
        return asked
    if asked is Effort.none:
        return levels[0]
    best = None
    for level in levels:  # from the lowest up: of two equally near the first stays
        nearer = best is None or abs(level - asked) < abs(best - asked)
        if level is not Effort.none and nearer:
            best = level
    return Effort.none if best is None else best


@given(st.sampled_from(Effort), LEVELS)
def test_the_nearest_is_the_one_that_brute_force_finds(asked: Effort, levels: tuple[Effort, ...]) -> None:
    assert by_brute_force(asked, levels) is effort.nearest(asked, levels)


@given(st.sampled_from(Effort), LEVELS)
def test_clamping_twice_is_clamping_once(asked: Effort, levels: tuple[Effort, ...]) -> None:
    once = effort.nearest(asked, levels)
    assert once is effort.nearest(once, levels)


@given(st.sampled_from(Effort), LEVELS, st.randoms())
def test_the_order_of_the_levels_says_nothing(asked: Effort, levels: tuple[Effort, ...], random: object) -> None:
    shuffled = list(levels)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis types its Random loosely
    assert effort.nearest(asked, levels) is effort.nearest(asked, tuple(shuffled))


@pytest.mark.parametrize("word", [level.name for level in Effort])
def test_each_word_of_the_ladder_is_read(word: str) -> None:
    assert Effort[word] is effort.parse(word, (model("first", levels="low"),))


@pytest.mark.parametrize("word", ["", "High", "HIGH", " high", "high ", "extreme", "off", "disabled", "4", "default"])
def test_any_other_word_is_refused(word: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        effort.parse(word, (model("first", levels="low medium high"),))
    error = caught.value
    assert ("invalid_reasoning_effort", "reasoning_effort", 400) == (error.code, error.param, error.status)
    assert f"{word!r} is not a reasoning level. Send one of: low, medium, high." == error.message


LISTS = {
    "one model": ("low MEDIUM", "", "Send one of: low, medium."),
    "several models: all that they take, in the ladder's order": ("xhigh high", "none high", "none, high, xhigh."),
    "one model without levels beside": ("low", None, "Send one of: low."),
    "no levels at all": (None, None, "first has no reasoning levels: leave the field out."),
}


@pytest.mark.parametrize(("one", "other", "expected"), [pytest.param(*row, id=name) for name, row in LISTS.items()])
def test_the_refusal_lists_what_the_models_take(one: str | None, other: str | None, expected: str) -> None:
    models = tuple(model(name, levels=levels or "") for name, levels in (("first", one), ("second", other)))
    with pytest.raises(InvalidRequest) as caught:
        effort.parse("much", models)
    assert caught.value.message.endswith(expected)


def test_a_refusal_repeats_no_more_than_a_word() -> None:
    with pytest.raises(InvalidRequest) as caught:
        effort.parse("x" * 5_000, (), "output_config.effort")
    assert len(caught.value.message) < 120
    assert caught.value.param == "output_config.effort"


APPLIED = {
    "asked and accepted": ("high", "low high", "high", "high"),
    "asked and clamped": ("max", "low high", "high", "high"),
    "left out, default known": (None, "low MEDIUM", None, "medium"),
    "left out, default unknown": (None, "low medium", None, None),
    "a model without levels ignores it": ("high", "", None, "none"),
    "a model without levels, left out": (None, "", None, "none"),
    "none asked and accepted": ("none", "none LOW", "none", "none"),
    "none asked, can't be turned off": ("none", "LOW high", "low", "low"),
}


@pytest.mark.parametrize(
    ("asked", "levels", "sent", "shown"), [pytest.param(*row, id=name) for name, row in APPLIED.items()]
)
def test_what_is_sent_and_what_is_shown(asked: str | None, levels: str, sent: str | None, shown: str | None) -> None:
    this = model("first", levels=levels)
    level = effort.applied(Effort[asked] if asked else None, this)
    assert (sent, shown) == (level.name if level is not None else None, effort.shown(level, this))


CAPPED = {
    "asked above the cap": ("max", "low medium high", "medium", "medium"),
    "asked below the cap": ("low", "low medium high", "medium", "low"),
    "left out, the default above the cap: the cap is sent": (None, "low medium HIGH", "medium", "medium"),
    "left out, the default at the cap: nothing is sent": (None, "low MEDIUM high", "medium", None),
    "left out, the default unknown: the cap is sent": (None, "low medium high", "medium", "medium"),
    "the cap is no level of the model: the nearest below": ("max", "low high", "medium", "low"),
    "a model without levels": ("max", "", "low", None),
}


@pytest.mark.parametrize(
    ("asked", "levels", "cap", "sent"), [pytest.param(*row, id=name) for name, row in CAPPED.items()]
)
def test_a_cap_bounds_what_is_sent(asked: str | None, levels: str, cap: str, sent: str | None) -> None:
    level = effort.applied(Effort[asked] if asked else None, model("first", levels=levels), Effort[cap])
    assert sent == (level.name if level is not None else None)


@given(st.none() | st.sampled_from(Effort), LEVELS, st.sampled_from(Effort))
def test_nothing_above_a_cap_is_sent_while_the_model_has_a_level_below(
    asked: Effort | None, levels: tuple[Effort, ...], cap: Effort
) -> None:
    this = model("first", levels=" ".join(level.name for level in levels))
    sent = effort.applied(asked, this, cap)
    assert sent is None or sent <= cap or min(levels) > cap


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, False), ("none", False), ("medium", False), ("high", True), ("xhigh", True), ("max", True)],
)
def test_the_longer_times_begin_at_high(asked: str | None, *, expected: bool) -> None:
    assert expected is effort.is_high(Effort[asked] if asked else None)
