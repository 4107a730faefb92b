"""What each event of a request's life counts in: the one place where metrics get their labels.

Labels are of the catalog, the keys' file, the policies and closed sets of words; nothing that a client writes is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from zurelay import families, settlement
from zurelay.attributes import CHAT, Place, operation
from zurelay.limits import Refused
from zurelay.moments import seconds
from zurelay.plan import Plan
from zurelay.ports import Record, Unplanned
from zurelay.rules import Finding
from zurelay.tally import Family, Labels, Tally
from zurelay.tried import UNSEEN, Tried

_UNJUDGED = frozenset({UNSEEN, settlement.BROKEN})  # errors that no `gave_up` has told of


def decided(tally: Tally, plan: Plan, took: float) -> None:
    """Count a plan; `took` is the sidecar's time for it in seconds."""
    tally.add(families.DECISIONS, (plan.category, plan.attempts[0].model))
    tally.observe(families.SIDECAR_DURATION, ("decide",), took)


def unplanned(tally: Tally, given: Unplanned) -> None:
    """Count a request that had no plan."""
    if given.outcome == settlement.TURNED_AWAY:
        tally.add(families.REFUSALS, (given.code,))
    else:
        tally.add(families.REQUESTS, ("", given.outcome))


def finished(tally: Tally, record: Record, made: Sequence[Tried], place: Callable[[str], Place]) -> None:
    """Count a request that is over, and its attempts, which are `made`."""
    answering = record.attempt
    model = answering.model if answering is not None and record.outcome not in settlement.UNANSWERED else ""
    tally.add(families.REQUESTS, (model, record.outcome))
    plan, moments, spent = record.plan, record.moments, record.spent
    whole = seconds(plan.began, moments.ended)
    if whole is not None:
        tally.observe(families.REQUEST_DURATION, (model, _word(plan.stream)), whole)
    if spent is not None:
        _cost(tally, families.COST, model, spent.usd)
        _cost(tally, families.OWN_COST, model, spent.ours)
    if moments.keepalives:
        tally.add(families.KEEPALIVES, (), moments.keepalives)
    if moments.opened:
        tally.add(families.EARLY_OPENS, ())
    if len(made) > 1:
        tally.add(families.FALLBACKS, (plan.asked, made[0].reason))
    for one in made:
        _attempt(tally, record, one, place(one.attempt.provider))
        if one.error in _UNJUDGED:
            tally.add(families.GIVEN_UP, (one.attempt.cluster, one.error))


def _attempt(tally: Tally, record: Record, one: Tried, place: Place) -> None:
    labels = (operation(record.plan), place.name, one.attempt.upstream, place.address, str(place.port))
    took = seconds(one.began, one.ended)
    if took is not None:
        tally.observe(families.OPERATION_DURATION, (*labels, one.error), took)
    if one.ends:
        _end(tally, record, one, labels)


def _end(tally: Tally, record: Record, one: Tried, labels: Labels) -> None:
    moments, usage = record.moments, record.usage
    first = seconds(one.began, moments.first_token)
    if first is not None:
        tally.observe(families.TIME_TO_FIRST_CHUNK, labels, first)
    seen = seconds(record.plan.began, moments.first_token)
    if seen is not None:
        tally.observe(families.TIME_TO_FIRST_TOKEN, labels[:3], seen)
    if moments.gaps:
        tally.merge(families.TIME_PER_OUTPUT_CHUNK, labels, moments.gaps)
    if usage is not None and labels[0] == CHAT:  # who only counts uses nothing
        tally.observe(families.TOKEN_USAGE, (*labels, "input"), usage.prompt)
        tally.observe(families.TOKEN_USAGE, (*labels, "output"), usage.completion)


def _cost(tally: Tally, family: Family, model: str, usd: Decimal | None) -> None:
    if usd:
        tally.add(family, (model,), float(usd))


def gave_up(tally: Tally, plan: Plan, number: int, reason: str) -> None:
    """Count an attempt that failed."""
    tally.add(families.GIVEN_UP, (plan.attempts[number - 1].cluster, reason))


def limited(tally: Tally, refused: Refused, *, shadow: bool) -> None:
    """Count what a limit refused."""
    tally.add(families.LIMITS_HIT, (scope(refused), refused.kind.value, _word(shadow)))


def scope(refused: Refused) -> str:
    """Name what a limit belongs to: a policy, or keys in general."""
    rule = refused.scope.name.partition(" ")[0]
    return "key" if rule.startswith("key:") else rule


def ruled(tally: Tally, finding: Finding, *, shadow: bool) -> None:
    """Count what a policy had against a request."""
    tally.add(families.POLICY_EFFECTS, (finding.policy, finding.effect.value, _word(shadow)))


def _word(flag: bool) -> str:
    return "true" if flag else "false"
