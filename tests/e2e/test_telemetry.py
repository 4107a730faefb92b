"""What the gateway tells of itself, through real Envoy: metrics, log lines, content, and nothing that it mustn't."""

from __future__ import annotations

import functools
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import msgspec
import pytest
import trustme
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from e2e.claudes import claude_catalog
from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, free_port, simulate, until
from e2e.keys import bearer, key_of, write_keys
from otlp_receiver import Receiver, Span, tree, values
from zurelay import paths

PROMPT, QUERY, SECRET, CLIENTS_OWN = "marker-in-the-prompt", "marker-in-the-query", "marker-of-the-provider", "their-id"
Start = Callable[..., Gateway]


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(name="start")
def _start(provider: Provider, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a gateway that sends to the receiver unless told otherwise."""
    started: list[Gateway] = []

    def start(settings: dict[str, Any] | None = None, env: dict[str, str] | None = None, **telemetry: Any) -> Gateway:
        provider.reset()
        given = settings or catalog(provider.port) | {"workers": 1}
        told = {"otlp": receiver.endpoint, **telemetry}
        given["telemetry"] = {name: value for name, value in told.items() if value is not None}
        started.append(Gateway(tmp_path_factory.mktemp("t"), given, env).wait_ready())
        return started[-1]

    yield start
    for each in started:
        assert each.stop() == 0, "".join(each.log)


def families(gateway: Gateway) -> dict[str, Metric]:
    """What /metrics says, read as Prometheus does."""
    text = httpx.get(gateway.status_url + "/metrics").text
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(gateway: Gateway, name: str) -> dict[tuple[str, ...], float]:
    """The values of one series by their labels."""
    family = next((each for each in families(gateway).values() if each.name == name.removesuffix("_total")), None)
    found = family.samples if family is not None else []
    return {tuple(sample.labels.values()): sample.value for sample in found if sample.name == name}


def lines(gateway: Gateway, word: str) -> list[dict[str, Any]]:
    """The log's JSON lines with a word in them."""
    found = [line[line.find("{") :] for line in list(gateway.log) if word in line and "{" in line]
    return [msgspec.json.decode(line) for line in found]


def attempts(receiver: Receiver, trace: str) -> list[Span]:
    return [span for span in receiver.trace(trace) if span.kind == "CLIENT"]


def has(trace: str, count: int, receiver: Receiver) -> bool:
    return len(receiver.trace(trace)) == count


def traced(number: int, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{number:032x}-{'b' * 16}-{flags}"}


def test_metrics_are_as_prometheus_and_the_collector_want_them(start: Start, receiver: Receiver) -> None:
    gateway = start(env={"OTEL_METRIC_EXPORT_INTERVAL": "300"})
    gateway.chat(ask("trio", **simulate(m1=["status:500", "ok"])))
    gateway.chat(ask("trio", stream=True))
    for number in range(1_000):
        assert 404 == gateway.chat(ask(f"made-up-{number}")).status_code
    assert {("trio", "answered"): 2} == samples(gateway, "zurelay_requests_total")
    assert {("trio", "status"): 1} == samples(gateway, "zurelay_fallbacks_total")
    assert {("model_not_found",): 1_000} == samples(gateway, "zurelay_refusals_total")
    ours = {name: each for name, each in families(gateway).items() if name.startswith(("zurelay_", "gen_ai_"))}
    assert max(len(family.samples) for family in ours.values()) < 200
    assert {"gen_ai_client_token_usage", "gen_ai_client_operation_time_per_output_chunk_seconds"} <= ours.keys()
    assert "envoy_http_downstream_rq_total" in httpx.get(gateway.status_url + "/stats/prometheus").text

    def reported() -> set[str]:
        return {metric.name for each in receiver.metrics for scope in each.scope_metrics for metric in scope.metrics}

    receiver.until(lambda _: {"zurelay.refusals", "gen_ai.server.time_to_first_token"} <= reported())
    assert "zurelay" == values(receiver.metrics[0].resource.attributes)["service.name"]


def test_workers_are_put_together(start: Start, provider: Provider) -> None:
    gateway = start(catalog(provider.port) | {"workers": 2})
    for _ in range(20):
        gateway.chat(ask("trio"))
    assert {("trio", "answered"): 20} == samples(gateway, "zurelay_requests_total")


def test_a_budget_that_is_being_spent_shows(start: Start, provider: Provider, tmp_path: pathlib.Path) -> None:
    settings = catalog(provider.port) | {"workers": 1}
    for model in settings["models"].values():
        model["price"] = {"input": 1_000, "output": 1_000}
    auth = write_keys(tmp_path, spender={"limits": {"usd_per_day": 1}})
    auth["keys"] = str(tmp_path / "keys.yaml")
    gateway = start(settings | {"auth": auth})
    assert 200 == gateway.chat(ask("trio", max_tokens=50), bearer("spender")).status_code
    used = until(lambda: samples(gateway, "zurelay_limit_used_ratio").get(("spender", "usd_per_day"), 0.0), 40)
    assert 0 < used < 1


def both(gateway: Gateway, request_id: str) -> bool:
    return len(lines(gateway, request_id)) == 2


def test_a_log_line_joins_envoys_by_its_request_id(start: Start) -> None:
    gateway = start(access_log=True)
    for stream in (False, True):
        answer = gateway.chat(ask("trio", stream=stream), {"x-request-id": CLIENTS_OWN})
        request_id = answer.headers["x-zurelay-request-id"]
        until(functools.partial(both, gateway, request_id))
        ours, envoys = sorted(lines(gateway, request_id), key=lambda line: "details" in line)
        assert (ours["trace_id"], 200) == (envoys["trace_id"], envoys["status"])
        assert CLIENTS_OWN == ours["client_request_id"]


def test_nothing_that_is_written_down_holds_a_secret_or_a_prompt(
    start: Start, receiver: Receiver, provider: Provider, tmp_path: pathlib.Path
) -> None:
    settings = catalog(provider.port) | {"workers": 1}
    for each in settings["providers"].values():
        each["api_key"] = {"env": "PLANTED"}
    auth = write_keys(tmp_path, team={})
    auth["keys"] = str(tmp_path / "keys.yaml")
    gateway = start(
        settings | {"auth": auth},
        {"PLANTED": SECRET, "OTEL_METRIC_EXPORT_INTERVAL": "300", "OTEL_EXPORTER_OTLP_HEADERS": "tenant=a"},
        logs=True,
        access_log=True,
    )
    url = f"{gateway.url}/v1/chat/completions?key={QUERY}"
    for fault in ("ok", "status:500", "not-json", "reset", "refuse:because"):
        for stream in (False, True):
            for model in ("trio", "made-up"):
                body = ask(model, PROMPT, stream=stream, **simulate(m1=fault, m2=fault, m3=fault))
                httpx.post(url, json=body, headers=bearer("team"), timeout=30)
    httpx.post(url, content=f'{{"model": "trio", "messages": "{PROMPT}"', headers=bearer("team"))
    httpx.post(url, json=ask("trio", PROMPT), headers={"authorization": f"Bearer {key_of('wrong')}"})
    receiver.until(lambda r: len(r.logs) >= 22 and r.metrics and len(r.spans) > 60)
    told = [*receiver.raw, *(line.encode() for line in gateway.log), gateway_text(gateway)]
    assert any(key_of("team")[3:7].encode() in each for each in told), "the key's name is told: the search finds things"
    for planted in (PROMPT, QUERY, SECRET, key_of("team"), key_of("wrong")):
        assert not [each for each in told if planted.encode() in each], planted
    assert {"a"} == {each.get("tenant") for each in receiver.metadata}


def gateway_text(gateway: Gateway) -> bytes:
    return httpx.get(gateway.status_url + "/metrics").content


def test_a_collector_that_is_away_costs_requests_nothing_and_what_is_lost_is_counted(
    start: Start, provider: Provider
) -> None:
    gateway = start(otlp=f"http://127.0.0.1:{free_port()}")
    for stream in (False, True):
        assert 200 == gateway.chat(ask("trio", stream=stream)).status_code
    lost = until(lambda: samples(gateway, "zurelay_telemetry_dropped_total").get(("traces",), 0.0), 40)
    assert lost >= 5
    assert len(provider.requests) == 2


def test_a_collector_that_never_answers_costs_requests_nothing(start: Start, receiver: Receiver) -> None:
    receiver.hold.clear()
    gateway = start(env={"OTEL_EXPORTER_OTLP_TIMEOUT": "200"})
    for stream in (False, True):
        for _ in range(20):
            assert 200 == gateway.chat(ask("trio", stream=stream)).status_code
    assert until(lambda: samples(gateway, "zurelay_telemetry_dropped_total").get(("traces",), 0.0), 40)
    receiver.hold.set()


def test_a_collector_behind_tls_gets_envoys_spans_and_ours(start: Start, tmp_path: pathlib.Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(pem))
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    receiver = Receiver(tls=grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)]))
    try:
        gateway = start(otlp=f"https://localhost:{receiver.port}", env={"OTEL_EXPORTER_OTLP_CERTIFICATE": str(pem)})
        gateway.chat(ask("trio"), traced(1))
        receiver.until(functools.partial(has, f"{1:032x}", 3))
    finally:
        receiver.stop()


