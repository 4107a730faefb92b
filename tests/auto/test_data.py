"""The tables that Auto decides by."""

import json
import pathlib
import pkgutil

import msgspec
import pytest

from zurelay.auto import data, features

FILE = pathlib.Path(data.__file__).parent.parent / "data" / "auto.json"


def test_the_file_is_small_enough_to_review() -> None:
    assert FILE.stat().st_size <= 300_000


def test_every_concept_of_the_word_lists_is_known() -> None:
    listed = {
        concept for table in (data.TABLES.words, data.TABLES.parts) for words in table.values() for concept in words
    }

    assert listed == {*features.CONCEPTS, *features.FOLLOWING}


def test_every_tree_splits_on_a_known_feature_and_ends() -> None:
    for tree in data.TABLES.trees + data.TABLES.exam:
        sizes = {len(tree.feature), len(tree.threshold), len(tree.right)}
        assert len(sizes) == 1
        for node, feature in enumerate(tree.feature):
            assert feature < len(data.TABLES.features)
            assert feature < 0 or node + 1 < tree.right[node] < len(tree.feature)


def test_a_file_of_another_shape_is_refused() -> None:
    held = json.loads(pkgutil.get_data("zurelay", "data/auto.json") or b"")
    held["trees"] = [{"feature": 1}]

    with pytest.raises(msgspec.ValidationError, match="trees"):
        data.load(json.dumps(held).encode())


@pytest.mark.parametrize(
    ("concepts", "words"),
    [
        ({"prove": "proof"}, {"proof": ("prove",)}),
        ({"prove": "demonstration"}, {"demonstr": ("prove",)}),
        ({"a": "x", "b": "x"}, {"x": ("a", "b")}),
        ({"prove": "show_that"}, {"show that": ("prove",)}),
    ],
)
def test_word_lists_are_turned_round(concepts: dict[str, str], words: dict[str, tuple[str, ...]]) -> None:
    assert data.by_word(concepts) == words


def test_parts_are_found_by_their_first_two_characters() -> None:
    parts = data.by_part({"prove": "证明 求证", "derive": "证明过程"})

    assert data.by_pair(parts) == {
        "证明": [("证明", ("prove",)), ("证明过程", ("derive",))],
        "求证": [("求证", ("prove",))],
    }


def test_weighed_words_carry_weight_and_rarity() -> None:
    assert data.weighed({"+0.120 7.5": "alpha beta", "-0.040 3.0": "the"}) == {
        "alpha": (0.12, 7.5),
        "beta": (0.12, 7.5),
        "the": (-0.04, 3.0),
    }


def test_words_that_aren_t_known_lean_nowhere() -> None:
    assert (data.leaning({"qqqqxxxx": 3}), data.asking({"qqqqxxxx"})) == (0.0, 0.0)


def test_a_text_repeated_leans_as_itself() -> None:
    known = next(iter(data.KNOWN))

    assert data.leaning({known: 1}) == pytest.approx(data.leaning({known: 7}))


def test_tokens_that_aren_t_known_make_an_ask_less_sure() -> None:
    known = next(token for token, shares in data.ASKS.items() if shares[0])

    assert abs(data.asking({known, "qqqqx"})) < abs(data.asking({known}))
