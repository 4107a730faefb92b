"""What an attempt's span says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from making import attempt, plan
from zurelay import attributes, settlement
from zurelay.attributes import Place
from zurelay.model import Endpoint
from zurelay.moments import Moments
from zurelay.otlp import Value
from zurelay.ports import Record
from zurelay.store import Spent
from zurelay.tried import tried
from zurelay.usage import Usage

ONE = attempt("first/one")


def record(**facts: Any) -> Record:
    given = {"plan": plan(ONE), "number": 1, "attempt": ONE, "outcome": settlement.ANSWERED, "status": 200}
    return Record(**{**given, "moments": Moments(began=20, ended=90), **facts})


def of(given: Record) -> dict[str, Value]:
    (only,) = tried(given)
    common = attributes.common(given, only, Place("ONE", "one.test", 443))
    return {**common.attributes, **attributes.own(given, only)}


def test_an_attempt_says_all_that_is_known_of_its_end() -> None:
    given = record(
        usage=Usage(prompt=5, completion=7, cached=3, cache_written=1, reasoning=2, estimated=True),
        finish_reasons=("stop", "length"),
        response_model="gpt-x-2026",
        spent=Spent(usd=Decimal("0.5"), ours=Decimal("0.25")),
        content={"gen_ai.input.messages": "[]"},
        why="said so",
    )
    found = of(given)
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "ONE",
        "gen_ai.request.model": "one-first",
        "server.address": "one.test",
        "server.port": 443,
        "zurelay.attempt.number": 1,
        "zurelay.route": "first/one",
        "zurelay.provider": "one",
        "zurelay.model": "first",
        "http.response.status_code": 200,
        "gen_ai.response.model": "gpt-x-2026",
        "gen_ai.response.finish_reasons": ("stop", "length"),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "zurelay.usage.estimated": True,
        "zurelay.cost.usd": 0.5,
        "zurelay.cost.own_usd": 0.25,
        "gen_ai.input.messages": "[]",
        "zurelay.why": "said so",
    } == found


def test_who_counts_tokens_uses_none() -> None:
    found = of(record(plan=plan(ONE, endpoint=Endpoint.COUNT_TOKENS), usage=Usage(prompt=5)))
    assert "count_tokens" == found["gen_ai.operation.name"]
    assert "gen_ai.usage.input_tokens" not in found


def test_what_is_not_known_is_left_out() -> None:
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "ONE",
        "gen_ai.request.model": "one-first",
        "server.address": "one.test",
        "server.port": 443,
        "zurelay.attempt.number": 1,
        "zurelay.route": "first/one",
        "zurelay.provider": "one",
        "zurelay.model": "first",
    } == of(record(status=0))