def test_a_share_of_the_traces_is_whole_and_the_rest_is_silent(start: Start, receiver: Receiver) -> None:
    gateway = start(sample=0.4)
    ids = [gateway.chat(ask("trio")).headers["x-zurelay-request-id"] for _ in range(40)]
    until(lambda: all(lines(gateway, each) for each in ids))
    known = {line["trace_id"] for each in ids for line in lines(gateway, each)}
    assert 40 == len(known)
    gateway.chat(ask("trio"), traced(7))
    receiver.until(lambda r: len(r.trace(f"{7:032x}")) == 3)
    kept = {span.trace for span in receiver.spans} & known
    assert 2 < len(kept) < 38
    receiver.until(lambda r: all(len(r.trace(each)) == 3 for each in kept))


@pytest.mark.parametrize("stream", [False, True])
def test_errors_and_fallbacks_are_kept_whole_though_their_trace_is_not(
    start: Start, receiver: Receiver, stream: bool
) -> None:
    gateway = start(sample=0, keep=["errors", "fallbacks"])
    gateway.chat(ask("trio", stream=stream), traced(1, "00"))
    gateway.chat(ask("solo", stream=stream, **simulate(m1="status:500")), traced(2, "00"))
    gateway.chat(ask("trio", stream=stream, **simulate(m1=["status:500", "ok"])), traced(3, "00"))
    gateway.chat(ask("made-up", stream=stream), traced(4, "00"))
    wanted = {2: 4 + stream, 3: 4 + stream, 4: 2}
    for number, count in wanted.items():
        receiver.until(functools.partial(has, f"{number:032x}", count))
        (root,) = tree(receiver.trace(f"{number:032x}"))
        assert "POST /v1/chat/completions" == root
        assert {"b" * 16} == {span.parent for span in receiver.trace(f"{number:032x}") if span.kind == "SERVER"}
    assert [] == receiver.trace(f"{1:032x}")


