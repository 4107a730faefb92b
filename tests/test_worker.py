"""What a worker holds: bodies in flight, routes set aside, the configuration in force."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import pathlib
import time
from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import Once, Silent, attempt, catalog, model, plan
from zurelay.claims import MOMENT, Claims
from zurelay.errors import GatewayUnavailable, TooLarge, Unauthenticated
from zurelay.limits import Reservation
from zurelay.model import Limits, Price
from zurelay.plan import decode, encode
from zurelay.ports import Record
from zurelay.store import Spent
from zurelay.usage import Usage
from zurelay.worker import Bodies, Held, Worker

LIMIT = 100


def held(bodies: Bodies, declared: int | None = None) -> Held:
    return Held(bodies, LIMIT, declared)


def taken(bodies: Bodies, size: int) -> Held:
    """A body that has come."""
    one = held(bodies)
    one.grow(size)
    return one


@pytest.mark.parametrize("declared", [None, 60])
def test_a_body_is_held_as_it_comes_whatever_was_declared(declared: int | None) -> None:
    bodies = Bodies(1_000)
    one = held(bodies, declared)
    assert bodies.held == 0
    for size in (10, 20, 30):
        one.grow(size)
    assert bodies.held == 60
    one.release()
    assert bodies.held == 0


def test_a_body_of_the_limit_passes_and_one_byte_more_is_413() -> None:
    bodies = Bodies(1_000)
    held(bodies, LIMIT).grow(LIMIT)
    held(bodies).grow(LIMIT)
    for declared, size in ((LIMIT + 1, 0), (None, LIMIT + 1), (5, LIMIT + 1)):
        with pytest.raises(TooLarge) as caught:
            held(bodies, declared).grow(size)
        assert (413, "request_too_large") == (caught.value.status, caught.value.code)
        assert "100 bytes" in caught.value.message


def test_a_body_too_large_by_its_declaration_takes_nothing() -> None:
    bodies = Bodies(1_000)
    with pytest.raises(TooLarge):
        held(bodies, LIMIT + 1)
    assert bodies.held == 0


def test_a_decoded_body_counts_by_its_size() -> None:
    bodies = Bodies(1_000)
    one = held(bodies, 10)
    one.grow(10)
    one.decoded(90)
    assert bodies.held == 90
    one.decoded(LIMIT)
    with pytest.raises(TooLarge):
        one.decoded(LIMIT + 1)
    one.release()
    assert bodies.held == 0


def test_a_body_that_shrinks_when_decoded_gives_nothing_back_yet() -> None:
    bodies = Bodies(1_000)
    one = taken(bodies, 50)
    one.decoded(20)
    assert bodies.held == 50


def test_beyond_all_bodies_in_flight_it_is_503_with_retry_after() -> None:
    bodies = Bodies(150)
    one = taken(bodies, 100)
    taken(bodies, 50)
    for late in (lambda: taken(bodies, 1), lambda: held(bodies, 0).decoded(1)):
        with pytest.raises(GatewayUnavailable) as caught:
            late()
        assert (503, "gateway_unavailable", {"retry-after": "1"}) == (
            caught.value.status,
            caught.value.code,
            caught.value.headers(),
        )
    assert bodies.held == 150
    one.release()
    taken(bodies, 100)
    assert bodies.held == 150


def test_a_body_is_given_back_once() -> None:
    bodies = Bodies(1_000)
    other = taken(bodies, 30)
    one = taken(bodies, 60)
    one.release()
    one.release()
    assert bodies.held == 30
    other.release()
    assert bodies.held == 0


def test_a_smaller_bound_takes_nothing_away() -> None:
    bodies = Bodies(1_000)
    one = taken(bodies, 100)
    bodies.resize(50)
    with pytest.raises(GatewayUnavailable):
        taken(bodies, 1)
    one.release()
    taken(bodies, 50)
    assert bodies.held == 50


@given(
    st.integers(0, 300),
    st.lists(
        st.tuples(st.none() | st.integers(0, 120), st.lists(st.integers(0, 60), max_size=4), st.integers(0, 120)),
        max_size=8,
    ),
)
def test_no_byte_is_lost_or_held_twice(bound: int, requests: list[tuple[int | None, list[int], int]]) -> None:
    bodies = Bodies(bound)
    alive = []
    for declared, sizes, decoded in requests:
        try:
            one = held(bodies, declared)
        except (TooLarge, GatewayUnavailable):
            continue
        alive.append(one)
        try:
            for size in sizes:
                one.grow(size)
            one.decoded(decoded)
        except (TooLarge, GatewayUnavailable):
            one.release()
        assert 0 <= bodies.held <= bound
    for one in alive:
        one.release()
    assert bodies.held == 0


def worker(workers: int = 1) -> Worker:
    return Worker(egress="/nowhere", egress_token="t", workers=workers, recorder=Silent(), ends=Once())


def test_before_its_configuration_a_worker_is_starting() -> None:
    for part in (lambda: worker().catalog, lambda: worker().keys):
        with pytest.raises(GatewayUnavailable) as caught:
            part()
        assert {"retry-after": "1"} == caught.value.headers()


BOUNDS = {
    "one worker": (1, 300, 100, 300),
    "workers share it evenly": (3, 300, 100, 100),
    "each can hold the largest body": (8, 300, 100, 100),
}


@pytest.mark.parametrize(
    ("workers", "in_flight", "body", "expected"), [pytest.param(*row, id=name) for name, row in BOUNDS.items()]
)
def test_the_bound_on_bodies_is_shared(workers: int, in_flight: int, body: int, expected: int) -> None:
    limits = Limits(request_body=body, bodies_in_flight=in_flight)
    made = worker(workers)
    made.configure(catalog(model("first"), limits=limits).settings, ())
    made.bodies.take(expected)
    with pytest.raises(GatewayUnavailable):
        made.bodies.take(1)


def test_a_new_configuration_replaces_the_old_one() -> None:
    made = worker()
    made.configure(catalog(model("first")).settings, ())
    before = made.catalog
    made.configure(catalog(model("second")).settings, ())
    assert before.get("first") is not None
    assert (None, "second") == (made.catalog.get("first"), made.catalog.find("second").id)
    with pytest.raises(Unauthenticated):
        made.keys.authenticate({}, dt.datetime.now(dt.UTC))


def test_a_route_is_set_aside_until_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    made = worker()
    assert frozenset() == made.routes_aside()
    made.set_aside("a/one", 10)
    made.set_aside("b/one", 5)
    made.set_aside("a/one", 3)  # a shorter wait doesn't end the longer one
    assert frozenset({"a/one", "b/one"}) == made.routes_aside()
    now[0] = 1_005.0
    assert frozenset({"a/one"}) == made.routes_aside()
    now[0] = 1_010.0
    assert frozenset() == made.routes_aside()


def test_every_request_has_its_own_id() -> None:
    ids = {Worker.new_request_id() for _ in range(100)}
    assert len(ids) == 100
    assert {"req_"} == {each[:4] for each in ids}


class Ledger:
    """A store and a recorder that take note of what was settled and put on record."""

    def __init__(self) -> None:
        self.settled: list[Spent] = []
        self.records: list[Record] = []

    def settle(self, _: Reservation, spent: Spent) -> None:
        self.settled.append(spent)

    def finished(self, record: Record) -> None:
        self.records.append(record)


PRICE = Price(input=Decimal(1), output=Decimal(10))
ONE = attempt("first/one", price=PRICE)
ENDS = {
    "answered": Record(plan=plan(ONE), number=1, attempt=ONE, outcome="answered", usage=Usage(prompt=7, completion=1)),
    "client_left": Record(plan=plan(ONE), number=1, attempt=ONE, outcome="client_left", usage=Usage(prompt=9)),
    "failed": Record(plan=plan(ONE), number=1, attempt=ONE, outcome="failed"),
}


@pytest.mark.parametrize("order", list(itertools.permutations(ENDS)), ids=" then ".join)
async def test_an_end_that_several_see_counts_once_and_the_first_ones_word_holds(
    order: tuple[str, ...], tmp_path: pathlib.Path
) -> None:
    """Two workers, one file of ends: a verdict in the one while Envoy tells the other that the client has left."""
    kept = Ledger()
    workers = []
    for _ in range(2):
        ends = Claims(str(tmp_path / "ends"))
        made = Worker(egress="", egress_token="", workers=2, recorder=cast("Any", kept), ends=ends)
        made.configure(catalog(model("first")).settings, (), cast("Any", kept))
        workers.append(made)
    for place, name in enumerate(order):
        record = ENDS[name]
        held = msgspec.structs.replace(record.plan, reservation=Reservation(day="2026-11-30", id="a.1"))
        made = workers[place % 2]
        tell = made.finish if name == "answered" else made.finish_unjudged
        tell(msgspec.structs.replace(record, plan=held))
    await asyncio.sleep(2 * MOMENT)
    assert [order[0]] == [record.outcome for record in kept.records]
    assert 1 == len(kept.settled)
    assert {"answered": Decimal("0.000017"), "client_left": Decimal("0.000009"), "failed": 0}[order[0]] == (
        kept.settled[0].usd
    )


def test_the_price_is_that_of_the_plan_whatever_a_reload_made_of_the_model(tmp_path: pathlib.Path) -> None:
    kept = Ledger()
    ends = Claims(str(tmp_path / "ends"))
    made = Worker(egress="", egress_token="", workers=1, recorder=cast("Any", kept), ends=ends)
    made.configure(catalog(model("another")).settings, (), cast("Any", kept))
    held = msgspec.structs.replace(plan(ONE), reservation=Reservation(day="2026-11-30"))
    made.finish(msgspec.structs.replace(ENDS["answered"], plan=decode(encode(held))))
    assert Decimal("0.000017") == kept.settled[0].usd
