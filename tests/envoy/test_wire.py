"""What goes over the wire through a real Envoy: to providers, to the sidecar, to clients."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envoy_testbed import Answer, Testbed, key, provider, settings
from envoy_toys import Arrived, RecordingProvider
from zurelay.envoy import BOOTSTRAP_FILE, LISTENERS_FILE
from zurelay.model import Format, Limits, Secret, Settings, Timeouts

MIB = 1 << 20
ODD = "m/1#x:y é 100%"


@pytest.fixture(scope="module", name="providers")
def _providers() -> Iterator[dict[str, RecordingProvider]]:
    found = {name: RecordingProvider(name) for name in "abc"}
    yield found
    for each in found.values():
        each.stop()


@pytest.fixture(scope="module", name="module_bed")
def _module_bed(providers: dict[str, RecordingProvider], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    directory = tmp_path_factory.mktemp("e")
    secret = directory / "key-of-c"
    secret.write_text("secret-of-c\n")
    a, b, c = (f"http://127.0.0.1:{providers[name].port}/v1" for name in "abc")
    given = settings(
        provider("a", a, api_key=key("a"), headers={"X-Own": "100%", "OpenAI-Organization": "org"}),
        provider("b", b.replace("127.0.0.1", "localhost"), format=Format.ANTHROPIC, api_key=key("b")),
        provider("c", c, auth_header="api-key", api_key=Secret(file=str(secret))),
        provider("gone", "http://no-such-name.invalid:80/v1"),
        provider("closed", "http://127.0.0.1:1/v1"),
        provider(ODD, a),
        limits=Limits(request_body=8 * MIB, response_body=32 * MIB),
    )
    with Testbed(directory, given) as bed:
        yield bed


@pytest.fixture(name="bed")
def _bed(module_bed: Testbed, providers: dict[str, RecordingProvider]) -> Iterator[Testbed]:
    module_bed.sidecar.seen.clear()
    for each in providers.values():
        each.arrived.clear()
    yield module_bed
    assert module_bed.process.poll() is None, "Envoy died"


def arrived(providers: dict[str, RecordingProvider]) -> list[Arrived]:
    return [request for each in providers.values() for request in each.arrived]


CLIENT = {
    "authorization": "Bearer client",
    "x-api-key": "client",
    "api-key": "client",
    "cookie": "a=b",
    "x-request-id": "theirs",
    "traceparent": "00-1-2-01",
    "x-b3-traceid": "1",
    "x-forwarded-for": "10.0.0.1",
    "x-forwarded-host": "elsewhere",
    "x-envoy-max-retries": "0",
    "x-envoy-upstream-alt-stat-name": "theirs",
    "x-zurelay-fallback": "on",
    "x-own": "client",
    "openai-organization": "client",
    "accept-encoding": "gzip",
    "content-type": "application/json",
    "user-agent": "tests",
    "anthropic-beta": "kept",
}


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("a.first", {"authorization": "Bearer secret-of-a", "x-own": "100%", "openai-organization": "org"}),
        ("b.first", {"x-api-key": "secret-of-b"}),
        ("c.first", {"api-key": "secret-of-c"}),
    ],
)
def test_a_provider_gets_its_own_credential_and_nothing_of_the_clients_that_is_not_its_business(
    bed: Testbed, providers: dict[str, RecordingProvider], cluster: str, expected: dict[str, str]
) -> None:
    answer = bed.ask(body={"text": "hi"}, test={"plan": [cluster]}, headers=CLIENT)

    (request,) = providers[cluster[0]].arrived
    host = "localhost" if cluster[0] == "b" else "127.0.0.1"
    common = {
        "host": f"{host}:{providers[cluster[0]].port}",
        "content-type": "application/json",
        "content-length": "14",
        "accept-encoding": "identity",
        "user-agent": "tests",
        "anthropic-beta": "kept",
    }
    found = request.headers
    found.pop("x-test")  # what a client sends beside is the sidecar's to remove
    assert answer.status == 200
    assert request.head[0] == "POST /v1/chat/completions HTTP/1.1"
    assert found == {**common, **expected}


def test_an_attempt_leaves_no_credential_and_no_header_to_the_next(
    bed: Testbed, providers: dict[str, RecordingProvider]
) -> None:
    faults = {"a": "status500", "b": "status500"}

    bed.ask(body={"faults": faults}, test={"plan": ["a.first", "b.whole", "c.whole"]}, headers=CLIENT)

    ours = ("authorization", "x-api-key", "api-key", "x-own", "openai-organization")
    assert {
        request.provider: {name: value for name, value in request.headers.items() if name in ours}
        for request in arrived(providers)
    } == {
        "a": {"authorization": "Bearer secret-of-a", "x-own": "100%", "openai-organization": "org"},
        "b": {"x-api-key": "secret-of-b"},
        "c": {"api-key": "secret-of-c"},
    }


def test_the_sidecar_never_sees_a_providers_credential(bed: Testbed) -> None:
    plan = ["a.first", "b.whole", "c.whole", "a.whole"]

    bed.ask(body={"faults": dict.fromkeys("abc", "status500")}, test={"plan": plan})

    assert [phase for phase, _, _ in bed.sidecar.seen if phase == "whole"] == ["whole"] * 3
    assert "secret-of" not in str(bed.sidecar.seen)


def test_the_sidecar_sees_the_clients_key_and_request_id_but_no_envoy_header(bed: Testbed) -> None:
    bed.ask(body={}, test={"immediate": [200, "zurelay"]}, headers=CLIENT | {"x-forwarded-client-cert": "URI=forged"})

    ((_, metadata, headers),) = bed.sidecar.seen
    assert headers["authorization"] == "Bearer client"
    assert headers["x-request-id"] == "theirs"
    assert "x-envoy-max-retries" not in headers
    assert "x-envoy-upstream-alt-stat-name" not in headers
    assert "x-forwarded-client-cert" not in headers
    assert metadata["phase"] == "ingress"
    assert "peer-address" not in metadata


def test_attempt_n_is_told_n(bed: Testbed) -> None:
    bed.ask(body={"faults": {"a": "status500"}}, test={"plan": ["a.first", "a.whole", "b.whole"]})

    counts = [headers["x-envoy-attempt-count"] for phase, _, headers in bed.sidecar.seen if phase == "whole"]
    assert counts == ["2", "3"]


def test_a_rewritten_body_arrives_whole_with_its_length(bed: Testbed, providers: dict[str, RecordingProvider]) -> None:
    body = {"text": "x" * 3 * MIB, "faults": {"a": "status500", "b": "reset"}}

    answer = bed.ask(body=body, test={"plan": ["a.first", "b.whole", "c.whole"]})

    length = len(providers["a"].arrived[0].body)
    assert answer.status == 200
    assert {r.provider: (len(r.body), r.headers["content-length"]) for r in arrived(providers)} == {
        "a": (length, str(length)),
        "b": (length + 1, str(length + 1)),
        "c": (length + 1, str(length + 1)),
    }
    assert all("transfer-encoding" not in request.headers for request in arrived(providers))


@pytest.mark.parametrize(
    ("first", "fault"),
    [
        ("gone.first", "a name that doesn't resolve"),
        ("closed.first", "a refused connection"),
        *(("a.first", fault) for fault in ("status500", "reset", "hang", "cut", "garbage")),
    ],
)
def test_whatever_happens_the_plan_goes_on(
    bed: Testbed, providers: dict[str, RecordingProvider], first: str, fault: str
) -> None:
    answer = bed.ask(body={"faults": {"a": fault}}, test={"plan": [first, "b.whole"], "try": 500})

    assert answer.status == 200
    assert len(providers["b"].arrived) == 1


def test_a_status_that_nobody_marked_is_the_answer(bed: Testbed, providers: dict[str, RecordingProvider]) -> None:
    answer = bed.ask(body={"faults": {"a": "status503-none"}}, test={"plan": ["a.first", "b.whole"]})

    assert answer.status == 503
    assert answer.body == b'{"text": ""}'
    assert providers["b"].arrived == []


@pytest.mark.parametrize("fault", ["status500", "reset", "hang"])
def test_a_stream_goes_on_too(bed: Testbed, providers: dict[str, RecordingProvider], fault: str) -> None:
    body = {"stream": True, "events": 3, "faults": {"a": fault}}

    answer = bed.stream(body, {"plan": ["a.stream", "gone.stream", "c.stream"], "try": 500})

    (request,) = providers["c"].arrived
    assert answer.status == 200
    assert answer.body.count(b"data: ") == 3
    assert request.headers["api-key"] == "secret-of-c"
    assert "transfer-encoding" not in request.headers


def test_a_route_may_be_called_anything(bed: Testbed) -> None:
    assert bed.ask(body={}, test={"plan": [f"{ODD}.first", f"{ODD}.whole"]}).status == 200


def test_no_server_header_of_a_provider_reaches_the_client(bed: Testbed) -> None:
    answer = bed.ask(body={}, test={"plan": ["a.first"]})

    assert answer.headers["server"] == "zurelay"
    assert not [name for name in answer.headers if name.startswith("x-envoy")]


@pytest.mark.parametrize("kind", ["first", "whole"])
def test_a_large_answer_passes_and_one_over_the_limit_is_a_failure(bed: Testbed, kind: str) -> None:
    inside = bed.ask(body={"size": 30 * MIB}, test={"plan": [f"a.{kind}"]})
    over = bed.ask(body={"size": 33 * MIB}, test={"plan": [f"a.{kind}"]})

    assert len(inside.body) == 30 * MIB + len('{"text": ""}')
    assert (over.status, over.json["error"]["code"]) == (503, "model_unavailable")


@pytest.mark.parametrize("late", [0, 0.3])
def test_a_burst_of_30_mib_passes_however_late_the_verdict(bed: Testbed, late: float) -> None:
    body = {"stream": True, "events": 300, "size": 100_000}

    answer = bed.stream(body, {"plan": ["a.stream"], "late": late})

    assert len(answer.body) == 300 * (100_000 + len(b"data: \n\n"))


def test_a_large_answer_passes_where_a_stream_was_asked(bed: Testbed) -> None:
    answer = bed.stream({"size": 30 * MIB}, {"plan": ["a.stream"]})

    assert len(answer.body) == 30 * MIB + len('{"text": ""}')


def unavailable(answer: Answer, code: str) -> None:
    assert answer.status == 503
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["error"]["code"] == code


def test_a_failed_plan_is_model_unavailable(bed: Testbed) -> None:
    metadata = {
        "request_id": "req_1",
        "routed_from": "zurelay-auto",
        "path": "/v1/chat/completions",
        "retry_after": "5",
    }

    answer = bed.ask(body={}, test={"plan": ["gone.first", "gone.whole", "closed.whole"], "metadata": metadata})

    unavailable(answer, "model_unavailable")
    assert answer.json["error"]["type"] == "server_error"
    assert answer.json["error"]["param"] is None
    assert {
        name: value for name, value in answer.headers.items() if name.startswith("x-") or name == "retry-after"
    } == {
        "retry-after": "5",
        "x-should-retry": "false",
        "x-zurelay-attempts": "3",
        "x-zurelay-request-id": "req_1",
        "x-zurelay-routed-from": "zurelay-auto",
    }


def test_a_failed_plan_says_when_the_providers_want_to_be_asked_again(bed: Testbed) -> None:
    answer = bed.ask(body={}, test={"plan": ["closed.first"], "metadata": {"retry_after": "17"}})

    assert answer.headers["retry-after"] == "17"


def test_errors_have_the_shape_that_the_sidecar_says(bed: Testbed) -> None:
    metadata = {"request_id": "req_1", "path": "/v1/messages/count_tokens"}

    answer = bed.ask(body={}, test={"plan": ["closed.first"], "metadata": metadata})

    assert answer.headers["request-id"] == "req_1"
    assert answer.json == {
        "type": "error",
        "error": {
            "type": "overloaded_error",
            "message": "No provider of the model answered. Try again in a few seconds, or ask for another model.",
        },
        "request_id": "req_1",
    }


def test_time_over_for_all_attempts_is_model_unavailable(bed: Testbed) -> None:
    test = {"plan": ["a.first", "a.whole"], "try": 5000, "total": 300}

    answer = bed.ask(body={"faults": {"a": "hang"}}, test=test)

    unavailable(answer, "model_unavailable")


def test_a_sidecar_that_fails_is_gateway_unavailable(bed: Testbed) -> None:
    answer = bed.ask(body={}, test={"die": True})

    unavailable(answer, "gateway_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert "x-should-retry" not in answer.headers


def test_a_sidecar_that_fails_is_told_in_the_shape_of_the_path(bed: Testbed) -> None:
    answer = bed.ask("/v1/messages?beta=true", body={}, test={"die": True})

    assert answer.status == 503
    assert answer.json["error"]["type"] == "api_error"
    assert answer.json["request_id"] is None


@pytest.mark.parametrize("status", [200, 400, 401, 408, 413, 429, 500, 503])
@pytest.mark.parametrize("details", ["", "zurelay"])
def test_the_sidecars_own_answers_pass_as_they_are(bed: Testbed, status: int, details: str) -> None:
    answer = bed.ask("/v1/messages", body={}, test={"immediate": [status, details]})

    assert answer.status == status
    assert answer.body == b'{"mine": true}'
    assert {*answer.headers} - {"connection"} == {"content-length", "content-type", "date", "server"}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /a#b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 426),
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_what_is_not_http_is_refused_in_our_shape(bed: Testbed, sent: bytes, status: int) -> None:
    head, _, body = bed.raw(sent).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-type: application/json" in head
    assert b'"code":"invalid_request"' in body
    assert b'"param":null' in body


def test_the_status_listener_answers_and_says_503_where_the_sidecar_is_away(bed: Testbed) -> None:
    answers = {
        path: bed.ask(path, port=bed.status_port).status for path in ("/healthz", "/readyz", "/metrics", "/nope")
    }

    assert answers == {"/healthz": 200, "/readyz": 503, "/metrics": 503, "/nope": 404}


def test_a_client_that_reads_nothing_is_cut_off(tmp_path: Path) -> None:
    with (
        Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1"), timeouts=Timeouts(idle=0.5))) as bed,
        socket.create_connection(("127.0.0.1", bed.port), 10) as client,
    ):
        client.sendall(b'POST / HTTP/1.1\r\nhost: x\r\nx-test: {"pour": 30}\r\ncontent-length: 2\r\n\r\n{}')
        count = "http.ingress.downstream_cx_active"
        bed.wait(lambda: bed.stats(count) == {count: "1"})
        bed.wait(lambda: bed.stats(count) == {count: "0"})


def hurried(name: str, config: Any) -> None:
    """Give clients no time at all, and Envoy no memory: the sizes are ours, what follows is tested."""
    if name == LISTENERS_FILE:
        config["resources"][0]["filter_chains"][0]["filters"][0]["typed_config"]["request_timeout"] = "0.2s"
    if name == BOOTSTRAP_FILE:
        actions = config["overload_manager"]["actions"]
        actions[:] = [action for action in actions if action["name"].endswith("stop_accepting_requests")]
        config["overload_manager"]["resource_monitors"][0]["typed_config"]["max_heap_size_bytes"] = 1 << 20


def test_short_of_memory_or_of_patience_it_says_so(tmp_path: Path) -> None:
    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1")), hurried) as bed:
        bed.wait(lambda: bed.ask(body={}, test={"immediate": [200, ""]}).status == 503)
        full = bed.ask(body={}, test={"immediate": [200, ""]})
        inside = bed.stream({}, {"plan": ["p.stream"]})
        probe = bed.ask("/healthz", port=bed.status_port)

    unavailable(full, "gateway_unavailable")
    unavailable(inside, "model_unavailable")
    assert probe.status == 200


def test_a_request_that_takes_too_long_to_arrive_is_refused_in_our_shape(tmp_path: Path) -> None:
    def impatient(name: str, config: Any) -> None:
        if name == LISTENERS_FILE:
            hurried(name, config)

    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1")), impatient) as bed:
        answer = bed.raw(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"type":"error"' in answer


def test_a_change_of_catalog_takes_nothing_from_a_request_under_way(tmp_path: Path) -> None:
    old, new = RecordingProvider("p"), RecordingProvider("p")
    answers = []

    def settings_of(server: RecordingProvider, *more: str) -> Settings:
        listed = [provider(name, f"http://localhost:{server.port}/v1") for name in ("p", *more)]
        return settings(*listed)

    with Testbed(tmp_path, settings_of(old)) as bed:
        waiting = threading.Thread(
            target=lambda: answers.append(bed.ask(body={"faults": {"p": "wait"}}, test={"plan": ["p.first"]}))
        )
        waiting.start()
        bed.wait(lambda: len(old.arrived) == 1)
        bed.write(settings_of(new, "q"))
        bed.settle()
        after = [bed.ask(body={}, test={"plan": [f"{name}.first"]}).status for name in ("p", "q")]
        old.release.set()
        waiting.join(10)

    assert after == [200, 200]
    assert (len(old.arrived), len(new.arrived)) == (1, 2)
    assert [answer.status for answer in answers] == [200]


def test_what_the_sidecar_could_not_log_envoy_does(tmp_path: Path) -> None:
    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1"))) as bed:
        bed.raw(b"GET / HTTP/1.0\r\n\r\n")
        bed.ask("/v1/messages?key=x", body={}, test={"die": True}, headers={"traceparent": "00-1-2-01"})
        bed.ask(body={}, test={"immediate": [400, "zurelay"]})
        bed.ask(body={}, test={"plan": ["p.first"], "metadata": {"path": "/v1/chat/completions"}})
        bed.sidecar.stop()
        bed.ask("/v1/models", method="GET")

    lines = [json.loads(line) for line in (tmp_path / "envoy.log").read_text().splitlines()]
    found = [(line["status"], line["path"], line["traceparent"]) for line in lines if "status" in line]
    assert found == [(426, None, None), (503, "/v1/messages", "00-1-2-01"), (503, "/v1/models", None)]


def test_a_worker_that_is_away_fails_no_request(tmp_path: Path) -> None:
    def half_away(name: str, config: Any) -> None:
        if name == BOOTSTRAP_FILE:
            (sidecar,) = (each for each in config["static_resources"]["clusters"] if each["name"] == "sidecar")
            (group,) = sidecar["load_assignment"]["endpoints"]
            group["lb_endpoints"].append({"endpoint": {"address": {"pipe": {"path": f"{tmp_path}/away.sock"}}}})

    with Testbed(tmp_path, settings(provider("p", "http://127.0.0.1:1/v1")), half_away) as bed:
        statuses = {bed.ask(body={}, test={"immediate": [200, ""]}).status for _ in range(30)}

    assert statuses == {200}
