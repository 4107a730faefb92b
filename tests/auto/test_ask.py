"""The ask of a turn, apart from its material."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.auto import ask

LONG = "The meeting began with the accounts of the year. " * 30


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("a short text is all ask", "What is this?\n\nIt was there.", "What is this?\n\nIt was there."),
        ("before the material", f"Summarise this.\n\n{LONG}", "Summarise this."),
        ("after the material", f"{LONG}\n\nWho spoke?", "Who spoke?"),
        (
            "around the material",
            f"Summarise this.\n\n{LONG}\n\nExplain each name.",
            "Summarise this.\nExplain each name.",
        ),
        ("a question after a greeting", f"Hello, here it is:\n\n{LONG}\n\nWho spoke?", "Who spoke?"),
        (
            "before code on the next line",
            "List the names.\nfn a() { b(1); }\n" * 1 + "x = [1];\n" * 99,
            "List the names.",
        ),
        ("after a line of dashes", f"Who spoke?\n---\n{LONG}", "Who spoke?"),
        ("beside a tagged text", f"<text>\n{LONG}\n</text>\n\nWho spoke?", "Who spoke?"),
        ("beside a quotation", 'Put into French: "Prove that the sum converges."', 'Put into French: ""'),
        ("hardly more than a quotation", '"Prove that it converges."', '"Prove that it converges."'),
        ("code in a fence", f"Explain this.\n\n```python\n{LONG}\n```", "Explain this."),
        ("spaces are one", "What   is    this?", "What is this?"),
        ("nothing", "", ""),
    ],
)
def test_the_ask_is_found(name: str, text: str, asked: str) -> None:
    assert ask.instruction(text) == asked, name


def test_an_ask_without_paragraphs_is_read_at_both_ends() -> None:
    asked = ask.instruction("begin " + "middle " * 2000 + "end")

    assert asked.startswith("begin ")
    assert asked.endswith(" end")
    assert len(asked) <= ask.LONGEST


def test_short_paragraphs_between_belong_to_the_ask() -> None:
    text = "\n\n".join(["Design a queue.", "It must survive a crash.", "Keep the order.", "x" * 800, "Explain why."])

    assert ask.instruction(text) == "Design a queue.\nIt must survive a crash.\nKeep the order.\nExplain why."


@pytest.mark.parametrize(
    ("system", "asked"),
    [
        ("Translate what you get.", "Translate what you get.\nhello"),
        ("只翻译成英文。", "只翻译成英文。\nhello"),
        ("You are a helpful assistant.", "hello"),
        ("Translate what you get. " * 40, "hello"),
        ("", "hello"),
    ],
)
def test_a_short_order_in_the_system_prompt_belongs_to_the_ask(system: str, asked: str) -> None:
    assert ask.standing(system, "hello") == asked


def test_dense_scripts_are_cut_shorter() -> None:
    assert ask.shortened("说明" * 10) == "说明" * 10
    assert len(ask.shortened("说明" * 500)) <= ask.DENSE + 1


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("one sentence only", "one sentence only"),
        ("first one. middle. last one?", "first one.\nlast one"),
        ("first one: second", "first one:\nsecond"),
        ("一つ目の文。二つ目の文。", "一つ目の文。\n二つ目の文"),
        ("", ""),
    ],
)
def test_edges_are_the_first_and_last_sentence(text: str, edges: str) -> None:
    assert ask.edges(text) == edges


def test_edges_of_a_long_sentence_are_whole_words() -> None:
    assert ask.edges("alpha " * 40) == "alpha alpha alpha alpha alpha\nalpha alpha alpha alpha"


@pytest.mark.parametrize("mark", ['"', "\u201c", "\u201e", "\u00ab", "\u300c", '"\u201c\u00ab', "\u201eab cd"])
def test_a_run_of_marks_that_open_is_read_once(mark: str) -> None:
    """So many starts that reading to the end from each would take longer than a test may."""
    text = mark * (400_000 // len(mark))

    assert len(ask.instruction(text[:6000])) <= ask.LONGEST
    assert ask._QUOTED.sub("", text)


@given(st.text(max_size=2000))
def test_an_ask_is_bounded(text: str) -> None:
    assert len(ask.instruction(text)) <= ask.LONGEST
    assert len(ask.edges(text)) <= 2 * 61 + 1
