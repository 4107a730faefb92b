"""The routes of one model that may be tried, and the level that runs there."""

from __future__ import annotations

from typing import Any

import pytest

from making import catalog, facts, model, provider, request
from zurelay.candidates import attempts_of
from zurelay.errors import InvalidRequest
from zurelay.model import Effort, Endpoint, Format, Match, Names, Params, Policy
from zurelay.plan import Attempt
from zurelay.rules import Rule, Rules
from zurelay.translatable import Translatable

FIRST = model("first", "one", "two", levels="low medium HIGH")
CATALOG = catalog(FIRST)


def rules(**effects: Any) -> Rules:
    return Rules([Rule(Policy(name="p", match=Match(), **effects))])


def attempts(asked: Effort | None = None, named: bool = True, **known: Any) -> list[Attempt]:
    wanted = request()
    return attempts_of(CATALOG, FIRST, wanted, facts(**known), asked, Translatable(wanted), named=named)


def test_a_denied_provider_is_not_tried() -> None:
    assert ["one", "two"] == [each.provider for each in attempts()]
    assert ["two"] == [each.provider for each in attempts(rules=rules(providers=Names(deny=("one",))))]


@pytest.mark.parametrize(
    ("asked", "cap", "sent", "shown"),
    [
        (None, None, None, "high"),
        (None, Effort.medium, "medium", "medium"),
        (Effort.low, Effort.medium, "low", "low"),
        (Effort.max, Effort.medium, "medium", "medium"),
    ],
)
def test_a_cap_counts_also_when_nothing_was_asked(
    asked: Effort | None, cap: Effort | None, sent: str | None, shown: str
) -> None:
    found = attempts(asked, rules=rules(effort_max=cap))[0]
    assert (sent, shown) == (found.effort, found.shown_effort)


def test_a_route_set_aside_is_left_out_while_there_is_another() -> None:
    assert ["two"] == [each.provider for each in attempts(set_aside=frozenset({"first/one"}))]
    assert 2 == len(attempts(set_aside=frozenset({"first/one", "first/two"})))


def test_tokens_are_counted_by_one_route_that_may_and_is_ready() -> None:
    counting = request(Endpoint.COUNT_TOKENS)
    first = model("first", "one", "two")
    known = catalog(first, providers={name: provider(name, format=Format.ANTHROPIC) for name in ("one", "two")})

    def counted(**known_facts: Any) -> list[str]:
        found = attempts_of(known, first, counting, facts(**known_facts), None, Translatable(counting), named=True)
        return [each.provider for each in found]

    assert ["one"] == counted()
    assert ["two"] == counted(rules=rules(providers=Names(deny=("one",))))
    assert ["two"] == counted(set_aside=frozenset({"first/one"}))


def test_a_named_model_refuses_what_it_would_drop_and_what_it_does_not_answer() -> None:
    picky = model("picky", params=Params(drop=("stop",)))
    stopping = request(model="picky", stop="x")
    said = Translatable(stopping)
    with pytest.raises(InvalidRequest, match="does not take stop"):
        attempts_of(catalog(picky), picky, stopping, facts(), None, said, named=True)
    assert attempts_of(catalog(picky), picky, stopping, facts(), None, said, named=False)
    counting = request(Endpoint.COUNT_TOKENS, model="picky")
    with pytest.raises(InvalidRequest, match="does not count tokens"):
        attempts_of(catalog(picky), picky, counting, facts(), None, said, named=True)
