"""Lets a planned request in, as far as the limits of its key and policies go, and holds what it needs of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zurelay import limits, money
from zurelay.catalog import Catalog
from zurelay.clock import WallClock
from zurelay.errors import GatewayUnavailable
from zurelay.limits import Granted, Need, Refused, Reservation, Scope
from zurelay.model import Endpoint, OnFailure
from zurelay.plan import Plan
from zurelay.request import ChatRequest
from zurelay.settlement import BYTES_PER_TOKEN
from zurelay.store import Store, StoreUnavailableError
from zurelay.worker import Worker

_RETRY = 1  # seconds after which a store that is away may be back


async def admit(worker: Worker, catalog: Catalog, request: ChatRequest, planned: Plan, scopes: Sequence[Scope]) -> Plan:
    """Give the plan with what it holds of the limits; 429 where it doesn't fit, 503 where nobody can tell."""
    if any(scope.limited for scope in scopes):
        prompt, output = request.tokens, limits.output_needed(request.max_output, request.choices)
    else:  # nothing is checked: this only serves an estimate, where a provider doesn't say what was used
        prompt, output = len(request.document.data) // BYTES_PER_TOKEN, limits.DEFAULT_OUTPUT
    outcome = await _reserved(worker.store, catalog, scopes, _need(catalog, planned, prompt, output))
    if isinstance(outcome, Refused):
        worker.recorder.limited(planned, outcome, shadow=False)
        raise limits.exceeded(outcome)
    for refused in outcome.shadow:
        worker.recorder.limited(planned, refused, shadow=True)
    return msgspec.structs.replace(
        planned,
        reservation=outcome.reservation,
        standing=limits.headers(outcome),
        prompt=prompt,
        output=output,
    )


def _need(catalog: Catalog, planned: Plan, prompt: int, output: int) -> Need:
    if planned.endpoint is Endpoint.COUNT_TOKENS:
        return Need()
    models = map(catalog.get, planned.models)
    prices = (model.price for model in models if model is not None)
    return Need(tokens=prompt + output, usd=money.estimate(prices, prompt, output))


async def _reserved(store: Store, catalog: Catalog, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
    try:
        return await store.reserve(scopes, need)
    except StoreUnavailableError as error:
        if catalog.settings.store.on_failure is OnFailure.REFUSE:
            raise GatewayUnavailable(
                "Limits can't be checked at the moment. Try again in a second.", retry_after=_RETRY
            ) from error
        return Granted(
            reservation=Reservation(day=limits.day_of(WallClock().now()), scopes=tuple(scope.name for scope in scopes))
        )
