"""Every fault of SPEC 5 and 8, streamed and not, at each place of a plan, through the real Envoy.

What is expected is worked out from a small table by the rules of SPEC 5: what moves on, and whether the same route is
tried once more.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pytest

from e2e.harness import Gateway, Provider, ask
from e2e.raw import Sse

PLAN = ("m1", "m1", "m2", "m3")  # of trio: its first route twice, then the others


class Outcome(enum.Enum):
    """What becomes of one attempt."""

    ANSWERS = "answers"
    AGAIN = "moves on, the same route once more"
    ELSEWHERE = "moves on, not to the same route"
    MISTAKE = "is the client's own mistake"
    LATE = "breaks after content"
    FAILED = "all attempts have failed"


AGAIN, ELSEWHERE, MISTAKE = Outcome.AGAIN, Outcome.ELSEWHERE, Outcome.MISTAKE
ANSWERS, LATE = Outcome.ANSWERS, Outcome.LATE

# The fault, what becomes of an answer that comes whole, and of one that is streamed.
FAULTS: dict[str, tuple[Outcome, Outcome]] = {
    "ok": (ANSWERS, ANSWERS),
    # no answer
    "reset": (AGAIN, AGAIN),
    "close": (AGAIN, AGAIN),
    "reset-after-head": (AGAIN, AGAIN),
    # statuses
    **dict.fromkeys([f"status:{status}" for status in (408, 409, 425, 500, 501, 502, 503, 504, 529)], (AGAIN, AGAIN)),
    **dict.fromkeys([f"status:{status}" for status in (401, 403, 404, 429)], (ELSEWHERE, ELSEWHERE)),
    **dict.fromkeys([f"status:{status}" for status in (400, 402, 405, 413, 422, 451)], (MISTAKE, MISTAKE)),
    "context-length": (MISTAKE, MISTAKE),  # no model with a larger window follows
    "status:500+gzip": (AGAIN, AGAIN),
    "status:429+gzip": (ELSEWHERE, ELSEWHERE),
    "status:422+gzip": (MISTAKE, MISTAKE),
    # with headers of the provider's own, which must not stay on the answer of another
    "status:500+headers": (AGAIN, AGAIN),
    "status:422+headers": (MISTAKE, MISTAKE),
    "first-error+headers": (AGAIN, AGAIN),
    # a 200 that is an error, or no answer at all
    "error-200": (AGAIN, AGAIN),
    "error-200+gzip": (AGAIN, AGAIN),
    "not-json": (AGAIN, AGAIN),
    "html": (AGAIN, AGAIN),
    "sse-for-json": (AGAIN, ANSWERS),
    "json-for-stream": (ANSWERS, AGAIN),
    "empty-stream": (AGAIN, AGAIN),
    # a first event that is an error, before any token
    "first-error": (AGAIN, AGAIN),
    "first-error+error-done": (AGAIN, AGAIN),
    "role-then-error": (AGAIN, AGAIN),
    "role-then-error+error-done": (AGAIN, AGAIN),
    "late-error:0": (AGAIN, AGAIN),
    # cut short
    "cut:0": (AGAIN, AGAIN),
    "abort:0": (AGAIN, AGAIN),
    "cut-json": (AGAIN, AGAIN),
    "cut:2": (AGAIN, LATE),
    "abort:2": (AGAIN, LATE),
    "late-error:2": (AGAIN, LATE),
    "late-error:2+error-done": (AGAIN, LATE),
    "short-body": (AGAIN, ANSWERS),  # all events were there
    # odd, but answers
    "wrong-type": (ANSWERS, ANSWERS),
    "gzip": (ANSWERS, ANSWERS),
    "no-done": (ANSWERS, ANSWERS),
    "headers": (ANSWERS, ANSWERS),
}

# Where in the plan a fault stands: what each upstream model does, one spec an attempt, the last one again.
PLACES = {
    "first": {"m1": "{},ok"},
    "middle": {"m1": "status:500", "m2": "{}"},
    "last": {"m1": "status:500", "m2": "status:500", "m3": "{}"},
    "everywhere": {"m1": "{}", "m2": "{}", "m3": "{}"},
}

# Headers of the provider that no client sees (SPEC 3).
PROVIDERS = {"set-cookie", "openai-organization", "request-id", "x-request-id", "x-ratelimit-limit-requests"}


def walk(outcomes: dict[str, Sequence[Outcome]]) -> tuple[list[str], Outcome]:
    """Go through the plan by the rules: which upstream models see the request, and how it ends."""
    seen: list[str] = []
    left = list(PLAN)
    while left:
        model = left.pop(0)
        mine = outcomes.get(model, [ANSWERS])
        outcome = mine[min(seen.count(model), len(mine) - 1)]
        seen.append(model)
        if outcome not in (AGAIN, ELSEWHERE):
            return seen, outcome
        if outcome is ELSEWHERE and left[:1] == [model]:
            del left[0]
    return seen, Outcome.FAILED


def told(text: str, **faults: str) -> dict[str, Any]:
    """What the provider is to say, and how its models fail."""
    return {"simulate": {"faults": faults, "text": text}}


def seen(provider: Provider) -> list[str]:
    """The upstream models that were asked, in order."""
    return [msgspec.json.decode(record.body)["model"] for record in provider.requests]


def error(response: httpx.Response) -> dict[str, Any]:
    """The error of a response, in the one shape that it may have."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert sorted(body["error"]) == ["code", "message", "param", "type"]
    found: dict[str, Any] = body["error"]
    return found


