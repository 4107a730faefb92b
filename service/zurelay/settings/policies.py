"""Policies, and the limits that keys have too (SPEC 11 and 12)."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec

from zurelay.model import Effort, Input, Match, Names, Policy, UsageLimits
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Found, Reader, each, struct
from zurelay.settings.scalars import choice, flag, integer, matching, number

LABEL = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}"
MOST_COUNT = 10**12
LEAST_USD, MOST_USD = decimal.Decimal("0.000001"), decimal.Decimal(10**9)

label = matching(LABEL, "a name: 1 to 128 of A-Z a-z 0-9 . _ : / @ + -")
_pattern = matching(
    r"[A-Za-z0-9._:/@+*?\[\]!-]{1,253}", "a name or a pattern: 1 to 253 of A-Z a-z 0-9 . _ : / @ + - * ? [ ] !"
)
_COUNT = integer(1, MOST_COUNT)
_USD = number(LEAST_USD, MOST_USD)


class _Effort(msgspec.Struct, frozen=True):
    max: Effort


class _Inputs(msgspec.Struct, frozen=True):
    deny: tuple[Input, ...] = ()


def policy(at: At, facts: Facts) -> Policy:
    """Read one policy."""
    found = Found(
        at,
        {
            "name": label,
            "match": _match,
            "models": _names(facts.names.model_glob),
            "providers": _names(facts.names.provider_glob),
            "effort": lambda child: struct(child, _Effort, {"max": choice(Effort)}).max,
            "inputs": lambda child: frozenset(struct(child, _Inputs, {"deny": each(_input)}).deny),
            "limits": usage_limits,
            "smart_routing": flag,
            "shadow": flag,
        },
    )
    for key, field in (("effort", "effort_max"), ("inputs", "inputs_deny")):
        if key in found.values:
            found.values[field] = found.values.pop(key)
    return found.build(Policy)


_kind = choice(Input)


def _input(at: At) -> Input:
    found = _kind(at)
    if found is Input.TEXT:
        raise at.wrong("every request is text; to let none through, deny the models")
    return found


def _match(at: At) -> Match:
    return struct(at, Match, dict.fromkeys(("namespace", "service_account", "key"), _pattern))


def _names(read: Reader[str]) -> Reader[Names]:
    return lambda at: struct(at, Names, {"allow": each(read), "deny": each(read)})


def usage_limits(at: At) -> UsageLimits:
    """Read limits of use; one left out is no limit, and 0 is not a limit but a mistake."""
    readers: dict[str, Reader[Any]] = dict.fromkeys(("requests_per_minute", "tokens_per_minute"), _COUNT)
    return struct(at, UsageLimits, readers | dict.fromkeys(("usd_per_day", "usd_per_month"), _USD))


def policies(at: At, facts: Facts) -> tuple[Policy, ...]:
    """Read all policies; each name is there once."""
    first: dict[str, int] = {}

    def read(child: At) -> Policy:
        found = policy(child, facts)
        if found.name in first:
            child.key("name").note(f"the policy at line {first[found.name]} has this name too")
        first.setdefault(found.name, child.line)
        return found

    return each(read, repeats=True)(at)
