"""What several policies say together about one request: the strictest of them (SPEC 12). Findings name who decides."""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from zurelay.carried import Carried
from zurelay.errors import Forbidden
from zurelay.model import AUTO_ID, Effort, Model, Names, Policy


class Effect(enum.Enum):
    """What a policy does to a request."""

    MODEL = "model"
    PROVIDER = "provider"
    EFFORT = "effort"
    INPUT = "input"
    SMART_ROUTING = "smart_routing"


class Finding(msgspec.Struct, frozen=True):
    """What one policy says against a request."""

    policy: str
    effect: Effect
    why: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a request comes to: the model asked for, what it holds, and the models, providers and levels of its plan."""

    model: str
    held: Carried = Carried()
    models: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    efforts: tuple[Effort, ...] = ()


def globs(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Compile patterns to one test of a name, letter by letter as they are written."""
    compiled = re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")
    return lambda name: compiled.match(name) is not None


class _Permits:
    """The names that one policy permits."""

    __slots__ = ("_allowed", "_denied")

    def __init__(self, names: Names) -> None:
        self._allowed = None if names.allow is None else globs(names.allow)
        self._denied = globs(names.deny)

    def allows(self, name: str) -> bool:
        """Whether `allow` lets a name through."""
        return self._allowed is None or self._allowed(name)

    def denies(self, name: str) -> bool:
        """Whether `deny` names it."""
        return self._denied(name)


class Rule:
    """One policy, ready to be asked."""

    __slots__ = ("models", "policy", "providers")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.models = _Permits(policy.models)
        self.providers = _Permits(policy.providers)


class Rules:
    """What the policies of one caller say together. Findings name the policy that decides."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._models: dict[tuple[str, bool], Finding | None] = {}
        capped = [(rule.policy.effort_max, rule.policy.name) for rule in rules if rule.policy.effort_max is not None]
        self._cap = min(capped, default=None)

    def __bool__(self) -> bool:
        """Whether any policy says anything."""
        return bool(self._rules)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies, in the order of the configuration."""
        return tuple(rule.policy for rule in self._rules)

    @property
    def effort_max(self) -> Effort | None:
        """The lowest of the caps on effort."""
        return self._cap[0] if self._cap is not None else None

    def auto(self) -> Finding | None:
        """Say who denies Auto itself; an `allow` without it only narrows what Auto may pick."""
        for rule in self._rules:
            if rule.models.denies(AUTO_ID):
                return _finding(rule.policy, Effect.MODEL, AUTO_ID)
        return None

    def model(self, name: str, *, picked_by_auto: bool = False) -> Finding | None:
        """Say who denies a model. Who allows Auto allows what it picks, unless `deny` names it (SPEC 6)."""
        asked = (name, picked_by_auto)
        if asked not in self._models:
            self._models[asked] = self._deny_model(name, picked_by_auto)
        return self._models[asked]

    def _deny_model(self, name: str, picked_by_auto: bool) -> Finding | None:
        for rule in self._rules:
            allowed = rule.models.allows(name) or (picked_by_auto and rule.models.allows(AUTO_ID))
            if rule.models.denies(name) or not allowed:
                return _finding(rule.policy, Effect.MODEL, name)
        return None

    def provider(self, name: str) -> Finding | None:
        """Say who denies a provider: its routes are left out, and a model that has no others."""
        for rule in self._rules:
            if rule.providers.denies(name) or not rule.providers.allows(name):
                return _finding(rule.policy, Effect.PROVIDER, name)
        return None

    @property
    def denies_inputs(self) -> bool:
        """Whether it matters what a request holds."""
        return any(rule.policy.inputs_deny for rule in self._rules)

    def inputs(self, held: Carried) -> Finding | None:
        """Say who denies what a request holds, or may hold."""
        for rule in self._rules:
            denied = rule.policy.inputs_deny
            certain = held.kinds & denied
            if certain or (denied and held.doubt):
                finding = _finding(
                    rule.policy, Effect.INPUT, ", ".join(sorted(kind.value for kind in certain or denied))
                )
                doubt = "" if certain else f", and {held.doubt} may hold it"
                return msgspec.structs.replace(finding, why=finding.why + doubt)
        return None

    def effort(self, level: Effort) -> Finding | None:
        """Say who caps a level."""
        if self._cap is None or level <= self._cap[0]:
            return None
        cap, name = self._cap
        return Finding(name, Effect.EFFORT, f"the policy {name} caps the effort at {cap.name}, below {level.name}")

    def too_high(self, model: Model) -> Finding | None:
        """Say who leaves a model out because its lowest level is above the cap."""
        return None if model.reasoning is None else self.effort(min(model.reasoning.levels))

    @property
    def smart_routing(self) -> bool | None:
        """Whether other models may answer: off beats on; None where no policy says."""
        said = [rule.policy.smart_routing for rule in self._rules if rule.policy.smart_routing is not None]
        return all(said) if said else None

    def routing(self) -> Finding | None:
        """Say who turns smart routing off."""
        for rule in self._rules:
            if rule.policy.smart_routing is False:
                name = rule.policy.name
                return Finding(name, Effect.SMART_ROUTING, f"the policy {name} turns smart routing off")
        return None

    def foretold(self, asked: Asked) -> tuple[Finding, ...]:
        """List all that these policies have against a request, each once."""
        by_auto = asked.model == AUTO_ID
        found = [
            self.auto() if by_auto else None,
            self.inputs(asked.held),
            *(self.model(name, picked_by_auto=by_auto) for name in asked.models),
            *map(self.provider, asked.providers),
            *map(self.effort, asked.efforts),
            self.routing() if not by_auto and len(set(asked.models)) > 1 else None,
        ]
        return tuple(dict.fromkeys(finding for finding in found if finding is not None))


def _finding(policy: Policy, effect: Effect, what: str) -> Finding:
    kind = {Effect.MODEL: "the model ", Effect.PROVIDER: "the provider "}.get(effect, "")
    return Finding(policy.name, effect, f"the policy {policy.name} does not allow {kind}{what}")


_PARAMS = {Effect.MODEL: "model", Effect.INPUT: "messages"}


class PolicyDenied(Forbidden):
    """A policy leaves nothing to answer with."""

    code = "policy_denied"

    def __init__(self, finding: Finding) -> None:
        told = finding.why[0].upper() + finding.why[1:]
        super().__init__(f"{told}.", param=_PARAMS.get(finding.effect))
        self.finding = finding


def denied(finding: Finding) -> PolicyDenied:
    """Make the 403 of a finding that leaves nothing to answer with."""
    return PolicyDenied(finding)
