"""What a request came to, once it is over: whose money, and for which tokens (SPEC 11)."""

from __future__ import annotations

from zurelay import money
from zurelay.model import Endpoint, Price
from zurelay.money import Ending
from zurelay.plan import Attempt, Plan
from zurelay.store import Spent
from zurelay.usage import Usage

ANSWERED, CLIENT_LEFT, REFUSED = "answered", "client_left", "refused"  # outcomes; all others are failures too
_ENDINGS = {ANSWERED: Ending.ANSWERED, CLIENT_LEFT: Ending.CLIENT_LEFT}
BYTES_PER_TOKEN = 4


def spent(plan: Plan, attempt: Attempt | None, outcome: str, usage: Usage | None, price: Price | None) -> Spent:
    """Settle a request that ended with `outcome`; `price` is that of the model of `attempt`, which ended it."""
    ending = _ENDINGS.get(outcome, Ending.FAILED)
    if plan.endpoint is Endpoint.COUNT_TOKENS:  # no model ran
        usage = None
    if usage is not None and attempt is not None:
        usage = money.believable(usage, attempt.window, Usage(prompt=plan.prompt, completion=plan.output))
    charged = money.charge(ending, price, usage)
    return Spent(
        key=plan.key or "",
        workload=plan.workload,
        model=attempt.model if attempt is not None and outcome != REFUSED else "",
        usage=charged.usage,
        usd=charged.usd,
        ours=charged.ours,
        failed=ending is Ending.FAILED,
    )


def used(plan: Plan, usage: Usage | None, answer: bytes | None) -> Usage | None:
    """Give what a complete answer used, estimated where its provider didn't say; None where there is no answer."""
    if usage is not None or answer is None:
        return usage
    return Usage(prompt=plan.prompt, completion=len(answer) // BYTES_PER_TOKEN + 1, estimated=True)
