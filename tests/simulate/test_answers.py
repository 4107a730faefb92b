from typing import Any

import msgspec
import pytest

from simulate.helpers import NO_WISH, WEATHER, ask
from zurelay.simulate import answers, faults
from zurelay.simulate.faults import Fault, Wish
from zurelay.simulate.nouns import Answer, Ask, Choice, Finish, Tool, Usage

TOOLS = (Tool("get_weather", WEATHER), Tool("get_time", {"type": "object", "properties": {}}))


def compose(asked: Ask, spec: str = "ok", wish: Wish = NO_WISH) -> Answer:
    return answers.compose(asked, faults.parse(spec), wish, id="x", created=5)


def first(asked: Ask, spec: str = "ok", wish: Wish = NO_WISH) -> Choice:
    return compose(asked, spec, wish).choices[0]


def text_of(choice: Choice) -> str:
    return "".join(choice.text)


CALLED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the first tool": ({"text": "Hi"}, ["get_weather"]),
    "the tool that is named": ({"text": "Use get_time please"}, ["get_time"]),
    "all that are named": ({"text": "get_time and get_weather"}, ["get_weather", "get_time"]),
    "one where several may not be": ({"text": "get_time and get_weather", "parallel": False}, ["get_weather"]),
    "none on request": ({"text": "get_time", "choice": "none"}, []),
    "the one demanded": ({"text": "get_weather", "choice": "get_time"}, ["get_time"]),
    "none after a result": ({"text": "Hi", "results": ("12 C",)}, []),
    "one after a result where required": ({"text": "Hi", "results": ("12 C",), "choice": "required"}, ["get_weather"]),
    "none where there are none": ({"tools": (), "choice": "required"}, []),
}


@pytest.mark.parametrize("name", CALLED)
def test_tools_are_called_as_asked(name: str) -> None:
    fields, expected = CALLED[name]
    choice = first(ask(**{"tools": TOOLS, **fields}))
    assert (expected, Finish.TOOLS if expected else Finish.STOP) == (
        [call.name for call in choice.calls],
        choice.finish,
    )


def test_a_call_has_arguments_that_fit() -> None:
    call = first(ask(text="How is it in Paris?", tools=TOOLS)).calls[0]
    assert msgspec.json.decode("".join(call.arguments)) == {"city": "Paris"}


def test_calls_have_ids_of_their_own() -> None:
    asked = ask(text="get_time get_weather", tools=TOOLS, n=2)
    ids = [call.id for choice in compose(asked).choices for call in choice.calls]
    assert len(set(ids)) == 4


def test_a_result_is_told() -> None:
    assert "12 C" in text_of(first(ask(text="Hi", tools=TOOLS, results=("12 C",))))


def test_a_schema_is_filled() -> None:
    said = text_of(first(ask(text="How is Paris?", schema=WEATHER)))
    assert msgspec.json.decode(said) == {"city": "Paris"}


def test_thinking_comes_with_a_level_and_counts_as_output() -> None:
    answer = compose(ask(text="Hi", level=3))
    thought, said = len(answer.choices[0].thoughts), len(answer.choices[0].text)
    assert (True, Usage(input=1, output=thought + said, reasoning=thought)) == (thought > 0, answer.usage)


def test_several_choices_differ() -> None:
    choices = compose(ask(text="Hi", n=3)).choices
    assert len({text_of(choice) for choice in choices}) == 3


def test_a_stop_sequence_ends_the_text_before_it() -> None:
    whole = text_of(first(ask(text="Hi")))
    cut = first(ask(text="Hi", stop=("never", "simulated", "This is")))
    expected = (whole[: whole.index("This is")], Finish.STOP_SEQUENCE, "This is")
    assert expected == (text_of(cut), cut.finish, cut.stop_sequence)


LIMITS = {
    "enough": (100, (7, 15, Finish.STOP)),
    "part of the text": (10, (7, 3, Finish.LENGTH)),
    "no text": (7, (7, 0, Finish.LENGTH)),
    "part of the thoughts": (2, (2, 0, Finish.LENGTH)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_cuts_what_comes_last(name: str) -> None:
    limit, expected = LIMITS[name]
    wish = Wish(reasoning="a b c d e f g", text="a b c d e f g h i j k l m n o")
    choice = first(ask(limit=limit), wish=wish)
    assert expected == (len(choice.thoughts), len(choice.text), choice.finish)


def test_a_limit_cuts_calls_too() -> None:
    whole = first(ask(text="get_time get_weather", tools=TOOLS))
    cut = first(ask(text="get_time get_weather", tools=TOOLS, limit=1))
    expected = (["get_weather"], whole.calls[0].arguments[:1], Finish.LENGTH)
    assert expected == ([call.name for call in cut.calls], cut.calls[0].arguments, cut.finish)


FILLED = {
    "tokens:7": (7, None),
    "tokens:0": (0, 0),
    "tokens:4+size:10": (4, 40),
    "size:1": (20, 20),
    "big:5000": (5, 5000),
    "big:5000+size:7": (715, 5000),
    "big:0": (0, 0),
}


@pytest.mark.parametrize("spec", FILLED)
def test_an_answer_has_the_length_asked_for_whatever_its_limit(spec: str) -> None:
    count, size = FILLED[spec]
    choice = first(ask(text="Hi", tools=TOOLS, limit=1), spec)
    said = text_of(choice)
    assert (count, len(said) if size is None else size, Finish.STOP) == (len(choice.text), len(said), choice.finish)


def test_a_wish_says_what_is_said() -> None:
    choice = first(ask(text="Hi", tools=TOOLS, level=2), wish=Wish(text="exactly this", reasoning="and that"))
    assert (text_of(choice), "".join(choice.thoughts)) == ("exactly this", "and that")


def test_a_refusal_is_one() -> None:
    choice = first(ask(text="Hi", level=2), "refusal")
    assert (choice.thoughts, text_of(choice), choice.finish) == ((), "I can't help with that.", Finish.REFUSAL)


USED = {
    "ok": Usage(input=50, output=3),
    "no-usage": None,
    "input:7+output:9+reasoning:4+cached:2+written:1": Usage(input=7, output=9, reasoning=4, cached=2, written=1),
    "output:3+reasoning:9": Usage(input=50, output=3, reasoning=3),
    "reasoning:9": Usage(input=50, output=12, reasoning=9),
}


@pytest.mark.parametrize("spec", USED)
def test_usage_is_counted_unless_it_is_told(spec: str) -> None:
    assert USED[spec] == compose(ask(prompt_tokens=50), spec, Wish(text="a b c")).usage


def test_the_same_request_has_the_same_answer() -> None:
    asked = ask(text="Where is Lisbon?", level=4, n=2)
    assert compose(asked) == compose(asked)


def test_the_answer_knows_how_it_is_to_be_written() -> None:
    answer = compose(ask(include_usage=True, hide_thoughts=True), "reasoning-field+usage-beside")
    expected = (True, True, "reasoning", True)
    assert expected == (answer.include_usage, answer.hide_thoughts, answer.reasoning_field, answer.usage_beside)


def test_a_fault_without_words_changes_nothing() -> None:
    assert compose(ask(text="Hi")) == answers.compose(ask(text="Hi"), Fault(), NO_WISH, id="x", created=5)