def test_a_refused_request_that_a_rule_keeps_is_told_as_it_was_asked(start: Start, receiver: Receiver) -> None:
    gateway = start(sample=0, keep=["errors"])
    for number, (method, path) in enumerate([("GET", "/v1/chat/completions"), ("POST", "/wp-login.php?key=x")], 1):
        httpx.request(method, gateway.url + path, headers=traced(number, "00"))
        receiver.until(functools.partial(has, f"{number:032x}", 2))
        (server,) = (span for span in receiver.trace(f"{number:032x}") if span.kind == "SERVER")
        assert (paths.operation(method, path), method, paths.bare(path)) == (
            server.name,
            server["http.request.method"],
            server["url.path"],
        )


def test_attempts_that_reached_nobody_are_counted_as_given_up(start: Start) -> None:
    gateway = start()
    for stream in (False, True):
        assert 200 == gateway.chat(ask("trio", stream=stream, **simulate(m1="reset", m2="ok"))).status_code
    found = until(lambda: samples(gateway, "zurelay_attempts_given_up_total"))
    assert {("trio/p1", "no_answer"): 4} == found


def test_a_change_of_the_file_turns_traces_on_and_off(start: Start, receiver: Receiver) -> None:
    gateway = start(otlp=None)
    gateway.chat(ask("trio"), traced(1))
    on = {**gateway.config, "telemetry": {"otlp": receiver.endpoint}}
    gateway.write(on)
    until(lambda: samples(gateway, "zurelay_config_reloads_total").get(("applied",)) == 1)
    gateway.chat(ask("trio"), traced(2))
    receiver.until(lambda r: len(r.trace(f"{2:032x}")) == 3)
    gateway.write({**gateway.config, "telemetry": {}})
    until(lambda: samples(gateway, "zurelay_config_reloads_total").get(("applied",)) == 2)
    assert 200 == gateway.chat(ask("trio"), traced(3)).status_code
    assert {f"{2:032x}"} == {span.trace for span in receiver.spans}


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_sees_the_trace_where_it_should(
    start: Start, receiver: Receiver, provider: Provider, stream: bool
) -> None:
    gateway = start(propagate=True)
    gateway.chat(ask("trio", stream=stream), traced(1))
    (arrived,) = provider.requests
    trace, span = f"{1:032x}", dict(arrived.headers)["traceparent"].split("-")[2]
    receiver.until(lambda r: span in {one.id for one in r.trace(trace)})
    (above,) = (one for one in receiver.trace(trace) if one.id == span)
    assert ("relay" if stream else "POST /v1/chat/completions") == above.name
    assert all(one.parent == span for one in attempts(receiver, trace))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_content_is_captured_where_that_is_wanted(
    start: Start, receiver: Receiver, provider: Provider, path: str, stream: bool
) -> None:
    gateway = start(claude_catalog(provider.port) | {"workers": 1}, capture_content=True)
    body = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": PROMPT}], "stream": stream}
    assert 200 == httpx.post(gateway.url + path, json=body, headers=traced(1), timeout=30).status_code
    receiver.until(lambda r: attempts(r, f"{1:032x}"))
    (attempt,) = attempts(receiver, f"{1:032x}")
    asked = msgspec.json.decode(attempt["gen_ai.input.messages"])
    assert [{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}] == asked
    (answer,) = msgspec.json.decode(attempt["gen_ai.output.messages"])
    assert ("assistant", "stop", "text") == (answer["role"], answer["finish_reason"], answer["parts"][-1]["type"])
    assert answer["parts"][-1]["content"]
    assert not [line for line in gateway.log if PROMPT in line]


