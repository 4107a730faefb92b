"""One trace a request, over both of Envoy's passes: whole trees of spans, as a collector gets them."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, simulate, until
from otlp_receiver import Receiver, Span, tree

Tree = dict[str, Any]
PARENT = "b7ad6b7169203331"
CHAT = "POST /v1/chat/completions"


@pytest.fixture(scope="module", name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def settings(provider: Provider) -> dict[str, Any]:
    """The catalog of the other tests, with prices, and with an Auto."""
    found = catalog(provider.port)
    for model in found["models"].values():
        model["price"] = {"input": 1000, "output": 2000}
    found["auto"] = {"simple": ["solo"], "standard": ["trio"], "complex": ["spare"]}
    found["models"]["closed"] = {
        "routes": [{"provider": "nobody", "model": "m0"}, {"provider": "p2", "model": "m2"}],
        "context_window": 100_000,
    }
    found["models"]["passing"] = {
        "routes": [{"provider": "p1", "model": "m1"}, {"provider": "p2", "model": "m2"}],
        "context_window": 100_000,
        "passthrough": True,
    }
    found["providers"]["nobody"] = {"base_url": "http://127.0.0.1:1/v1", "format": "openai"}
    found["streaming"] = {"open_after": "500ms", "keepalive": "300ms"}
    found["policies"] = [{"name": "no-spare", "match": {}, "models": {"deny": ["spare"]}}]
    return found | {"workers": 2}


@pytest.fixture(scope="module", name="traced")
def _traced(provider: Provider, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    given = settings(provider) | {"telemetry": {"otlp": receiver.endpoint}}
    running = Gateway(tmp_path_factory.mktemp("t"), given).wait_ready()
    before = (running.envoy, running.workers)
    yield running
    assert (running.envoy, running.workers) == before
    assert running.stop() == 0, "".join(running.log)


class Asking:
    """One request in a trace of its own."""

    _number = 0

    def __init__(self, receiver: Receiver, gateway: Gateway) -> None:
        Asking._number += 1
        self.trace = f"{Asking._number:032x}"
        self._receiver = receiver
        self._gateway = gateway
        self.headers = {"traceparent": f"00-{self.trace}-{PARENT}-01"}

    def chat(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        return self._gateway.chat(body, {**self.headers, **headers})

    def spans(self, count: int) -> list[Span]:
        """Wait for so many spans; there must not be more."""
        self._receiver.until(lambda r: len(r.trace(self.trace)) >= count)
        found = self._receiver.trace(self.trace)
        assert len(found) == count, [span.name for span in found]
        return found

    def by_name(self, count: int) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        for span in self.spans(count):
            found.setdefault(span.name, []).append(span)
        return found


@pytest.fixture(name="asking")
def _asking(receiver: Receiver, traced: Gateway, provider: Provider) -> Asking:
    provider.reset()
    return Asking(receiver, traced)


def line_of(gateway: Gateway, request_id: str) -> dict[str, Any]:
    """Find a request's log line."""

    def found() -> dict[str, Any] | None:
        lines = [line for line in list(gateway.log) if request_id in line and '"outcome"' in line]
        return msgspec.json.decode(lines[0]) if lines else None

    line = until(found)
    assert line is not None
    return line


def numbered(span: Span) -> str:
    """Name a span; attempts with their number and route."""
    number = span.attributes.get("zurelay.attempt.number")
    return span.name if number is None else f"{span.name} #{number} {span['zurelay.route']}"


def in_order(spans: list[Span]) -> None:
    """Every span lies within its parent's time, by the clocks of one machine."""
    known = {span.id: span for span in spans}
    for span in spans:
        assert span.start <= span.end
        above = known.get(span.parent)
        if above is not None and span.kind != "SERVER":
            assert above.start - 5_000_000 <= span.start <= span.end <= above.end + 50_000_000


