import itertools

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import nearby

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "gpt-6-sol", "gpt-6.1-sol", "deepseek-v4.1-flash", "opus")
KEYS = ("input", "output", "cached_input", "cache_write", "api_key", "base_url", "context_window", "has")

NEAR = {
    "two letters swapped": ("opsu", MODELS, ("opus",)),
    "one letter wrong": ("gpt-7-sol", MODELS, ("gpt-6-sol", "gpt-6.1-sol")),
    "another mark": ("claude-opus-5.5", MODELS, ("claude-opus-5-5", "opus", "claude-sonnet-5-5")),
    "no marks": ("gpt6sol", MODELS, ("gpt-6-sol", "gpt-6.1-sol")),
    "upper case": ("GPT-6-SOL", MODELS, ("gpt-6-sol", "gpt-6.1-sol")),
    "an older one of the family": ("gpt-4o", MODELS, ("gpt-6-sol", "gpt-6.1-sol")),
    "a part of the name": ("sonnet", MODELS, ("claude-sonnet-5-5",)),
    "a vendor before the name": ("openai/gpt-6-sol", MODELS, ("gpt-6-sol",)),
    "nothing alike": ("gemini", MODELS, ()),
    "a slip in a key": ("inptu", KEYS, ("input",)),
    "an underscore forgotten": ("apikey", KEYS, ("api_key",)),
    "a short word": ("ahs", KEYS, ("has",)),
    "no word": ("", KEYS, ()),
    "marks only": ("--", KEYS, ()),
    "no names": ("input", (), ()),
    "longer than any slip": ("input" * 20, KEYS, ()),
}


@pytest.mark.parametrize(("word", "names", "near"), NEAR.values(), ids=NEAR)
def test_the_near_names_of_a_word_come_nearest_first(word: str, names: tuple[str, ...], near: tuple[str, ...]) -> None:
    assert near == nearby.near(word, names)


def test_only_allowed_names_are_given_though_others_are_nearer() -> None:
    index = nearby.NearNames(MODELS)

    assert index.find("gpt-6-sol", allowed=lambda name: name == "gpt-6.1-sol") == ("gpt-6.1-sol",)


def test_the_right_one_is_found_among_a_thousand() -> None:
    parts = (("claude", "gpt", "llama", "qwen"), ("opus", "sol", "flash", "nano", "max"), "0123456789", "01234")
    names = ["-".join(part) for part in itertools.product(*parts)]

    assert len(names) == 1000
    assert nearby.NearNames(names).find("lama-flash-7-3")[0] == "llama-flash-7-3"


def test_equally_near_names_keep_their_order_and_there_are_three_at_most() -> None:
    assert nearby.near("word", ("ward", "wird", "worm", "cord")) == ("ward", "wird", "worm")


NAMES = st.text("abcdefgh-_. é", min_size=1, max_size=20)


@hypothesis.settings(deadline=None)
@given(st.lists(NAMES, max_size=30), NAMES)
def test_near_names_are_of_the_names_and_each_once(names: list[str], word: str) -> None:
    found = nearby.near(word, names)

    assert len(found) == len(set(found)) <= 3
    assert set(found) <= set(names)


@hypothesis.settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=20), st.data())
def test_a_name_that_is_there_is_among_its_own_near_ones(names: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(names))
    rivals = [name for name in names if nearby._squash(name) == nearby._squash(word)]

    assert nearby.near(word, names)[0] in rivals


@pytest.mark.parametrize(
    ("words", "text"), [((), ""), (("a",), "; did you mean a?"), (("a", "b", "c"), "; did you mean a, b or c?")]
)
def test_near_names_end_a_message(words: tuple[str, ...], text: str) -> None:
    assert text == nearby.did_you_mean(words)
