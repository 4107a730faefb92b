"""What the Redis store says and hears, as values."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from storing import DAY, NOON, need, scope, spent
from zurelay import redis_messages
from zurelay.limits import MINUTE, Granted, Kind, Refused, Reservation, Standing
from zurelay.redis_messages import Answer
from zurelay.store import COUNTS, Batch, Counts, Line, Place

KEY = scope(requests_per_minute=5, tokens_per_minute=1000, usd_per_day="1", usd_per_month="20.5")
SHADOW = scope("policy:p anyone", enforced=False, requests_per_minute=1, usd_per_month="1")
HELD = Reservation(day=DAY, scopes=("key:a", "policy:p anyone"), id="3f.1", tokens=400)


def test_a_request_has_all_that_the_script_needs() -> None:
    written = redis_messages.request(HELD, (KEY, SHADOW), need(400, "0.0000010000000005"))
    assert [
        "3f.1",
        400,
        1,
        500,
        "2026-11-30",
        "2026-11",
        [
            ["key:a", True, 5, 1000, [1000000, 0], [20500000, 0]],
            ["policy:p anyone", False, 1, False, False, [1000000, 0]],
        ],
    ] == json.loads(written)


def test_a_grant_is_read_with_its_standings() -> None:
    answer: Answer = (1, NOON, [], [(1, 1, 3, MINUTE), (1, 2, 1200, 5)])
    assert Granted(
        reservation=HELD, requests=Standing(5, 2, MINUTE), tokens=Standing(1000, 0, 5)
    ) == redis_messages.outcome(answer, HELD, (KEY, SHADOW), need(400))


def test_a_shadow_that_has_no_room_is_told_and_holds_nothing() -> None:
    answer: Answer = (1, NOON, [(2, 1, 1, 0, 7), (2, 4, 900000, 5, 0)], [])
    outcome = redis_messages.outcome(answer, HELD, (KEY, SHADOW), need(400, "0.5"))
    assert isinstance(outcome, Granted)
    assert ("key:a",) == outcome.reservation.scopes
    (told,) = outcome.shadow
    assert (Kind.USD_MONTH, Decimal("0.900000000000000005")) == (told.kind, told.used)


def test_the_enforced_refusal_with_the_longest_wait_is_read() -> None:
    answer: Answer = (0, NOON, [(1, 1, 5, 0, 7), (1, 2, 900, 0, 9), (2, 1, 1, 0, 100)], [(1, 1, 5, 8)])
    assert Refused(
        scope=KEY, kind=Kind.TOKENS, limit=1000, used=900, needed=400, wait=9, requests=Standing(5, 0, 8)
    ) == redis_messages.outcome(answer, HELD, (KEY, SHADOW), need(400))


def test_tokens_that_never_fit_have_no_wait() -> None:
    outcome = redis_messages.outcome((0, NOON, [(1, 2, 0, 0, -1)], []), HELD, (KEY,), need(4000))
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.wait) == (Kind.TOKENS, None)


def test_a_batch_has_what_was_settled_amounts_in_two_parts() -> None:
    batch = Batch()
    batch.note(HELD, spent("0.0000030000000007", prompt=10, completion=5, ours=Decimal(2)), NOON)
    batch.released.append(Reservation(day=DAY, scopes=("key:a",), id="3f.2", tokens=1))
    batch.given_up.append(Reservation(day=DAY, scopes=("key:b",), id="3f.3", tokens=1))
    place = ["a", "", "gpt"]
    fields = {name: json.dumps([*place, name], separators=(",", ":")) for name in ("requests", "prompt", "completion")}
    parts = {
        name: json.dumps([*place, name], separators=(",", ":"))
        for name in ("usd_micro", "usd_rest", "ours_micro", "ours_rest")
    }
    assert {
        "closed": [["3f.1", DAY, "2026-11", 400, 15, ["key:a", "policy:p anyone"]]],
        "spent": [
            [name, period, "3", "700"] for name in ("key:a", "policy:p anyone") for period in ("2026-11-30", "2026-11")
        ],
        "usage": [
            [DAY, fields["requests"], "1"],
            [DAY, fields["prompt"], "10"],
            [DAY, fields["completion"], "5"],
            [DAY, parts["usd_micro"], "3", parts["usd_rest"], "700"],
            [DAY, parts["ours_micro"], "2000000", parts["ours_rest"], "0"],
        ],
        "released": [["3f.2", DAY, "2026-11", ["key:a"]]],
        "given_up": [["3f.3", DAY, "2026-11", ["key:b"]]],
    } == json.loads(redis_messages.batch(batch))


texts = st.text(max_size=8)
places = st.builds(Place, day=st.just(DAY), key=texts, workload=texts, model=texts)
counts = st.builds(Counts, **dict.fromkeys(COUNTS, st.integers(min_value=0, max_value=10**25)))


@given(st.dictionaries(places, counts, max_size=4))
def test_what_a_batch_writes_is_read_back(lines: dict[Place, Counts]) -> None:
    written = json.loads(redis_messages.batch(Batch(lines=lines)))
    fields: dict[bytes, bytes] = {}
    for _, *pairs in written["usage"]:
        fields.update({field.encode(): count.encode() for field, count in zip(pairs[::2], pairs[1::2], strict=True)})
    expected = [Line(place, each) for place, each in sorted(lines.items()) if each != Counts()]
    assert expected == redis_messages.lines(DAY, fields)


def test_no_fields_are_no_lines() -> None:
    assert [] == redis_messages.lines(DAY, {})
