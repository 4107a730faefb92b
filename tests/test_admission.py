"""What a request needs of its limits, and what happens where the store can't tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from making import Once, Silent, catalog, model, plan, request
from zurelay import admission
from zurelay import model as nouns
from zurelay.errors import GatewayUnavailable, LimitExceeded
from zurelay.limits import Granted, Kind, Need, Refused, Reservation, Scope, Standing
from zurelay.model import Endpoint, OnFailure, Price, UsageLimits
from zurelay.plan import Plan
from zurelay.ports import Record
from zurelay.rules import Finding
from zurelay.store import Line, Spent, StoreUnavailableError
from zurelay.worker import Worker

SCOPE = Scope(name="key:a", label="This key", limits=UsageLimits(tokens_per_minute=9))
OPEN = Scope(name="key:a", label="This key")
REFUSED = Refused(
    scope=SCOPE, kind=Kind.TOKENS, limit=9, used=9, needed=1, wait=2_000_000, tokens=Standing(9, 0, 2_000_000)
)
GRANTED = Granted(reservation=Reservation(day="2026-11-30", scopes=("key:a",), id="x.1"), tokens=Standing(9, 3, 60_000))
PRICED = model("first", price=Price(input=Decimal(1), output=Decimal(10)))


class FakeStore:
    """A store that gives one answer."""

    def __init__(self, answer: Granted | Refused | None) -> None:
        self.answer = answer
        self.needs: list[Need] = []

    async def reserve(self, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
        self.needs.append(need)
        assert scopes
        if self.answer is None:
            raise StoreUnavailableError("away")
        return self.answer

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        raise AssertionError(reservation, spent)

    def release(self, reservation: Reservation) -> None:
        raise AssertionError(reservation)

    async def spending(self, first: str, last: str) -> list[Line]:
        raise AssertionError(first, last)

    async def flush(self) -> None: ...

    async def close(self) -> None: ...


class Notes(Silent):
    """A recorder that remembers what limits did; nothing else is told."""

    def __init__(self) -> None:
        self.limits: list[tuple[Refused, bool]] = []

    def limited(self, plan: Plan, refused: Refused, *, shadow: bool) -> None:
        assert plan.request_id
        self.limits.append((refused, shadow))

    def finished(self, record: Record) -> None:
        raise AssertionError(record)

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        raise AssertionError(plan, number, reason)

    def ruled(self, request_id: str, finding: Finding, *, shadow: bool) -> None:
        raise AssertionError(request_id, finding, shadow)


def admit(
    store: FakeStore,
    *scopes: Scope,
    recorder: Notes | None = None,
    on_failure: OnFailure = OnFailure.ALLOW,
    **fields: Any,
) -> Plan:
    known = catalog(PRICED, store=nouns.Store(on_failure=on_failure))
    worker = Worker(egress="", egress_token="", workers=1, recorder=recorder or Notes(), ends=Once())
    worker.configure(known.settings, (), store)
    endpoint = fields.pop("endpoint", Endpoint.CHAT)
    return asyncio.run(admission.admit(worker, known, request(endpoint, **fields), plan(endpoint=endpoint), scopes))


def test_a_request_needs_its_prompt_and_all_answers_that_it_allows() -> None:
    store = FakeStore(GRANTED)
    found = admit(store, SCOPE, max_tokens=100, n=2)
    assert (GRANTED.reservation, 200) == (found.reservation, found.output)
    tokens = found.prompt + 200
    assert [Need(tokens=tokens, usd=Decimal(found.prompt + 2_000) / 10**6)] == store.needs
    assert {
        "x-ratelimit-limit-tokens": "9",
        "x-ratelimit-remaining-tokens": "3",
        "x-ratelimit-reset-tokens": "60ms",
    } == found.standing


def test_without_limits_the_prompt_is_not_counted() -> None:
    found = admit(FakeStore(Granted(reservation=Reservation(day="2026-11-30"))), OPEN)
    assert 0 < found.prompt < 100
    assert {} == found.standing


def test_counting_tokens_needs_none() -> None:
    store = FakeStore(GRANTED)
    admit(store, SCOPE, endpoint=Endpoint.COUNT_TOKENS)
    assert [Need()] == store.needs


def test_what_does_not_fit_is_a_429_that_says_when_and_where_one_stands() -> None:
    notes = Notes()
    with pytest.raises(LimitExceeded) as caught:
        admit(FakeStore(REFUSED), SCOPE, recorder=notes)
    headers = caught.value.headers()
    assert ("2", "0") == (headers["retry-after"], headers["x-ratelimit-remaining-tokens"])
    assert [(REFUSED, False)] == notes.limits


def test_a_limit_in_shadow_is_told_and_lets_through() -> None:
    notes = Notes()
    found = admit(FakeStore(Granted(reservation=GRANTED.reservation, shadow=(REFUSED,))), SCOPE, recorder=notes)
    assert GRANTED.reservation == found.reservation
    assert [(REFUSED, True)] == notes.limits


def test_while_the_store_is_away_requests_go_on_or_are_refused_as_set() -> None:
    found = admit(FakeStore(None), SCOPE)
    assert found.reservation is not None
    assert ("", ("key:a",)) == (found.reservation.id, found.reservation.scopes)
    with pytest.raises(GatewayUnavailable) as caught:
        admit(FakeStore(None), SCOPE, on_failure=OnFailure.REFUSE)
    assert ("1", 503) == (caught.value.headers()["retry-after"], caught.value.status)
