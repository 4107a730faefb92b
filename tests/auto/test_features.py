"""What the model sees of a turn."""

from typing import Any

import pytest

from zurelay.auto import content, features


def of(text: str, **body: Any) -> dict[str, float]:
    read = content.read({"messages": [{"role": "user", "content": text}], **body})
    return features.of(read, read.turns[-1])


@pytest.mark.parametrize(
    ("name", "more", "less"),
    [
        ("length", "a rather long question about something", "short"),
        ("length", "这个问题有一点长度", "short q"),
        ("material", "Summarise.\n\n" + "words " * 400, "Summarise."),
        ("code", "if (a == b) { c(); }", "if a is b then c"),
        ("fence", "```x```", "x"),
        ("clauses", "this, that; and the other: all", "this that and the other"),
        ("clauses", "甲、乙,丙", "甲乙丙"),
        ("sentences", "One. Two! Three?", "One two three"),
        ("sentences", "一。二。三。", "一二三"),
        ("questions", "why? how\u061f \u4f55\uff1f", "why"),
        ("asks_last", "is it so?", "it is so"),
        ("quotes", 'fix "this"', "fix this"),
        ("quotes", "修改「这个」", "修改这个"),
        ("maths", "x^2 = y, \\frac{1}{2}, ∀x", "x squared"),
        ("lines", "a\nb", "a b"),
        ("numbers", "3 of 15 at 2.5", "three of fifteen"),
        ("variety", "one two three four", "one one one one"),
        ("prove", "prove it", "say it"),
        (
            "prove_leads",
            "Prove it.",
            "It is so that what I want to see you then really at last now prove is the whole of all of it.",
        ),
        ("deep", "prove and derive", "say"),
        ("domain_kinds", "deadlock of the quorum", "trouble of the group"),
        ("light_leads", "Translate this.", "Take this."),
        ("go_on", "please continue", "please stop"),
        ("debug_code", "Why does it crash? { a = b; (c) = d; } [] => {}", "Why does it crash?"),
    ],
)
def test_a_feature_rises_with_what_its_name_says(name: str, more: str, less: str) -> None:
    assert of(more)[name] > of(less)[name]


def test_the_request_around_the_turn_counts() -> None:
    plain, around = of("hi"), of("hi", system="rules " * 500, response_format={"type": "json_schema"})

    assert (plain["system"], plain["schema"]) == (0.0, 0.0)
    assert around["system"] > 3.0
    assert around["schema"] == 1.0


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("image", {"type": "image_url", "image_url": {"url": "u"}}),
        ("document", {"type": "file", "file": {"file_id": "f"}}),
        ("sound", {"type": "input_audio", "input_audio": {}}),
        ("sound", {"type": "video_url", "video_url": {}}),
    ],
)
def test_media_of_the_turn_counts(name: str, part: dict[str, Any]) -> None:
    read = content.read({"messages": [{"role": "user", "content": [part]}]})

    assert features.of(read, read.turns[-1])[name] == 1.0


@pytest.mark.parametrize("text", ["Prove that x > 1, please.", "Wie heißt die Hauptstadt?", "证明一下", "Докажите это"])
def test_case_and_surrounding_space_make_no_difference(text: str) -> None:
    assert of(text) == of(f"\n\n  {text}\t\n")
    assert of(text.lower()) == of(text.lower().capitalize())


def test_work_on_a_turn_is_bounded() -> None:
    assert features.of(content.read({}), content.Turn(role=content.Role.USER, text="prove " * 200_000))["length"] < 6