def check_answer(response: httpx.Response, text: str, *, stream: bool) -> None:
    """It is whole, says what the provider said, and nothing of what failed before."""
    assert response.status_code == 200
    assert response.headers["x-zurelay-model"] == "trio"
    assert "retry-after" not in response.headers
    assert "x-should-retry" not in response.headers
    if not stream:
        assert response.json()["choices"][0]["message"]["content"] == text
        return
    sse = Sse.read(response.content)
    assert sse.events[-1] == "[DONE]"
    assert sse.joined() == text
    assert not [chunk for chunk in sse.chunks if "error" in chunk]


def check_late(response: httpx.Response, text: str) -> None:
    """What had come is followed by one error event, and no end that looks clean."""
    assert response.status_code == 200
    sse = Sse.read(response.content)
    assert "[DONE]" not in sse.events
    assert ["error"] == [key for chunk in sse.chunks for key in chunk if key == "error"]
    assert sse.error["code"] == "model_unavailable"
    content = sse.joined()
    assert content
    assert text.startswith(content)


def check_failed(response: httpx.Response) -> None:
    """All attempts failed: the client is told when to ask again, and not to try all of it again by itself."""
    found = error(response)
    assert response.status_code == 503
    assert (found["type"], found["code"], found["param"]) == ("server_error", "model_unavailable", None)
    assert response.headers["retry-after"] == "5"
    assert response.headers["x-should-retry"] == "false"
    assert "x-zurelay-model" not in response.headers


