"""Policies: which of them match a caller, and the scopes that a caller's requests count in (SPEC 11 and 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from zurelay.access import Caller
from zurelay.identity import can_be_called
from zurelay.limits import Scope
from zurelay.model import AUTO_ID, IdentityMode, Key, Match, Policy, Settings, UsageLimits
from zurelay.problems import Problem
from zurelay.rules import Rule, Rules, globs
from zurelay.settings.names import is_glob

_MOST_CALLERS = 10_000  # whose rules are kept at hand
_UNLIMITED = UsageLimits()
_UNNAMED: dict[str, str | None] = {"namespace": None, "service_account": None}


class Who(msgspec.Struct, frozen=True):
    """A caller as policies see it: its workload, where it proved one, and the name of its key, where it has one."""

    namespace: str | None = None
    service_account: str | None = None
    key: str | None = None

    @property
    def workload(self) -> str:
        """The workload, written NAMESPACE/SERVICE_ACCOUNT; empty where there is none."""
        return f"{self.namespace}/{self.service_account}" if self.namespace is not None else ""

    @property
    def _counted_as(self) -> str:
        if self.workload:
            return f"workload:{self.workload}"
        return "anyone" if self.key is None else f"key:{self.key}"

    def scope(self, policy: Policy) -> Scope:
        """Give the scope of a policy's limits: each policy counts by itself, for each workload, else for each key."""
        return Scope(
            name=f"policy:{policy.name} {self._counted_as}",  # no name has a space in it
            label=f"The policy {policy.name}",
            limits=policy.limits,
            enforced=not policy.shadow,
        )


def key_scope(key: Key) -> Scope:
    """Give the scope of a key's own limits; without limits it counts spend all the same, in case they come later."""
    return Scope(name=f"key:{key.name}", label="This key", limits=key.limits)


class Matched(msgspec.Struct, frozen=True):
    """The policies of one caller: those that are enforced, and those in shadow, which only tell what they would do.

    `scopes` are theirs, for those that have limits.
    """

    enforced: Rules
    shadow: Rules
    scopes: tuple[Scope, ...]


class _Matcher:
    """A policy and whom it applies to. A pattern, `*` too, needs something to match; left out, it matches all."""

    __slots__ = ("_tests", "rule")

    def __init__(self, policy: Policy) -> None:
        self.rule = Rule(policy)
        self._tests: list[tuple[str, Callable[[str], bool]]] = [
            (field, globs((pattern,)))
            for field in Match.__struct_fields__
            if (pattern := getattr(policy.match, field)) is not None
        ]

    def matches(self, who: Who) -> bool:
        return all((value := getattr(who, field)) is not None and test(value) for field, test in self._tests)


class Policies:
    """All policies of one configuration."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._matchers = [_Matcher(policy) for policy in policies]
        self._callers: dict[Who, Matched] = {}

    def match(self, who: Who) -> Matched:
        """Give the policies that match a caller."""
        found = self._callers.get(who)
        if found is None:
            if len(self._callers) >= _MOST_CALLERS:
                self._callers.clear()
            found = self._callers[who] = self._match(who)
        return found

    def _match(self, who: Who) -> Matched:
        rules = [matcher.rule for matcher in self._matchers if matcher.matches(who)]
        return Matched(
            enforced=Rules([rule for rule in rules if not rule.policy.shadow]),
            shadow=Rules([rule for rule in rules if rule.policy.shadow]),
            scopes=tuple(who.scope(rule.policy) for rule in rules if rule.policy.limits != _UNLIMITED),
        )


def who(caller: Caller) -> Who:
    """Give a caller as policies see it."""
    workload = caller.workload
    return Who(
        namespace=workload.namespace if workload is not None else None,
        service_account=workload.service_account if workload is not None else None,
        key=caller.key.name if caller.key is not None else None,
    )


def scopes(caller: Caller, matched: Matched) -> tuple[Scope, ...]:
    """Give what a caller's requests count in: its key, and the policies that match it."""
    return matched.scopes if caller.key is None else (key_scope(caller.key), *matched.scopes)


def idle(settings: Settings, keys: Iterable[Key]) -> tuple[Problem, ...]:
    """Find policies that match no one, or whose patterns of models and providers match none; no line is known."""
    named = [key.name for key in keys]
    told = ((f"policies[{place}]", policy) for place, policy in enumerate(settings.policies))
    return tuple(
        Problem(0, f"{path}.{field}", message)
        for path, policy in told
        for field, message in (*_idle_match(policy.match, named, settings), *_idle_names(policy, settings))
    )


def _idle_match(match: Match, keys: list[str], settings: Settings) -> Iterator[tuple[str, str]]:
    if match.key is not None and not any(map(globs((match.key,)), keys)):
        yield "match.key", f"{match.key} matches none of the keys"
    for field in ("namespace", "service_account"):
        name = getattr(match, field)
        if name is not None and settings.identity.mode is IdentityMode.NONE:
            yield f"match.{field}", "matches no one: with identity.mode none, no caller has a workload"
        elif name is not None and not is_glob(name) and not can_be_called(**{**_UNNAMED, field: name}):
            yield f"match.{field}", f"matches no one: Kubernetes gives no such name as {name}"


def _idle_names(policy: Policy, settings: Settings) -> Iterator[tuple[str, str]]:
    for field, names, there in (
        ("models", policy.models, [*settings.models, AUTO_ID]),
        ("providers", policy.providers, [*settings.providers]),
    ):
        for action, patterns in (("allow", names.allow or ()), ("deny", names.deny)):
            for pattern in patterns:
                if not any(map(globs((pattern,)), there)):
                    yield f"{field}.{action}", f"{pattern} matches none of the {field}"