@pytest.mark.parametrize("stream", [False, True])
def test_a_plain_request(asking: Asking, traced: Gateway, *, stream: bool) -> None:
    answer = asking.chat(ask("three", reasoning_effort="high", stream=stream))
    assert 200 == answer.status_code
    spans = asking.spans(4 if stream else 3)
    attempts: Tree = {"chat m1 #1 trio/p1": {}}
    below = {"relay": attempts} if stream else attempts
    assert tree(spans, numbered) == {CHAT: {"decide": {}, **below}}
    in_order(spans)
    server = next(span for span in spans if span.kind == "SERVER")
    assert PARENT == server.parent
    request_id = answer.headers["x-zurelay-request-id"]
    assert (request_id, "200") == (server["zurelay.request_id"], server["http.response.status_code"])
    (attempt,) = (span for span in spans if span.kind == "CLIENT")
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "p1",
        "gen_ai.request.model": "m1",
        "gen_ai.response.model": "m1",
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
        "zurelay.attempt.number": 1,
        "zurelay.model": "trio",
        "zurelay.effort.applied": "high",
    }.items() <= attempt.attributes.items()
    assert attempt["gen_ai.usage.output_tokens"] > 0
    assert attempt["zurelay.cost.usd"] > 0
    assert "zurelay.routed_from" not in attempt.attributes
    (decision,) = (span for span in spans if span.name == "decide")
    assert ("trio", "high") == (decision["zurelay.model.asked"], decision["zurelay.effort.asked"])
    assert {"UNSET"} == {span.status for span in spans}
    line = line_of(traced, request_id)
    assert (asking.trace, "answered", 1) == (line["trace_id"], line["outcome"], line["attempts"])
    assert line["total_ms"] > 0
    if stream:
        assert attempt["gen_ai.request.stream"] is True
        assert attempt.event("zurelay.first_token").at <= attempt.end
        assert attempt["gen_ai.response.time_to_first_chunk"] > 0
        assert line["first_token_ms"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_falls_back_twice(asking: Asking, traced: Gateway, *, stream: bool) -> None:
    faults = simulate(m1=["status:500"], m2="status:429")
    answer = asking.chat(ask("trio", stream=stream, **faults))
    assert (200, "4") == (answer.status_code, answer.headers["x-zurelay-attempts"])
    spans = asking.spans(7 if stream else 6)
    attempts: Tree = {
        "chat m1 #1 trio/p1": {},
        "chat m1 #2 trio/p1": {},
        "chat m2 #3 trio/p2": {},
        "chat m3 #4 trio/p3": {},
    }
    below = {"relay": attempts} if stream else attempts
    assert tree(spans, numbered) == {CHAT: {"decide": {}, **below}}
    in_order(spans)
    made = sorted((span for span in spans if span.kind == "CLIENT"), key=lambda span: span["zurelay.attempt.number"])
    assert ["500", "500", "429", None] == [span.attributes.get("error.type") for span in made]
    assert ["status", "status", "retry_later", None] == [span.attributes.get("zurelay.moved_on") for span in made]
    assert ["ERROR", "ERROR", "ERROR", "UNSET"] == [span.status for span in made]
    assert [500, 500, 429, 200] == [span["http.response.status_code"] for span in made]
    starts = [span.start for span in made]
    assert starts == sorted(starts)
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    assert ["trio/p1: status", "trio/p1: status", "trio/p2: retry_later"] == line["given_up"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_attempt_that_reached_nobody_has_a_span(asking: Asking, *, stream: bool) -> None:
    answer = asking.chat(ask("closed", stream=stream))
    assert 200 == answer.status_code
    spans = asking.spans(6 if stream else 5)
    made = [span for span in spans if span.kind == "CLIENT"]
    made.sort(key=lambda span: span["zurelay.attempt.number"])
    assert ["closed/nobody", "closed/nobody", "closed/p2"] == [span["zurelay.route"] for span in made]
    assert ["no_answer", "no_answer", None] == [span.attributes.get("error.type") for span in made]
    in_order(spans)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_whose_every_attempt_failed(asking: Asking, *, stream: bool) -> None:
    answer = asking.chat(ask("solo", stream=stream, **simulate(m1="status:500")))
    assert 503 == answer.status_code
    spans = asking.spans(5 if stream else 4)
    attempts: Tree = {"chat m1 #1 solo/p1": {}, "chat m1 #2 solo/p1": {}}
    below = {"relay": attempts} if stream else attempts
    assert tree(spans, numbered) == {CHAT: {"decide": {}, **below}}
    made = [span for span in spans if span.kind == "CLIENT"]
    assert [("ERROR", "500")] * 2 == [(span.status, span["error.type"]) for span in made]
    server = next(span for span in spans if span.kind == "SERVER")
    assert ("ERROR", "503") == (server.status, server["http.response.status_code"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_reached_nobody_at_all(asking: Asking, traced: Gateway, *, stream: bool) -> None:
    answer = asking.chat(ask("closed", stream=stream, **simulate(m2="reset")))
    assert 503 == answer.status_code, answer.text
    spans = asking.spans(6 if stream else 5)
    made = [span for span in spans if span.kind == "CLIENT"]
    assert {"no_answer"} == {span["error.type"] for span in made}
    assert "failed" == line_of(traced, answer.headers["x-zurelay-request-id"])["outcome"] or stream


def test_a_stream_that_opens_early(asking: Asking, traced: Gateway) -> None:
    answer = asking.chat(ask("trio", stream=True, **simulate(m1="slow-token:1.3")))
    assert 200 == answer.status_code
    spans = asking.spans(4)
    (relay,) = (span for span in spans if span.name == "relay")
    opened, first = relay.event("zurelay.opened_early"), relay.event("zurelay.first_token")
    assert relay.start < opened.at < first.at < relay.end
    kept = relay.event("zurelay.kept_alive")
    assert kept.attributes["zurelay.keepalives"] >= 3
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    assert (True, kept.attributes["zurelay.keepalives"]) == (line["opened_early"], line["keepalives"])


def test_spans_do_not_grow_with_an_answer(asking: Asking) -> None:
    answer = asking.chat(ask("trio", stream=True, **simulate(m1="tokens:2000")))
    assert answer.text.count("data:") > 1_000
    assert sum(len(span.events) for span in asking.spans(4)) <= 3


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_whose_client_left(asking: Asking, traced: Gateway, *, stream: bool) -> None:
    body = ask("solo", stream=stream, **simulate(m1="slow-token:30" if stream else "slow-head:30"))
    with pytest.raises(httpx.ReadTimeout):
        traced.chat(body, asking.headers | {"x-zurelay-keepalive": "off"}, timeout=1)
    spans = asking.spans(4 if stream else 3)
    assert CHAT in tree(spans)
    (attempt,) = (span for span in spans if span.kind == "CLIENT")
    assert "error.type" not in attempt.attributes


def test_a_request_that_a_policy_refused(asking: Asking, traced: Gateway) -> None:
    answer = asking.chat(ask("spare"))
    assert 403 == answer.status_code
    spans = asking.spans(2)
    assert tree(spans) == {CHAT: {"decide": {}}}
    (decision,) = (span for span in spans if span.name == "decide")
    assert ("ERROR", "policy_denied", "spare") == (
        decision.status,
        decision["error.type"],
        decision["zurelay.model.asked"],
    )
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    assert ("turned_away", 403, "policy_denied") == (line["outcome"], line["status"], line["code"])
    assert asking.trace == line["trace_id"]


def test_a_list_of_models(asking: Asking, traced: Gateway) -> None:
    headers = {"traceparent": f"00-{asking.trace}-{PARENT}-01"}
    answer = httpx.get(traced.url + "/v1/models", headers=headers)
    assert 200 == answer.status_code
    assert tree(asking.spans(2)) == {"GET /v1/models": {"decide": {}}}
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    assert ("answered", 200, asking.trace) == (line["outcome"], line["status"], line["trace_id"])


def half_sent(gateway: Gateway, trace: str) -> socket.socket:
    """Send the beginning of a request."""
    client = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntraceparent: 00-{trace}-{PARENT}-01\r\n"
    client.sendall(f"{head}content-length: 1000\r\n\r\n{{".encode())
    return client


def test_a_client_that_left_while_it_sent_its_request(asking: Asking, traced: Gateway, receiver: Receiver) -> None:
    traces = (f"{asking.trace[:24]}{number:08x}" for number in itertools.count(1 << 24))

    def left() -> dict[str, Any] | None:
        """Come and go until the sidecar has seen one before it went."""
        with half_sent(traced, next(traces)):
            lines = [line for line in list(traced.log) if '"client_left"' in line and asking.trace[:24] in line]
            found = [line for line in map(msgspec.json.decode, lines) if line["trace_id"][24:26] == "01"]
        return found[0] if found else None

    line = until(left)
    assert line is not None
    assert "status" not in line
    receiver.until(lambda r: len(r.trace(line["trace_id"])) >= 2)
    spans = receiver.trace(line["trace_id"])
    assert tree(spans) == {CHAT: {"decide": {}}}
    assert ["UNSET"] == [span.status for span in spans if span.name == "decide"]


def test_a_request_for_auto(asking: Asking, traced: Gateway) -> None:
    answer = asking.chat(ask("zurelay-auto", "Hi"))
    assert 200 == answer.status_code
    names = asking.by_name(3)
    (decision,) = names["decide"]
    assert "simple" == decision["zurelay.category"]
    assert 0 <= decision["zurelay.score"] <= 1
    (attempt,) = names["chat m1"]
    assert ("zurelay-auto", "solo", "simple") == (
        attempt["zurelay.routed_from"],
        attempt["zurelay.model"],
        attempt["zurelay.category"],
    )
    assert "simple" == line_of(traced, answer.headers["x-zurelay-request-id"])["category"]


@pytest.mark.parametrize(
    "sent",
    ["", "00-zz-zz-01", "01-{trace}-b7ad6b7169203331-01-more", "ff-{trace}-b7ad6b7169203331-01"],
    ids=["none", "bad", "later", "forbidden"],
)
def test_a_request_without_a_context_that_envoy_reads_has_one_whole_trace(
    asking: Asking, traced: Gateway, receiver: Receiver, sent: str
) -> None:
    header = {"traceparent": sent.format(trace=asking.trace)} if sent else {}
    answer = traced.chat(ask("trio"), header)
    trace = line_of(traced, answer.headers["x-zurelay-request-id"])["trace_id"]
    receiver.until(lambda r: len(r.trace(trace)) == 3)
    assert tree(receiver.trace(trace)) == {CHAT: {"decide": {}, "chat m1": {}}}
    assert ("{trace}" in sent) == (trace == asking.trace)


NOT_KEPT = {
    "plain": ["00-{trace}-b7ad6b7169203331-00"],
    "capitals": ["00-{trace}-B7AD6B7169203331-00"],
    "version ff": ["ff-{trace}-b7ad6b7169203331-00"],
    "the first of two": ["00-{trace}-b7ad6b7169203331-00", f"00-{'c' * 32}-b7ad6b7169203331-01"],
}


@pytest.mark.parametrize("sent", NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_envoy_does_not_keep_of_an_odd_context_has_no_other_spans(
    asking: Asking, traced: Gateway, receiver: Receiver, sent: list[str]
) -> None:
    headers = [("traceparent", one.format(trace=asking.trace)) for one in sent]
    answer = httpx.post(traced.url + "/v1/chat/completions", json=ask("solo"), headers=headers)
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    after = Asking(receiver, traced)
    after.chat(ask("solo"))
    after.spans(3)
    assert (asking.trace, []) == (line["trace_id"], receiver.trace(asking.trace))


def test_what_a_client_chose_is_told(asking: Asking) -> None:
    asking.chat(ask("solo", max_tokens=50, temperature=0.25, top_p=1, seed=7, stop=["their text"], n=1))
    (attempt,) = (span for span in asking.spans(3) if span.kind == "CLIENT")
    told = {name: value for name, value in attempt.attributes.items() if name.startswith("gen_ai.request.")}
    assert {
        "gen_ai.request.model": "m1",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.25,
        "gen_ai.request.top_p": 1,
        "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 1,
    } == told


def test_a_stream_that_passes_through_is_one_trace_without_a_relay(asking: Asking, traced: Gateway) -> None:
    answer = asking.chat(ask("passing", stream=True, **simulate(m1=["status:500", "ok"])))
    assert 200 == answer.status_code
    spans = asking.spans(4)
    assert tree(spans, numbered) == {CHAT: {"decide": {}, "chat m1 #1 passing/p1": {}, "chat m1 #2 passing/p1": {}}}
    in_order(spans)
    last = max((span for span in spans if span.kind == "CLIENT"), key=lambda span: span["zurelay.attempt.number"])
    assert 200 == last["http.response.status_code"]
    assert last.start <= last.event("zurelay.first_token").at <= last.end
    assert last["gen_ai.response.time_to_first_chunk"] > 0
    line = line_of(traced, answer.headers["x-zurelay-request-id"])
    assert 0 < line["first_token_ms"] <= line["total_ms"]


def test_a_relays_client_that_left_has_made_one_attempt_in_the_log_as_in_the_trace(
    asking: Asking, traced: Gateway
) -> None:
    body = ask("solo", stream=True, **simulate(m1="slow-token:30"))
    with pytest.raises(httpx.ReadTimeout):
        traced.chat(body, asking.headers | {"x-request-id": asking.trace, "x-zurelay-keepalive": "off"}, timeout=1)
    asking.spans(4)
    assert 1 == line_of(traced, f'"client_request_id":"{asking.trace}"')["attempts"]
