from typing import Any

import pytest

from zurelay.model import Secret
from zurelay.settings.facts import Facts
from zurelay.settings.secrets import secret

RIGHT = {
    "a variable": ("{env: KEY}", Secret(env="KEY")),
    "a file": ("{file: there/key}", Secret(file="there/key")),
    "null counts as left out": ("{env: KEY, file: null}", Secret(env="KEY")),
}


@pytest.mark.parametrize(("text", "value"), RIGHT.values(), ids=RIGHT)
def test_where_a_secret_is_can_be_read(read_one: Any, facts: Facts, text: str, value: Secret) -> None:
    assert (value, []) == read_one(lambda at: secret(at, facts), text)


WRONG = {
    "the secret itself": ("sk-secret", "expected {env: NAME} or {file: PATH}, not text"),
    "the secret as a key": ("{sk-secret: }", "what else it says isn't shown"),
    "both": ("{env: KEY, file: there}", "expected one of env and file"),
    "none": ("{}", "expected one of env and file"),
    "an empty variable": ("{env: EMPTY}", "the environment variable EMPTY is empty"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_such_place_is_told_without_showing_a_secret(
    read_one: Any, facts: Facts, text: str, said: str
) -> None:
    _, problems = read_one(lambda at: secret(at, facts), text)
    assert len(problems) == 1
    assert said in problems[0]
    assert "sk-secret" not in problems[0]
