"""The linear model of the gap between models."""

from collections import Counter

import pytest

from zurelay.auto import gap, lexicon


def syntax(text: str) -> dict[str, float]:
    words = lexicon.split(text.lower())
    return gap.syntax(text, Counter(words), len(words), sum(word[0].isdigit() for word in words))


@pytest.mark.parametrize(
    ("name", "more", "less"),
    [
        ("subclause", "the man who left when it rained", "the man left in rain"),
        ("comparison", "more than twice, older than her", "two of it"),
        ("order", "first this, then that, finally", "this and that"),
        ("multiple", "half of it, three times, 5 percent", "all of it"),
        ("negation", "not without a cause, never", "with a cause"),
        ("condition", "if so, suppose, unless", "it is so"),
        ("commas", "a, b, c; d", "a b c d"),
        ("sentences", "One. Two. Three? ", "One two three"),
        ("numbers", "1 and 2 and 3", "one and two"),
        ("lines", "a\nb\nc", "a b c"),
        ("length", "a long text of many words", "short"),
    ],
)
def test_syntax_counts_what_its_name_says(name: str, more: str, less: str) -> None:
    assert syntax(more)[name] > syntax(less)[name]


@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        ("Tom has 3 apples and buys 5. How many has he?", 2, True),
        ("Tom has 3 apples. How many has he?", 1, False),
        ("Which of 3 and 5 is larger?", 2, False),
        ("He knows how to run 3 of 5.", 2, False),
    ],
)
def test_a_word_problem_has_numbers_and_asks_for_a_quantity(text: str, numbers: int, expected: bool) -> None:
    assert gap.is_word_problem(lexicon.split(text.lower()), numbers) is expected


def test_in_a_word_problem_the_subject_says_nothing() -> None:
    built = syntax("Tom has 3 apples.")

    assert gap.estimate(9.0, built, word_problem=True) == gap.estimate(-9.0, built, word_problem=True)
    assert gap.estimate(9.0, built, word_problem=False) == pytest.approx(
        gap.estimate(0.0, built, word_problem=False) + 9.0
    )
