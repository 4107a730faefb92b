from typing import Any

import pytest

from zurelay.settings.facts import Facts


def test_a_variable_that_is_set_is_named_and_not_read(read_one: Any, facts: Facts) -> None:
    assert read_one(facts.variable, "KEY") == ("KEY", [])


def test_the_path_of_a_file_stays_as_written(read_one: Any, facts: Facts) -> None:
    assert read_one(facts.file, "there/../x") == ("there/../x", [])


@pytest.mark.parametrize(
    ("name", "problem"),
    {
        "NOPE": "the environment variable NOPE is not set",
        "EMPTY": "the environment variable EMPTY is empty",
        "sk-secret": "expected the name of an environment variable, not its value",
    }.items(),
)
def test_a_secret_that_is_absent_is_named_and_never_shown(read_one: Any, facts: Facts, name: str, problem: str) -> None:
    assert (None, [f"line 1: {problem}"]) == read_one(facts.variable, name)


def test_a_file_that_is_absent_is_named(read_one: Any, facts: Facts) -> None:
    assert read_one(facts.file, "/run/key") == (None, ["line 1: the file /run/key isn't there or can't be read"])
