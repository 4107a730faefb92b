"""Words, scripts and concepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.auto import ask, lexicon


def concepts(text: str) -> set[str]:
    low = text.lower()
    words = lexicon.split(low)
    found = lexicon.scripts(text)
    names = lexicon.languages(set(words), found, len(text))
    leading = lexicon.split(ask.edges(low))
    hits = lexicon.hits(set(words), leading, low, lexicon.pairs(low), names)
    return {concept for listed in hits.values() for concept in listed}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one two", ["one", "two"]),
        ("one,two;three!", ["one", "two", "three"]),
        ("demonstration", ["demonstr"]),
        ("l'été \u2013 « déjà »", ["l", "été", "déjà"]),
        ("सिद्ध कीजिए।", ["सिद्ध", "कीजिए"]),
        ("привет, мир", ["привет", "мир"]),
        ("证明。求证", ["证明", "求证"]),
        ("", []),
    ],
)
def test_text_is_split_into_cut_words(text: str, words: list[str]) -> None:
    assert lexicon.split(text) == words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("plain ascii", set()),
        ("déjà vu", set()),
        ("привет", {"ru"}),
        ("مرحبا", {"ar"}),
        ("नमस्ते", {"hi"}),
        ("สวัสดี", {"th"}),
        ("你好吗", {"zh"}),
        ("これは何語ですか", {"ja", "zh"}),
        ("안녕하세요", {"ko"}),
    ],
)
def test_scripts_are_told_by_their_letters(text: str, names: set[str]) -> None:
    assert set(lexicon.scripts(text)) == names


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the quick fox and the dog", "en"),
        ("o gato e a casa de uma amiga", "pt"),
        ("el gato y la casa de una amiga", "es"),
        ("le chat et la maison des amis", "fr"),
        ("der hund und die katze", "de"),
        ("saya dan kamu di rumah", "id"),
        ("что это такое", "ru"),
        ("这是什么。", "zh"),
        ("これは、なに。", "ja"),
    ],
)
def test_a_language_is_told_by_script_and_common_words(text: str, language: str) -> None:
    assert language in lexicon.languages(set(lexicon.split(text)), lexicon.scripts(text), len(text))


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        ("Prove that the sum converges.", "prove"),
        ("Demonstre que a soma converge.", "prove"),
        ("Demuestra que la suma converge.", "prove"),
        ("Démontre que la somme converge.", "prove"),
        ("Beweise, dass die Summe konvergiert.", "prove"),
        ("Buktikan bahwa jumlahnya konvergen.", "prove"),
        ("Докажите, что ряд сходится.", "prove"),
        ("证明级数收敛。", "prove"),
        ("級数が収束することを証明せよ。", "prove"),
        ("급수가 수렴함을 증명하시오.", "prove"),
        ("أثبت أن المتسلسلة تتقارب.", "prove"),
        ("सिद्ध कीजिए कि श्रेणी अभिसारी है।", "prove"),
        ("Dimostra che la serie converge.", "prove"),
        ("Translate this into German.", "translate"),
        ("Traduza isto para o inglês.", "translate"),
        ("把这句话翻译成英文", "translate"),
        ("Переведи это на английский", "translate"),
        ("Summarise the text.", "summarise"),
        ("Resuma o texto.", "summarise"),
        ("テキストを要約して", "summarise"),
        ("Write an email to my landlord.", "write"),
        ("Tulis email ke pemilik rumah.", "write"),
        ("CRDT と Kafka", "distributed"),
    ],
)
def test_concepts_are_found_in_many_languages(text: str, concept: str) -> None:
    assert concept in concepts(text)


def test_a_word_counts_only_in_its_own_language() -> None:
    assert "prove" not in concepts("le satz de la maison et les amis")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what is the capital of peru?", {"peru"}),
        ("ペルーの首都はどこ", {"ペル", "ルー"}),
        ("why is that so", set()),
    ],
)
def test_telling_words_are_what_a_question_is_about(text: str, words: set[str]) -> None:
    assert lexicon.telling(text) == words


def test_characters_of_dense_scripts_are_counted() -> None:
    assert lexicon.dense(lexicon.scripts("说明一下 abc")) == 4
    assert lexicon.dense(lexicon.scripts("привет")) == 0


@given(st.text(max_size=200))
def test_any_text_is_read_without_error(text: str) -> None:
    assert isinstance(concepts(text), set)
    assert isinstance(lexicon.telling(text.lower()), set)
