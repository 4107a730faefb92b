import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.simulate import prose

SAID = {
    "English": ("What is the weather in Paris?", "You wrote"),
    "Portuguese": ("Qual é a previsão do tempo para São Paulo?", "Você escreveu"),
    "Spanish": ("¿Cuál es el tiempo en Madrid?", "Escribiste"),
    "French": ("Quel est le temps à Paris ce soir ?", "Vous avez écrit"),
    "German": ("Wie ist das Wetter in Berlin?", "Sie schrieben"),
    "Indonesian": ("Bagaimana cuaca di Jakarta hari ini?", "Anda menulis"),
    "Japanese": ("東京の天気は", "模擬の回答"),
    "Korean": ("안녕하세요, 서울 날씨", "모의 답변"),
    "Chinese": ("北京的天气怎么样", "模拟的回答"),
    "Russian": ("Какая погода в Москве?", "Вы написали"),
    "Arabic": ("ما هو الطقس في القاهرة", "إجابة محاكاة"),
    "Hindi": ("दिल्ली में मौसम", "नकली उत्तर"),
    "no language": ("12 + 34", "You wrote"),
}


@pytest.mark.parametrize("language", SAID)
def test_an_answer_is_in_the_language_of_the_text_and_quotes_it(language: str) -> None:
    text, expected = SAID[language]
    said = prose.answer(text, ())
    assert [part for part in (text, expected) if part not in said] == []


def test_an_answer_to_nothing_is_not_empty() -> None:
    assert prose.answer("", ()).startswith("You wrote: “the content”.")


def test_an_answer_tells_what_every_tool_returned() -> None:
    assert prose.answer("Hi", ("12 C", "")).startswith(
        "The tool returned: 12 C. The tool returned: the content. You wrote"
    )


def test_a_long_text_is_quoted_in_part() -> None:
    assert "“" + "a" * 79 + "…”" in prose.answer("a" * 10_000, ())


def test_thoughts_grow_with_the_level() -> None:
    lengths = [len(prose.thoughts("Where is Lisbon?", level)) for level in range(1, 7)]
    assert sorted(set(lengths)) == lengths


SUBJECTS = {
    "What is the weather in Paris?": "Paris",
    "From Paris to Rome": "Rome",
    "where is it": "where is it",
    "": "the content",
    "x" * 99: "x" * 39 + "…",
}


@pytest.mark.parametrize("text", SUBJECTS)
def test_a_subject_is_a_name_or_the_start(text: str) -> None:
    assert SUBJECTS[text] == prose.subject(text)


@given(text=st.text())
@settings(max_examples=200)
def test_pieces_joined_are_the_text(text: str) -> None:
    assert text == "".join(prose.pieces(text))


def test_pieces_are_words_and_single_letters_of_scripts_without_spaces() -> None:
    assert prose.pieces("Paris は晴れ ok\n") == ("Paris", " は", "晴", "れ", " ok", "\n")
