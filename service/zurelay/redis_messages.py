"""What the Redis store says to its scripts and hears from them, as values. The scripts are in data/*.lua."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from zurelay import limits, money
from zurelay.limits import Granted, Kind, Need, Refused, Reservation, Scope, Standing
from zurelay.store import COUNTS, MONEY, Batch, Counts, Line, Place

# [granted, now, [[scope, limit, used, rest of used, wait], ...], [[scope, limit, used, reset], ...]]; scopes from 1
Answer = tuple[int, int, list[tuple[int, int, int, int, int]], list[tuple[int, int, int, int]]]

_KINDS = {1: Kind.REQUESTS, 2: Kind.TOKENS, 3: Kind.USD_DAY, 4: Kind.USD_MONTH}
_NEVER = -1
_HELD = 1  # in place of a wait for money: what requests under way hold leaves no room
_encode = msgspec.json.Encoder().encode


def request(reservation: Reservation, scopes: Iterable[Scope], need: Need) -> bytes:
    """Write a reservation for reserve.lua."""
    day = reservation.day
    shown = [
        [
            scope.name,
            scope.enforced,
            scope.limits.requests_per_minute or False,
            scope.limits.tokens_per_minute or False,
            _amount(scope.limits.usd_per_day),
            _amount(scope.limits.usd_per_month),
        ]
        for scope in scopes
    ]
    micro, rest = money.parts(money.units(need.usd))
    return _encode([reservation.id, need.tokens, micro, rest, day, limits.month_of(day), shown])


def _amount(limit: Decimal | None) -> tuple[int, int] | bool:
    return False if limit is None else money.parts(money.units(limit))


def outcome(answer: Answer, reservation: Reservation, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
    """Read what reserve.lua answered."""
    granted, now, refusals, standings = answer
    requests = limits.tightest(_standings(standings, scopes, Kind.REQUESTS))
    tokens = limits.tightest(_standings(standings, scopes, Kind.TOKENS))
    refused = [_refused(refusal, scopes, need, now) for refusal in refusals]
    if not granted:
        bound = limits.binding(each for each in refused if each.scope.enforced)
        return msgspec.structs.replace(bound, requests=requests, tokens=tokens)
    shadow = [
        limits.binding(each for each in refused if each.scope == scope)
        for scope in dict.fromkeys(each.scope for each in refused)
    ]
    unfit = {each.scope.name for each in shadow}
    kept = tuple(name for name in reservation.scopes if name not in unfit)
    reservation = msgspec.structs.replace(reservation, scopes=kept)
    return Granted(reservation=reservation, requests=requests, tokens=tokens, shadow=tuple(shadow))


def _standings(found: Iterable[tuple[int, int, int, int]], scopes: Sequence[Scope], kind: Kind) -> list[Standing]:
    limit_of = {place: getattr(scope.limits, kind.value) for place, scope in enumerate(scopes, 1)}
    return [
        Standing(limit_of[place], max(limit_of[place] - used, 0), reset)
        for place, which, used, reset in found
        if _KINDS[which] is kind
    ]


def _refused(refusal: tuple[int, int, int, int, int], scopes: Sequence[Scope], need: Need, now: int) -> Refused:
    place, which, used, rest, wait = refusal
    scope, kind = scopes[place - 1], _KINDS[which]
    limit = getattr(scope.limits, kind.value)
    if kind in (Kind.USD_DAY, Kind.USD_MONTH):
        told = money.usd(money.whole(used, rest))
        return limits.out_of_money(scope, kind, limit, told, need.usd, now, held=wait == _HELD)
    needed = 1 if kind is Kind.REQUESTS else need.tokens
    return Refused(scope=scope, kind=kind, limit=limit, used=used, needed=needed, wait=None if wait == _NEVER else wait)


def batch(settled: Batch) -> bytes:
    """Write what was settled for settle.lua."""
    closed = [
        [each.id, each.day, limits.month_of(each.day), each.reserved, each.used, each.scopes] for each in settled.closed
    ]
    spent = [[*place, *_texts(amount)] for place, amount in settled.spent.items()]
    usage = [line for place, counts in settled.lines.items() for line in _usage(place, counts)]
    return _encode(
        {
            "closed": closed,
            "spent": spent,
            "usage": usage,
            "released": list(map(_held, settled.released)),
            "given_up": list(map(_held, settled.given_up)),
        }
    )


def _held(reservation: Reservation) -> tuple[str, str, str, tuple[str, ...]]:
    return reservation.id, reservation.day, limits.month_of(reservation.day), reservation.scopes


def _usage(place: Place, counts: Counts) -> Iterable[list[str]]:
    for name in COUNTS:
        value = getattr(counts, name)
        if value and name in MONEY:
            micro, rest = _texts(value)
            yield [place.day, _field(place, f"{name}_micro"), micro, _field(place, f"{name}_rest"), rest]
        elif value:
            yield [place.day, _field(place, name), str(value)]


def _texts(amount: int) -> list[str]:
    return [str(part) for part in money.parts(amount)]


def _field(place: Place, name: str) -> str:
    return _encode([place.key, place.workload, place.model, name]).decode()


def lines(day: str, fields: Mapping[bytes, bytes]) -> list[Line]:
    """Read a day's hash of usage."""
    found: dict[Place, dict[str, int]] = {}
    for field, value in fields.items():
        key, workload, model, name = msgspec.json.decode(field, type=tuple[str, str, str, str])
        found.setdefault(Place(day, key, workload, model), {})[name] = int(value)
    return [Line(place, _counts(figures)) for place, figures in sorted(found.items())]


def _counts(figures: Mapping[str, int]) -> Counts:
    def figure(name: str) -> int:
        if name in MONEY:
            return money.whole(figures.get(f"{name}_micro", 0), figures.get(f"{name}_rest", 0))
        return figures.get(name, 0)

    return Counts(**{name: figure(name) for name in COUNTS})
