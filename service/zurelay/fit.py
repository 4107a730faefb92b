"""Whether a model can take a request that didn't name it: its media, its features, its size (SPEC 5, 6)."""

from __future__ import annotations

from zurelay.model import Model
from zurelay.request import ChatRequest


def unread(model: Model, request: ChatRequest) -> str | None:
    """Say which media the model doesn't read; None where it reads all."""
    missing = sorted(kind.value for kind in request.media - model.inputs)
    return "it does not read " + ", ".join(missing) if missing else None


def lacking(model: Model, request: ChatRequest) -> str | None:
    """Say which features the model lacks; None where it has all that the request uses."""
    missing = sorted(feature.value for feature in request.features - model.features)
    return "it lacks " + ", ".join(missing) if missing else None


def needed(request: ChatRequest) -> int:
    """Give the tokens that a window must hold: the prompt's estimate and the output that is allowed."""
    return request.tokens + (request.max_output or 0)


def too_small(model: Model, request: ChatRequest) -> str | None:
    """Say that the model's window doesn't hold the request; None where it does."""
    need = needed(request)
    if need <= model.context_window:
        return None
    return f"its window of {model.context_window} tokens is smaller than the {need} needed"


def unfit(model: Model, request: ChatRequest) -> str | None:
    """Say why the model can't take the request; None if it can."""
    return unread(model, request) or lacking(model, request) or too_small(model, request)
