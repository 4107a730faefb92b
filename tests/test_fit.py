"""Whether a model can take a request that didn't name it (SPEC 5, 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zurelay import fit
from zurelay.model import Endpoint, Feature, Input, Model, Route
from zurelay.request import ChatRequest

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TOOL = {"type": "function", "function": {"name": "f"}}


def model(**facts: Any) -> Model:
    route = Route(name="m/p", provider="p", model="m")
    return Model(id="m", routes=(route,), **{"context_window": 1000, **facts})


def request(content: Any = "hi", **more: Any) -> ChatRequest:
    body = {"model": "x", "messages": [{"role": "user", "content": content}], **more}
    return ChatRequest.parse(json.dumps(body).encode(), Endpoint.CHAT)


@pytest.mark.parametrize(
    ("facts", "asked", "expected"),
    [
        ({}, request(), None),
        ({}, request([IMAGE]), "it does not read image"),
        ({"inputs": frozenset({Input.TEXT, Input.IMAGE}), "context_window": 100_000}, request([IMAGE]), None),
        ({}, request(tools=[TOOL]), None),
        ({"features": frozenset({Feature.JSON_SCHEMA})}, request(tools=[TOOL]), "it lacks tools"),
        ({"features": frozenset()}, request(tools=[]), None),
        ({"features": frozenset()}, request(response_format={"type": "json_object"}), None),
        ({"features": frozenset()}, request(response_format={"type": "json_schema"}), "it lacks json_schema"),
    ],
)
def test_a_request_fits_what_the_model_reads_and_has(facts: dict[str, Any], asked: ChatRequest, expected: str) -> None:
    assert expected == fit.unfit(model(**facts), asked)


def test_the_window_holds_the_prompt_and_the_answer() -> None:
    asked = request(max_tokens=500)
    need = asked.tokens + 500
    assert fit.needed(asked) == need
    assert fit.unfit(model(context_window=need), asked) is None
    assert fit.unfit(model(context_window=need - 1), asked) == (
        f"its window of {need - 1} tokens is smaller than the {need} needed"
    )