def check_mistake(response: httpx.Response, fault: str) -> None:
    """The provider's status and message in our shape, and no hint to try again."""
    found = error(response)
    length = fault == "context-length"
    status = 400 if length else int(fault.split("+", maxsplit=1)[0].removeprefix("status:"))
    said = "maximum context length" if length else f"A simulated error of status {status}."
    assert response.status_code == status
    assert found["type"] == "invalid_request_error"
    assert found["code"] == ("context_length_exceeded" if length else "invalid_request")
    assert said in found["message"]
    assert "retry-after" not in response.headers
    assert "x-should-retry" not in response.headers


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_the_outcome_of_the_rules(
    gateway: Gateway, provider: Provider, fault: str, place: str, *, stream: bool
) -> None:
    specs = {model: spec.format(fault) for model, spec in PLACES[place].items()}
    outcome = {"ok": ANSWERS, "status:500": AGAIN, fault: FAULTS[fault][stream]}
    expected, end = walk({model: [outcome[one] for one in spec.split(",")] for model, spec in specs.items()})
    text = f"Answer number one to {fault} at the {place} place."

    response = gateway.chat(ask("trio", stream=stream, **told(text, **specs)))

    assert seen(provider) == expected
    assert response.headers["x-zurelay-attempts"] == str(len(expected))
    assert response.headers["x-zurelay-request-id"].startswith("req_")
    assert response.headers["server"] == "zurelay"
    assert not PROVIDERS & set(response.headers)
    if end is ANSWERS:
        check_answer(response, text, stream=stream)
    elif end is LATE:
        check_late(response, text)
    elif end is MISTAKE:
        check_mistake(response, fault)
    else:
        check_failed(response)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("model", "faults", "expected", "status", "code"),
    [
        # guarded (100,000 tokens) falls back to spare (1,000,000)
        ("guarded", {"m1": "status:500"}, ["m1", "m1", "f1"], 200, None),
        ("guarded", {"m1": "status:429"}, ["m1", "f1"], 200, None),
        ("guarded", {"m1": "status:400"}, ["m1"], 400, "invalid_request"),
        ("guarded", {"m1": "status:422"}, ["m1"], 422, "invalid_request"),
        ("guarded", {"m1": "status:500", "f1": "status:400"}, ["m1", "m1", "f1", "f1"], 503, "model_unavailable"),
        ("guarded", {"m1": "status:500", "f1": "status:400,ok"}, ["m1", "m1", "f1", "f1"], 200, None),
        ("guarded", {"m1": "status:500", "f1": "status:422"}, ["m1", "m1", "f1"], 422, "invalid_request"),
        ("guarded", {"m1": "status:500", "f1": "status:401"}, ["m1", "m1", "f1"], 503, "model_unavailable"),
        ("guarded", {"m1": "context-length"}, ["m1", "f1"], 200, None),
        ("guarded", {"m1": "status:500,context-length"}, ["m1", "m1", "f1"], 200, None),
        ("guarded", {"m1": "context-length", "f1": "context-length"}, ["m1", "f1"], 400, "context_length_exceeded"),
        ("guarded", {"m1": "context-length", "f1": "status:500"}, ["m1", "f1", "f1"], 503, "model_unavailable"),
        ("solo", {"m1": "context-length"}, ["m1"], 400, "context_length_exceeded"),
    ],
)
def test_other_models_answer_where_the_rules_say_so(
    gateway: Gateway,
    provider: Provider,
    model: str,
    faults: dict[str, str],
    expected: list[str],
    status: int,
    code: str | None,
    *,
    stream: bool,
) -> None:
    response = gateway.chat(ask(model, stream=stream, **told("So be it.", **faults)))
    assert seen(provider) == expected
    assert response.status_code == status
    assert response.headers["x-zurelay-attempts"] == str(len(expected))
    if code is not None:
        assert error(response)["code"] == code
        return
    other = expected[-1] == "f1"
    assert response.headers["x-zurelay-model"] == ("spare" if other else model)
    assert response.headers.get("x-zurelay-routed-from") == (model if other else None)
    if stream:
        models = [chunk["model"] for chunk in Sse.read(response.content).chunks]
        assert set(models) == {"spare" if other else model}
    else:
        assert response.json()["model"] == ("spare" if other else model)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (ask("guarded"), {}, ["m1", "m1", "f1"]),
        (ask("guarded"), {"x-zurelay-fallback": "on"}, ["m1", "m1", "f1"]),
        (ask("guarded"), {"x-zurelay-fallback": "off"}, ["m1", "m1"]),
        (ask("guarded"), {"x-zurelay-fallback": "OFF"}, ["m1", "m1"]),
        (ask("guarded", models=[]), {}, ["m1", "m1"]),
        (ask("guarded", models=None), {}, ["m1", "m1", "f1"]),
        (ask("guarded", models=["three"]), {}, ["m1", "m1", "m1", "m1", "m2"]),
        (ask("guarded", models=["three"]), {"x-zurelay-fallback": "off"}, ["m1", "m1"]),
        (ask("solo", models=["spare"]), {}, ["m1", "m1", "f1"]),
        (ask("solo", models=["solo", "three", "trio", "three"]), {}, ["m1", "m1", "m1", "m1", "m2"]),
    ],
)
def test_the_client_chooses_the_models_that_may_answer(
    gateway: Gateway,
    provider: Provider,
    body: dict[str, Any],
    headers: dict[str, str],
    expected: list[str],
    *,
    stream: bool,
) -> None:
    response = gateway.chat(body | told("So be it.", m1="status:500") | {"stream": stream}, headers)
    assert seen(provider) == expected
    assert response.status_code == (503 if expected[-1] == "m1" else 200)
    assert not [record for record in provider.requests if b'"models"' in record.body]


@pytest.mark.parametrize(
    ("more", "headers", "status", "code", "param"),
    [
        ({"models": ["nobody"]}, {}, 404, "model_not_found", "models"),
        ({"models": ["solo"] * 9}, {}, 400, "invalid_request", "models"),
        ({"models": ["auto"]}, {}, 400, "invalid_request", "models"),
        ({"models": ["zurelay-auto"]}, {}, 400, "invalid_request", "models"),
        ({"models": "solo"}, {}, 400, "invalid_request", "models"),
        ({"models": [1]}, {}, 400, "invalid_request", "models"),
        ({}, {"x-zurelay-fallback": "maybe"}, 400, "invalid_request", "x-zurelay-fallback"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_wrong_list_of_models_is_refused(
    gateway: Gateway,
    provider: Provider,
    more: dict[str, Any],
    headers: dict[str, str],
    status: int,
    code: str,
    param: str,
    *,
    stream: bool,
) -> None:
    response = gateway.chat(ask("solo", stream=stream, **more), headers)
    found = error(response)
    assert (response.status_code, found["code"], found["param"]) == (status, code, param)
    assert provider.requests == []


def test_the_places_cover_the_plan() -> None:
    """The table means what it says: each place is another attempt of the plan."""
    places = {
        place: len(walk({model: [ANSWERS if "{}" in one else AGAIN] for model, one in specs.items()})[0])
        for place, specs in PLACES.items()
        if place != "everywhere"
    }
    assert places == {"first": 1, "middle": 3, "last": 4}
