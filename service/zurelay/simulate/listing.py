"""The answers that aren't completions: models, one model, and a count of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zurelay.simulate.nouns import Json

_CREATED = 1767225600  # of every model: 2026-01-01

_encode = msgspec.json.encode


def tokens(count: int) -> bytes:
    """Answer count_tokens."""
    return _encode({"input_tokens": count})


def models(names: Sequence[str], *, anthropic: bool) -> bytes:
    """List models."""
    data = [_model(name, anthropic=anthropic) for name in names]
    if not anthropic:
        return _encode({"object": "list", "data": data})
    first, last = (names[0], names[-1]) if names else (None, None)
    return _encode({"data": data, "has_more": False, "first_id": first, "last_id": last})


def model(name: str, *, anthropic: bool) -> bytes:
    """Describe one model."""
    return _encode(_model(name, anthropic=anthropic))


def _model(name: str, *, anthropic: bool) -> Json:
    if not anthropic:
        return {"id": name, "object": "model", "created": _CREATED, "owned_by": "simulated"}
    created = "2026-01-01T00:00:00Z"
    return {"type": "model", "id": name, "display_name": name, "created_at": created, "lifecycle": "active"}