def test_a_variable_that_cannot_be_obeyed_stops_the_start(provider: Provider, tmp_path: pathlib.Path) -> None:
    given = catalog(provider.port) | {"telemetry": {"otlp": "http://127.0.0.1:4317"}}
    gateway = Gateway(tmp_path, given, {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    assert 1 == gateway.process.wait(30)
    assert 1 == gateway.stop()
    assert "only grpc is spoken" in "".join(gateway.log)


def test_no_span_is_lost_when_the_gateway_is_told_to_end(receiver: Receiver, start: Start) -> None:
    gateway = start()
    for _ in range(20):
        assert gateway.chat(ask("solo")).status_code == 200

    assert gateway.stop() == 0

    receiver.until(lambda r: len(r.spans) >= 60, 3)
    assert {"POST /v1/chat/completions": 20, "decide": 20, "chat m1": 20} == Counter(
        span.name for span in receiver.spans
    )


@pytest.mark.parametrize("content_type", ["application/grpc", "application/grpc+json"])
def test_a_client_that_says_it_speaks_grpc_puts_no_query_into_spans(
    receiver: Receiver, start: Start, content_type: str
) -> None:
    gateway = start()
    headers = {"content-type": content_type, "x-client-trace-id": "their-own"}

    httpx.post(gateway.url + f"/nothing?key={QUERY}", headers=headers, content=b"{}")

    receiver.until(lambda r: [span for span in r.spans if span.kind == "SERVER"])
    assert not any(word in raw for raw in receiver.raw for word in (QUERY.encode(), b"their-own"))
