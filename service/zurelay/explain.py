"""A decision as a value that people and programs read: what was chosen, and why (SPEC 14)."""

from __future__ import annotations

from typing import Any

from zurelay.access import Caller
from zurelay.carried import Carried
from zurelay.catalog import Catalog
from zurelay.decide import Decision, Facts, decide
from zurelay.errors import ZurelayError
from zurelay.model import Effort, Endpoint, UsageLimits
from zurelay.plan import Attempt
from zurelay.policy import Matched, Policies, scopes, who
from zurelay.request import ChatRequest
from zurelay.rules import Asked, Finding, PolicyDenied, Rules


def explained(catalog: Catalog, body: bytes, caller: Caller, policies: Policies | None = None) -> dict[str, Any]:
    """Decide a chat request without sending it; a refusal is a decision too, with no category."""
    matched = (policies or Policies(catalog.settings.policies)).match(who(caller))
    try:
        request = ChatRequest.parse(body, Endpoint.CHAT)
        facts = Facts(caller=caller, request_id="req_explained", rules=matched.enforced)
        return whole(decide(catalog, request, facts), request, caller, matched)
    except ZurelayError as error:
        findings = (error.finding,) if isinstance(error, PolicyDenied) else ()
        return {
            "category": None,
            "score": None,
            "policies": _policies(matched, findings, ()),
            "error": {
                "status": error.status,
                "code": error.code,
                "type": error.type,
                "param": error.param,
                "message": error.message,
            },
        }


def whole(decision: Decision, request: ChatRequest, caller: Caller, matched: Matched) -> dict[str, Any]:
    """The whole decision. `score` and `category` are Auto's, null where a model was named."""
    verdict = decision.verdict
    asked = decision.effort_asked
    return {
        "model": decision.asked,
        "category": verdict.category.value if verdict is not None else None,
        "score": verdict.score if verdict is not None else None,
        "floor": verdict.floor.value if verdict is not None and verdict.floor is not None else None,
        "reasons": list(verdict.reasons) if verdict is not None else [],
        "features": verdict.features if verdict is not None else {},
        "prompt_tokens": request.tokens,
        "max_output": request.max_output,
        "inputs": sorted(kind.value for kind in request.media),
        "uses": sorted(feature.value for feature in request.features),
        "effort_asked": asked.name if asked is not None else None,
        "most_attempts": decision.plan.length,
        "attempts": [_attempt(number, attempt) for number, attempt in enumerate(decision.plan.attempts, 1)],
        "left_out": [{"model": one.model, "why": one.why} for one in decision.left_out],
        "limits": _limits(caller.key.limits if caller.key is not None else UsageLimits()),
        "limited_by": [
            {"scope": scope.name, "shadow": not scope.enforced, **_limits(scope.limits)}
            for scope in scopes(caller, matched)
            if scope.limited
        ],
        "policies": _policies(
            matched, _decided(decision, matched.enforced), foretold(decision, request, matched.shadow)
        ),
    }


def _limits(limits: UsageLimits) -> dict[str, str]:
    return {name: str(value) for name in UsageLimits.__struct_fields__ if (value := getattr(limits, name)) is not None}


def _policies(matched: Matched, decided: tuple[Finding, ...], shadow: tuple[Finding, ...]) -> dict[str, Any]:
    """The policies that match the caller, what they decided, and what those in shadow would have."""

    def told(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
        return [{"policy": each.policy, "effect": each.effect.value, "why": each.why} for each in findings]

    return {
        "matched": [policy.name for policy in matched.enforced.policies],
        "in_shadow": [policy.name for policy in matched.shadow.policies],
        "decided": told(decided),
        "would_have_decided": told(shadow),
    }


def _decided(decision: Decision, rules: Rules) -> tuple[Finding, ...]:
    found = [*decision.findings, rules.routing() if decision.verdict is None else None]
    if decision.effort_asked is not None:
        found.append(rules.effort(decision.effort_asked))
    return tuple(finding for finding in found if finding is not None)


def foretold(decision: Decision, request: ChatRequest, rules: Rules) -> tuple[Finding, ...]:
    """Give what policies that aren't enforced have against a request as it was decided."""
    if not rules:
        return ()
    attempts = decision.plan.attempts
    shown = (attempt.shown_effort for attempt in attempts)
    return rules.foretold(
        Asked(
            model=decision.asked,
            held=request.carried if rules.denies_inputs else Carried(),
            models=tuple(decision.plan.models),
            providers=tuple(dict.fromkeys(attempt.provider for attempt in attempts)),
            efforts=tuple(dict.fromkeys(Effort[level] for level in shown if level is not None)),
        )
    )


def _attempt(number: int, attempt: Attempt) -> dict[str, Any]:
    return {
        "number": number,
        "model": attempt.model,
        "provider": attempt.provider,
        "route": attempt.cluster,
        "upstream": attempt.upstream,
        "effort_applied": attempt.shown_effort,
    }


def summary(decision: Decision) -> str:
    """The decision in one short line, for a response header."""
    verdict = decision.verdict
    if verdict is None:
        return f"model={decision.asked}"
    reasons = ", ".join(verdict.reasons)
    return f"category={verdict.category.value}; score={verdict.score:.2f}; reasons={reasons}"
