"""The whole decision: named cases for every rule, and laws."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.auto import classify, content
from zurelay.model import Category

SIMPLE, STANDARD, COMPLEX = Category.SIMPLE, Category.STANDARD, Category.COMPLEX
ORDER = [None, SIMPLE, STANDARD, COMPLEX]
DEFAULT = (0.35, 0.65)
HARD = (
    "Prove that every bounded sequence of real numbers has a convergent subsequence, generalise the theorem to compact "
    "metric spaces, and construct a counterexample that shows where the argument breaks down in infinite dimensions."
)
SYSTEM = (
    "Projete um sistema distribuído de pagamentos com 30 mil transações por segundo, idempotência e tolerância à queda "
    "de uma zona inteira; discuta consistência, particionamento e como evitar pagamento em duplicidade."
)
WORK = "We begin with the least upper bound of the sequence and halve the interval again and again."
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def verdict(body: Any, thresholds: tuple[float, float] = DEFAULT) -> classify.Verdict:
    return classify.classify(content.read(body), thresholds)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def loop(rounds: int) -> list[dict[str, Any]]:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    ask: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [ask, {"role": "tool", "tool_call_id": "c", "content": "ok"}] * rounds


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("hi", SIMPLE),
        ("What's the capital of Mongolia?", SIMPLE),
        ("Translate to German: The meeting has been moved to Thursday.", SIMPLE),
        ("Qual é a capital da Austrália?", SIMPLE),
        ("Ibu kota Kazakhstan apa ya?", SIMPLE),
        ("翻译成英文:会议改到周四下午两点半。", SIMPLE),
        ("ترجم إلى الإنجليزية: تم تأجيل الاجتماع إلى يوم الخميس.", SIMPLE),
        (
            "Write a polite email to my landlord asking him to repair the heating, which has been broken since Friday.",
            STANDARD,
        ),
        ("Schreibe eine höfliche E-Mail an die Hausverwaltung wegen des defekten Aufzugs, etwa 150 Wörter.", STANDARD),
        ("Составь план тренировок к полумарафону на восемь недель для начинающего.", STANDARD),
        (HARD, COMPLEX),
        (SYSTEM, COMPLEX),
        ("证明:任意连续映射 f:[0,1]→[0,1] 必有不动点,并讨论二维情形。", COMPLEX),
    ],
)
def test_a_single_turn_is_judged_by_what_it_asks(text: str, category: Category) -> None:
    assert verdict(chat(user(text))).category is category


@pytest.mark.parametrize(
    "last",
    [
        "ok, continue",
        "go on",
        "yes please",
        "why?",
        "ok, continua",
        "oke, lanjutkan",
        "好,继续",
        "はい、続けてください",
        "네, 계속해 주세요",
        "хорошо, продолжай",
        "حسنا، تابع",
        "ठीक है, आगे बढ़िए",
        "xyzzy",
        "thanks, now continue",
        "Thanks. Now do the second part.",
        "No thanks, that is wrong.",
        "Danke, aber das stimmt nicht.",
        "Obrigado, mas falta o caso geral.",
        "Спасибо, но это неправильно",
        "谢谢,但是第二步不对",
    ],
)
def test_work_in_progress_keeps_its_category(last: str) -> None:
    found = verdict(chat(user(HARD), assistant(WORK), user(last)))

    assert (found.floor, found.category) == (COMPLEX, COMPLEX)
    assert found.reasons == ("work in progress",)


@pytest.mark.parametrize(
    "last",
    [
        "Danke dir, schönen Abend!",
        "Thanks, bye!",
        "Obrigado, até amanhã!",
        "Terima kasih",
        "谢谢,再见",
        "ありがとうございました",
        "Спасибо!",
        "شكرا",
    ],
)
def test_a_farewell_leaves_the_work(last: str) -> None:
    found = verdict(chat(user(HARD), assistant(WORK), user(last)))

    assert (found.floor, found.category) == (None, SIMPLE)


@pytest.mark.parametrize(
    ("last", "floor"),
    [
        ("What is the capital of Peru?", None),
        ("Qual é a capital do Peru?", None),
        ("秘鲁的首都是哪里?", None),
        ("What is an interval?", COMPLEX),
        ("What is the least upper bound?", COMPLEX),
        ("Tell me about Peru.", COMPLEX),
    ],
)
def test_only_a_small_question_about_something_else_leaves_the_work(last: str, floor: Category | None) -> None:
    assert verdict(chat(user(HARD), assistant(WORK), user(last))).floor is floor


@pytest.mark.parametrize("last", ["ok, continue", "yes", "继续", "네, 계속해 주세요", "хорошо, продолжай"])
@pytest.mark.parametrize("rounds", [1, 5, 50])
def test_any_number_of_words_of_assent_keeps_the_work(last: str, rounds: int) -> None:
    found = verdict(chat(user(HARD), *[assistant(WORK), user(last)] * rounds))

    assert (found.floor, found.category) == (COMPLEX, COMPLEX)


def test_turns_that_ask_for_something_leave_old_work_behind() -> None:
    asks = [assistant("Done."), user("Translate to German, please: the meeting has been moved to Thursday.")] * 5

    assert verdict(chat(user(HARD), *asks)).category is SIMPLE


def test_thanks_beside_an_ask_that_nobody_has_answered_is_no_farewell() -> None:
    assert verdict(chat(user(HARD), user("Thanks!"))).category is COMPLEX


def test_a_picture_brought_along_doesn_t_leave_the_work() -> None:
    parts = [{"type": "text", "text": "thanks!"}, {"type": "image_url", "image_url": {"url": "u"}}]

    assert verdict(chat(user(HARD), assistant(WORK), {"role": "user", "content": parts})).floor is COMPLEX


def test_small_talk_before_hard_work_doesn_t_matter() -> None:
    assert verdict(chat(user("hi"), assistant("Hello!"), user(HARD))).category is COMPLEX


@pytest.mark.parametrize(
    ("rounds", "floor"),
    [(0, None), (1, None), (2, None), (3, STANDARD), (5, STANDARD), (6, COMPLEX), (40, COMPLEX)],
)
def test_a_long_tool_loop_is_never_simple(rounds: int, floor: Category | None) -> None:
    found = verdict(chat(user("What's the weather in Oslo?"), *loop(rounds)))

    assert found.floor is floor
    assert found.category is (floor or SIMPLE)


def test_a_loop_before_a_farewell_is_over() -> None:
    assert verdict(chat(user("What's the weather in Oslo?"), *loop(9), user("thanks, bye"))).floor is None


def test_a_loop_after_a_farewell_word_counts() -> None:
    assert verdict(chat(user("hi"), assistant("hello"), user("thanks"), *loop(9))).floor is COMPLEX


def test_tool_results_of_anthropic_count() -> None:
    step = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ]

    assert verdict(chat(user("Fix it."), *step * 6)).floor is COMPLEX


def test_results_of_tools_that_the_provider_runs_count() -> None:
    parts = [
        {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "t", "content": []},
    ]

    assert verdict(chat(user("Find it."), {"role": "assistant", "content": parts * 6}, user("ok"))).floor is COMPLEX


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("Write a poem about autumn", STANDARD),
        ("Schreib mir ein Gedicht über den Herbst", STANDARD),
        ("Scrivi un messaggio a Luca", STANDARD),
        ("Напиши письмо бабушке", STANDARD),
        ("इस्तीफा पत्र लिखें", STANDARD),
        ("写一封求职信", STANDARD),
        ("자기소개서 써줘", STANDARD),
        ("Schreib mir eine Bewerbung", STANDARD),
        ('Schreib "Hallo" auf Französisch', None),
        ("Write hello", None),
        ("Translate this letter to German: Dear Ann, thanks.", None),
        ("What is a poem?", None),
    ],
)
def test_a_text_to_write_is_no_small_matter(text: str, floor: Category | None) -> None:
    found = verdict(chat(user(text)))
    later = verdict(chat(user(text), assistant("Here it is."), user("ok, continue")))

    assert (found.floor, found.category) == (floor, floor or SIMPLE)
    assert later.category is found.category


MATERIAL = "The committee met in the spring and looked at the report on the water supply of the northern district. " * 9


@pytest.mark.parametrize("text", [f"{HARD}\n\n{MATERIAL}", f"{MATERIAL}\n\n{HARD}"], ids=["before", "after"])
def test_hard_work_is_no_question_of_an_exam_whatever_text_comes_along(text: str) -> None:
    assert verdict(chat(user(text))).category is COMPLEX


@pytest.mark.parametrize(("size", "floor"), [(10_000, None), (60_100, STANDARD)])
def test_a_very_long_text_is_at_least_standard(size: int, floor: Category | None) -> None:
    assert verdict(chat(user("Summarise.\n\n" + "x" * size))).floor is floor


@pytest.mark.parametrize(
    ("value", "thresholds", "category"),
    [
        (0.0, DEFAULT, SIMPLE),
        (0.3499, DEFAULT, SIMPLE),
        (0.35, DEFAULT, STANDARD),
        (0.6499, DEFAULT, STANDARD),
        (0.65, DEFAULT, COMPLEX),
        (1.0, DEFAULT, COMPLEX),
        (0.5, (0.0, 0.0), COMPLEX),
        (0.99, (1.0, 1.0), SIMPLE),
    ],
)
def test_thresholds_part_the_scores(value: float, thresholds: tuple[float, float], category: Category) -> None:
    assert classify.category(value, thresholds) is category


@pytest.mark.parametrize("thresholds", [(0.1, 0.2), (0.35, 0.65), (0.9, 0.95)])
def test_a_floor_raises_the_score_to_its_threshold(thresholds: tuple[float, float]) -> None:
    found = verdict(chat(user("weather?"), *loop(6)), thresholds)

    assert found.score >= thresholds[1]
    assert found.category is COMPLEX


SMALL = ["hi", "ok", "thanks", "What time is it in Peru?", "ok, continue", "Write a poem about the sea.", "and then?"]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(SMALL), min_size=1, max_size=9), st.integers(0, 9))
def test_a_hard_turn_never_lowers_the_floor(texts: list[str], at: int) -> None:
    turns = [message for text in texts for message in (user(text), assistant("ok"))][:-1]
    place = min(2 * at, len(turns) + 1)
    more = [*[*turns, assistant("ok")][:place], user(HARD), assistant(WORK), *turns[place:]]
    before, after = verdict(chat(*turns)), verdict(chat(*more))

    assert ORDER.index(after.floor) >= ORDER.index(before.floor)


@settings(max_examples=30)
@given(
    st.sampled_from(
        ["hi", HARD, "Traduza para o inglês: bom dia", "Докажите теорему.", "写一首诗", "Plan a trip to Rome."]
    ),
    st.text(alphabet=" \t\n", max_size=6),
    st.text(alphabet=" \t\n", max_size=6),
    st.sampled_from([str, str.upper, str.lower, str.title]),
)
def test_space_around_and_case_don_t_change_the_category(text: str, before: str, after: str, cased: Any) -> None:
    assert verdict(chat(user(before + cased(text) + after))).category is verdict(chat(user(text))).category


ASKS = ["hi", HARD, "写一首诗", "Докажите теорему.", "Fix the bug:\n\n```python\nx = 1\n```\n\nIt should be 2."]
PADS = [
    *("\r\n\r\n", "\u00a0" * 9, "\u3000" * 9, "\u2028\x85\x0b", "\u200b" * 9000, "\ufeff", "\u2060 \u200b \ufeff"),
    *(" " * 70_000, "\n" * 70_000, "\u200e\u200d\u200c", "\u00ad"),
]


@pytest.mark.parametrize("text", ASKS)
@pytest.mark.parametrize("pad", PADS, ids=map(ascii, (pad[:8] for pad in PADS)))
def test_no_padding_of_any_kind_or_length_moves_the_score(text: str, pad: str) -> None:
    system = {"role": "system", "content": "Translate to German."}
    padded = {"role": "system", "content": f"{pad}Translate to German.{pad}"}

    plain = verdict(chat(user(text))).score
    assert [plain] * 3 == [verdict(chat(user(each))).score for each in (pad + text, text + pad, pad + text + pad)]
    assert verdict(chat(padded, user(pad + text))).score == verdict(chat(system, user(text))).score


@pytest.mark.parametrize("pad", [" " * 300, "\u200b" * 300, "\n" * 70_000], ids=["spaces", "unseen", "very long"])
@pytest.mark.parametrize("last", ["thanks, bye!", "What is the capital of Peru?", "ok, continue"])
def test_padding_changes_neither_who_leaves_the_work_nor_who_stays(last: str, pad: str) -> None:
    plain, padded = (verdict(chat(user(HARD), assistant(WORK), user(text))) for text in (last, pad + last + pad))

    assert (plain.category, plain.floor) == (padded.category, padded.floor)


@pytest.mark.parametrize("text", [*ASKS, "Summarise this.\n\nThe sea was calm.\nIt was late.\n\nNobody spoke."])
def test_lines_that_end_as_on_windows_are_the_same_lines(text: str) -> None:
    assert verdict(chat(user(text.replace("\n", "\r\n")))).score == verdict(chat(user(text))).score


@settings(max_examples=80)
@given(JSON)
def test_any_json_has_a_verdict(value: Any) -> None:
    for body in (
        value,
        {"messages": value},
        chat({"role": "user", "content": value}),
        {"messages": [value], "system": value},
    ):
        found = verdict(body)
        assert 0.0 <= found.score <= 1.0
        assert found.category is classify.category(found.score, DEFAULT)


def test_an_empty_request_is_simple() -> None:
    assert verdict({}).category is SIMPLE
