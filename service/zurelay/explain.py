"""A decision as a value that people and programs read: what was chosen, and why (SPEC 14)."""

from __future__ import annotations

from typing import Any

from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.decide import Decision, Facts, decide
from zurelay.errors import ZurelayError
from zurelay.model import Endpoint, UsageLimits
from zurelay.plan import Attempt
from zurelay.request import ChatRequest


def explained(catalog: Catalog, body: bytes, caller: Caller) -> dict[str, Any]:
    """Decide a chat request without sending it; a refusal is a decision too."""
    try:
        request = ChatRequest.parse(body, Endpoint.CHAT)
        facts = Facts(caller=caller, request_id="req_explained")
        return whole(decide(catalog, request, facts), request, caller)
    except ZurelayError as error:
        return {
            "error": {
                "status": error.status,
                "code": error.code,
                "type": error.type,
                "param": error.param,
                "message": error.message,
            }
        }


def whole(decision: Decision, request: ChatRequest, caller: Caller) -> dict[str, Any]:
    """The whole decision. `score` and `category` are Auto's, null where a model was named."""
    verdict = decision.verdict
    asked = decision.effort_asked
    limits = caller.key.limits if caller.key is not None else UsageLimits()
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
        "limits": {
            name: str(value)
            for name in ("requests_per_minute", "tokens_per_minute", "usd_per_day", "usd_per_month")
            if (value := getattr(limits, name)) is not None
        },
    }


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
