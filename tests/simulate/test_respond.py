from collections import Counter
from typing import Any

import msgspec
import pytest

from simulate.helpers import CHAT, MESSAGES, USER, body_of, events_of, head_of
from zurelay.simulate.actions import Action, Hang, Pause, Reset
from zurelay.simulate.respond import Facts, Response, Settings, respond

ANTHROPIC = {"anthropic-version": "2023-06-01"}
CHAT_PATH, MESSAGES_PATH = "/v1/chat/completions", "/v1/messages"
STILL = Settings(token_pause=0)


def never(_: tuple[str, ...]) -> int:
    pytest.fail("attempts are counted only for sequences")


def ask(
    path: str = CHAT_PATH,
    body: Any = CHAT,
    headers: dict[str, str] | None = None,
    method: str = "POST",
    settings: Settings = STILL,
) -> tuple[Response, list[Action]]:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    given = ANTHROPIC if headers is None and "messages" in path else headers or {}
    response = respond(Facts(method=method, path=path, headers=given, body=raw, id="x", created=5), settings, never)
    return response, list(response.actions)


def answer_of(played: list[Action]) -> tuple[int, Any]:
    return head_of(played).status, msgspec.json.decode(body_of(played))


PATHS = {
    "chat": (CHAT_PATH, CHAT, "chat.completion"),
    "chat under another prefix": ("/openai/deployments/x/chat/completions", CHAT, "chat.completion"),
    "messages": (MESSAGES_PATH, MESSAGES, "message"),
    "messages under another prefix": ("/anthropic/v1/messages", MESSAGES, "message"),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_known_by_its_end(name: str) -> None:
    path, body, expected = PATHS[name]
    status, said = answer_of(ask(path, body)[1])
    assert (200, expected) == (status, said.get("object") or said.get("type"))


def test_tokens_are_counted() -> None:
    body = {"model": "m", "messages": [USER]}
    count = answer_of(ask("/v1/messages/count_tokens", body)[1])
    message = answer_of(ask(MESSAGES_PATH, MESSAGES)[1])
    assert (200, {"input_tokens": message[1]["usage"]["input_tokens"]}) == count


def test_models_are_listed_in_the_shape_of_who_asks() -> None:
    shapes = [answer_of(ask("/v1/models", b"", headers, "GET")[1])[1] for headers in ({}, ANTHROPIC)]
    assert (shapes[0]["object"], shapes[1]["has_more"]) == ("list", False)


def test_chat_is_chat_whatever_version_is_sent() -> None:
    assert answer_of(ask(headers=ANTHROPIC)[1])[1]["object"] == "chat.completion"


def test_one_model_is_shown_and_an_unknown_one_is_not() -> None:
    found = [answer_of(ask(f"/v1/models/{name}", b"", {}, "GET")[1]) for name in ("simulated-small", "other")]
    assert (found[0][0], found[0][1]["id"], found[1][0]) == (200, "simulated-small", 404)


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "another path": ({"path": "/v1/nothing"}, 404, "Invalid URL (POST /v1/nothing)"),
    "another method": ({"method": "GET"}, 405, "Not allowed to GET"),
    "posting models": ({"path": "/v1/models"}, 405, "Not allowed to POST"),
    "no JSON": ({"body": b"{"}, 400, "could not parse the JSON"),
    "NaN": ({"body": b'{"model": NaN}'}, 400, "could not parse the JSON"),
    "no object": ({"body": []}, 400, "must be a JSON object"),
    "what a check finds": ({"body": {"model": "m"}}, 400, "Missing required parameter"),
    "what the other check finds": ({"path": MESSAGES_PATH, "body": CHAT}, 400, "max_tokens: Field required"),
    "no version": ({"path": MESSAGES_PATH, "headers": {"accept": "x"}}, 400, "anthropic-version"),
    "an unknown fault": ({"headers": {"x-simulate": "nonsense"}}, 400, "There is no fault 'nonsense'"),
    "an unknown switch": ({"body": {**CHAT, "simulate": {"falt": 1}}}, 400, "The field 'simulate' can't be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_told_so(name: str) -> None:
    fields, status, expected = WRONG[name]
    found, said = answer_of(ask(**fields)[1])
    assert (status, True) == (found, expected in said["error"]["message"])


CREDENTIALS = {
    "none": ({}, 401),
    "another": ({"authorization": "Bearer other"}, 401),
    "as a bearer": ({"authorization": "Bearer secret"}, 200),
    "as a key": ({"x-api-key": "secret"}, 200),
    "as Azure takes it": ({"api-key": "secret"}, 200),
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_is_asked_for(name: str) -> None:
    headers, expected = CREDENTIALS[name]
    settings = Settings(token_pause=0, credential="secret")
    assert expected == head_of(ask(headers=headers, settings=settings)[1]).status


NUMBERS = b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "a": 1e400, "b": 12345678901234567890}'


def test_any_number_may_be_sent() -> None:
    assert head_of(ask(body=NUMBERS)[1]).status == 200


def test_a_stream_is_paced_as_set() -> None:
    body = {**CHAT, "stream": True}
    pauses = [action for action in ask(body=body, settings=Settings(token_pause=0.25))[1] if isinstance(action, Pause)]
    assert {Pause(0.25)} == set(pauses)


FAULTED: dict[str, dict[str, Any]] = {
    "in the body": {"body": {**CHAT, "simulate": {"fault": "status:503"}}},
    "in the body for this model": {"body": {**CHAT, "simulate": {"faults": {"m": "status:503", "n": "ok"}}}},
    "in the text": {"body": {**CHAT, "messages": [{"role": "user", "content": "Hi [[simulate status:503]]"}]}},
    "in a header": {"headers": {"x-simulate": "status:503"}},
    "in the path": {"path": "/fault/status:503/v1/chat/completions"},
    "without a body": {"path": "/fault/status:503/v1/models", "method": "GET", "body": b""},
    "for a body that is wrong": {"path": "/fault/status:503/v1/chat/completions", "body": b"{"},
    "for a path that is wrong": {"path": "/fault/status:503/v1/nothing"},
}


@pytest.mark.parametrize("name", FAULTED)
def test_a_fault_may_be_asked_for(name: str) -> None:
    response, played = ask(**FAULTED[name])
    assert (response.spec, head_of(played).status) == ("status:503", 503)


@pytest.mark.parametrize(("spec", "expected"), [("hang", Hang()), ("reset", Reset())])
def test_a_connections_fault_comes_first(spec: str, expected: Action) -> None:
    assert expected == ask(headers={"x-simulate": spec})[1][0]


def test_a_sequence_is_used_one_an_attempt_and_by_model() -> None:
    seen: Counter[tuple[str, ...]] = Counter()

    def attempts(key: tuple[str, ...]) -> int:
        seen[key] += 1
        return seen[key] - 1

    found = []
    for model in ("m", "m", "n", "m", "n"):
        told = {"key": "k", "faults": {"m": ["status:500", "status:501", "ok"], "n": "status:503,status:504"}}
        body = msgspec.json.encode({**CHAT, "model": model, "simulate": told})
        facts = Facts(method="POST", path=CHAT_PATH, headers={}, body=body, id="x", created=5)
        found.append(head_of(list(respond(facts, STILL, attempts).actions)).status)
    assert (found, dict(seen)) == ([500, 501, 503, 200, 504], {("k", "m"): 3, ("k", "n"): 2})


def test_a_mark_is_not_quoted() -> None:
    body = {**CHAT, "messages": [{"role": "user", "content": "Where is Lisbon? [[simulate gzip+no-usage]] Tell"}]}
    body["simulate"] = "ok"
    said = answer_of(ask(body=body)[1])[1]["choices"][0]["message"]["content"]
    assert ("Where is Lisbon? Tell" in said, "simulate " in said) == (True, False)


def test_a_wished_text_is_said() -> None:
    body = {**CHAT, "stream": True, "simulate": {"text": "a b"}}
    tokens = [data for _, data in events_of(body_of(ask(body=body)[1])) if '"content":"' in data and "role" not in data]
    assert [msgspec.json.decode(data)["choices"][0]["delta"]["content"] for data in tokens] == ["a", " b"]
