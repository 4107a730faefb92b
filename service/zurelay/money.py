"""What a request costs (SPEC 11): USD in exact decimals, never rounded; stored as whole numbers of 1e-18 USD."""

from __future__ import annotations

import decimal
import enum
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from zurelay.model import Price
from zurelay.usage import Usage

PLACES = 18  # a price has at most 12 decimals and is for a million tokens, so a token's price has at most 18
REST = 10**12  # in a millionth of a USD

ZERO = Decimal(0)
_PER_MILLION = -6
# Wide enough for any tokens that a record may hold at any price, and an error rather than a rounding beyond that.
_EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])


def cost(price: Price, usage: Usage) -> Decimal:
    """Give the cost of an answer: plain, cached and cache-written input and output, each at its own price."""
    cached, written = max(usage.cached, 0), max(usage.cache_written, 0)
    plain = max(usage.prompt - cached - written, 0)
    parts = (
        (plain, price.input),
        (cached, price.input if price.cached_input is None else price.cached_input),
        (written, price.input if price.cache_write is None else price.cache_write),
        (max(usage.completion, 0), price.output),
    )
    total = ZERO
    for tokens, per_million in parts:
        if tokens:
            total = _EXACT.add(total, _EXACT.multiply(Decimal(tokens), per_million))
    return _EXACT.scaleb(total, _PER_MILLION)


def estimate(prices: Iterable[Price | None], prompt: int, output: int) -> Decimal:
    """Give what a request may cost at most by its estimate: at the dearest of the models that may answer it."""
    usage = Usage(prompt=prompt, completion=output)
    return max((cost(price, usage) for price in prices if price is not None), default=ZERO)


def believable(usage: Usage, *, most_prompt: int, most_output: int, otherwise: Usage) -> Usage:
    """Give a provider's figures; in place of one that is beyond what the model can do, our own estimate."""
    if usage.prompt > most_prompt:
        prompt = min(otherwise.prompt, most_prompt)
        usage = msgspec.structs.replace(usage, prompt=prompt, cached=0, cache_written=0, estimated=True)
    if usage.completion > most_output:
        completion = min(otherwise.completion, most_output)
        usage = msgspec.structs.replace(usage, completion=completion, reasoning=0, estimated=True)
    return usage


class Ending(enum.Enum):
    """How a request ended, as far as money goes."""

    ANSWERED = "answered"
    CLIENT_LEFT = "client_left"
    FAILED = "failed"


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays for a request. `usd` is the client's share, None where the model has no price; `ours` what we bear.

    `usage` is what counts for the client: nothing where the request failed.
    """

    usd: Decimal | None = ZERO
    ours: Decimal = ZERO
    usage: Usage = Usage()


def charge(ending: Ending, price: Price | None, usage: Usage | None, discarded: Iterable[Decimal] = ()) -> Charge:
    """Settle who pays (SPEC 11): a client that leaves pays what was generated, a failure is ours whenever it came.

    `discarded` are the costs of attempts that were given up: always ours.
    """
    ours = ZERO
    for each in discarded:
        ours = _EXACT.add(ours, each)
    if usage is None:
        return Charge(ours=ours)
    usd = None if price is None else cost(price, usage)
    if ending is Ending.FAILED:
        return Charge(ours=ours if usd is None else _EXACT.add(ours, usd))
    return Charge(usd=usd, ours=ours, usage=usage)


def units(usd: Decimal) -> int:
    """Give USD as a whole number of 1e-18 USD; an amount that is finer is an error."""
    scaled = _EXACT.scaleb(usd, PLACES)
    return int(_EXACT.to_integral_exact(scaled))


def usd(count: int) -> Decimal:
    """Give the USD that `units` made a whole number of."""
    return Decimal(f"{count}E-{PLACES}")


def parts(count: int) -> tuple[int, int]:
    """Give a `units` number as whole millionths of a USD and a rest: each fits where 64 bits are all there is."""
    return divmod(count, REST)


def whole(micro: int, rest: int) -> int:
    """Put `parts` together."""
    return micro * REST + rest


def written(amount: Decimal, places: int = 2) -> str:
    """Write USD exactly, with at least `places` decimals: 0.50, 0.0000125."""
    text = f"{amount:f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(places, '0')}"
