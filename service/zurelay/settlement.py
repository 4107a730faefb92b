"""What a request came to, once it is over: whose money, and for which tokens (SPEC 11)."""

from __future__ import annotations

from decimal import Decimal

from zurelay import money, plan
from zurelay.model import Endpoint
from zurelay.money import Ending
from zurelay.plan import Attempt, Plan
from zurelay.store import Spent
from zurelay.usage import Usage, filled

# Outcomes; all but the first two are failures.
ANSWERED, CLIENT_LEFT, REFUSED, FAILED, BROKEN = "answered", "client_left", "refused", "failed", "broken"
_ENDINGS = {ANSWERED: Ending.ANSWERED, CLIENT_LEFT: Ending.CLIENT_LEFT}
TURNED_AWAY = "turned_away"  # without a plan
UNANSWERED = frozenset({REFUSED, FAILED})  # no model answered
BYTES_PER_TOKEN = 4
_MOST_OUTPUT = 10  # windows: several choices may write more than one window holds, none so many


def spent(planned: Plan, attempt: Attempt | None, outcome: str, usage: Usage | None) -> Spent:
    """Settle a request that `attempt` ended with `outcome`; what attempts before it used is ours."""
    ending = _ENDINGS.get(outcome, Ending.FAILED)
    if planned.endpoint is Endpoint.COUNT_TOKENS:  # no model ran
        usage = None
    charged = money.charge(ending, attempt.price if attempt is not None else None, usage, _discarded(planned))
    return Spent(
        key=planned.key or "",
        workload=planned.workload,
        model=attempt.model if attempt is not None and outcome not in UNANSWERED else "",
        usage=charged.usage,
        usd=charged.usd,
        ours=charged.ours,
        failed=ending is Ending.FAILED,
    )


def _discarded(planned: Plan) -> list[Decimal]:
    if planned.endpoint is Endpoint.COUNT_TOKENS:
        return []
    return [
        money.cost(attempt.price, used(planned, attempt, usage, 0))
        for attempt, usage in plan.discarded(planned)
        if attempt.price is not None
    ]


def used(planned: Plan, attempt: Attempt, usage: Usage | None, said: int) -> Usage:
    """Give what an answer used as far as its provider can be believed, else our estimate; it `said` so many tokens."""
    own = Usage(prompt=planned.prompt, completion=said, estimated=True)
    if usage is None:
        return own
    window = attempt.window
    most_output = max(attempt.max_output or 0, window, min(planned.output, _MOST_OUTPUT * window))
    return money.believable(filled(usage, own), most_prompt=window, most_output=most_output, otherwise=own)


def left_unanswered(planned: Plan) -> Usage:
    """Give what a client pays that leaves before it sees an answer: its prompt, which a model has been given.

    How much the model has written by then nobody says.
    """
    return Usage(prompt=planned.prompt, estimated=True)


def tokens(size: int) -> int:
    """Estimate the tokens of so many bytes of an answer."""
    return size // BYTES_PER_TOKEN + 1
