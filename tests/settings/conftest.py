from collections.abc import Callable
from typing import Any

import pytest

from zurelay import yamlnodes
from zurelay.problems import Problem
from zurelay.settings.facts import Facts
from zurelay.settings.names import Names
from zurelay.settings.places import At, Broken

ReadOne = Callable[[Callable[[At], Any], str], tuple[Any, list[str]]]


@pytest.fixture(name="read_one")
def read_one_fixture() -> ReadOne:
    """Read YAML text with one reader: its value (None if broken) and the problems."""

    def read_one(reader: Callable[[At], Any], text: str) -> tuple[Any, list[str]]:
        problems: list[Problem] = []
        node = yamlnodes.load(text, problems)
        assert node is not None
        value = None
        try:
            value = reader(At(node, 1, problems))
        except Broken:
            assert problems
        return value, [str(problem) for problem in problems]

    return read_one


@pytest.fixture(name="facts")
def facts_fixture() -> Facts:
    """Two providers, two models, one alias; the variable KEY and the files that begin with there."""
    return Facts(
        environ={"KEY": "secret", "EMPTY": ""},
        readable=lambda path: path.startswith("there"),
        names=Names(["openai", "anthropic"], ["gpt-6-sol", "claude-opus-5-5"], {"opus": "claude-opus-5-5"}),
    )
