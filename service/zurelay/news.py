"""What happens to limits, as events: what the processes that share a store tell each other, each in a line of JSON.

Whoever takes in the same events in the same order comes to the same figures (`ledger.py`).
"""

from __future__ import annotations

import msgspec


class Taken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request was let in: it holds `tokens` and `amount` (in 1e-18 USD) in all these scopes."""

    id: str
    at: int
    day: str
    tokens: int
    amount: int
    scopes: tuple[str, ...]


class Closed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request that held `reserved` tokens is over and has used `used`."""

    id: str
    at: int
    day: str
    reserved: int
    used: int
    scopes: tuple[str, ...]


class News(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one process did at one time. `spent` are amounts by scope and period, `released` ids."""

    taken: tuple[Taken, ...] = ()
    closed: tuple[Closed, ...] = ()
    spent: tuple[tuple[str, str, int], ...] = ()
    released: tuple[str, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(News)


def encode(news: News) -> bytes:
    """Write news; whole numbers of any size stay whole."""
    return _encoder.encode(news)


def decode(line: bytes) -> News:
    """Read what `encode` wrote."""
    return _decoder.decode(line)


def reservation_id(owner: str, number: int) -> str:
    """Name a reservation after the process that made it."""
    return f"{owner}.{number}"


def owner_of(reservation: str) -> str:
    """Give the process that made a reservation."""
    return reservation.partition(".")[0]
