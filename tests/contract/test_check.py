from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contract.making import FLAG, Account, given
from zurelay import contract
from zurelay.model import Streaming, Telemetry

INGRESS, EGRESS = 0, 1
LUA = "envoy.filters.http.lua"
Change = Callable[[Account], Any]


def test_what_we_write_ourselves_is_agreement() -> None:
    account = Account(given())

    assert contract.problems(account.wanted(), account.envoy()) == []


def put(part: Callable[[Account], Any], path: str, value: Any) -> Change:
    """Change one value; None takes it out."""

    def change(account: Account) -> None:
        *way, last = path.split(".")
        found = part(account)
        for step in way:
            found = found[int(step)] if step.isdigit() else found[step]
        if value is None:
            del found[last]
        else:
            found[last] = value

    return change


def ingress(account: Account) -> Any:
    return account.processor(INGRESS)


def egress(account: Account) -> Any:
    return account.processor(EGRESS)


def stream(account: Account) -> Any:
    return account.filter("p.stream", 0)


def whole(account: Account) -> Any:
    return account.filter("q.whole", 0)


def route(account: Account) -> Any:
    return account.route(INGRESS)


def cluster(name: str) -> Callable[[Account], Any]:
    return lambda account: account.cluster(name)


BREAKERS = {"max_connections": 1024, "max_pending_requests": 10**6, "max_requests": 10**6, "max_retries": 3}

CASES: dict[str, tuple[Change, list[str]]] = {
    "another version": (
        lambda account: account.server_info.update(version="0/1.39.2/Clean/RELEASE/BoringSSL"),
        ["Envoy is 1.39.2, must be 1.40.x: others treat the plan and its retries differently"],
    ),
    "a newer patch": (lambda account: account.server_info.update(version="0/1.40.7/Clean/RELEASE/BoringSSL"), []),
    "the flag that crashes, unset": (
        lambda account: account.runtime["entries"].clear(),
        [f"runtime: {FLAG} is unset, must be false (Envoy 1.40 crashes otherwise)"],
    ),
    "the flag that crashes, set": (
        lambda account: account.runtime["entries"][FLAG].update(final_value="true"),
        [f"runtime: {FLAG} is true, must be false (Envoy 1.40 crashes otherwise)"],
    ),
    "no ingress": (
        lambda account: account.listeners.pop(INGRESS),
        ["no listener has an ext_proc filter of ours with `phase: ingress` in its initial metadata"],
    ),
    "a body mode in which no stream can be answered": (
        put(ingress, "processing_mode.request_body_mode", "BUFFERED"),
        ["listener ingress, ext_proc: processing_mode.request_body_mode is BUFFERED, must be FULL_DUPLEX_STREAMED"],
    ),
    "a header mode that is left to Envoy": (put(ingress, "processing_mode.request_header_mode", None), []),
    "answers that no one looked at": (
        put(egress, "failure_mode_allow", True),
        ["listener egress, ext_proc: failure_mode_allow is true, must be unset (what no one looked at would go out)"],
    ),
    "a timeout of the processor's stream": (
        put(ingress, "grpc_service.timeout", "30s"),
        [
            (
                "listener ingress, ext_proc: grpc_service.timeout is 30s, must be 0s"
                " (a stream of the processor's lives as long as its request)"
            )
        ],
    ),
    "a small gRPC message": (
        put(ingress, "grpc_service.envoy_grpc.max_receive_message_length", 4 << 20),
        [
            (
                "listener ingress, ext_proc: grpc_service.envoy_grpc.max_receive_message_length is 4194304,"
                " must be unset (a whole body is one message)"
            )
        ],
    ),
    "no retry of a dead worker": (
        put(stream, "grpc_service.retry_policy", None),
        [
            (
                "cluster p.stream, ext_proc: grpc_service.retry_policy.retry_on lacks connect-failure and 2 more"
                " (a dead worker would fail its share of requests)"
            ),
            "cluster p.stream, ext_proc: grpc_service.retry_policy.num_retries is unset, must be at least 4",
        ],
    ),
    "namespaces that are not let in": (
        put(ingress, "metadata_options.receiving_namespaces.typed", ["other"]),
        [
            (
                "listener ingress, ext_proc: metadata_options.receiving_namespaces.typed lacks zurelay"
                " (the plan comes by it)"
            )
        ],
    ),
    "no time to ask for": (
        put(stream, "max_message_timeout", None),
        [
            (
                "cluster p.stream, ext_proc: max_message_timeout is unset, must be at least 3600s"
                " (without it the sidecar can't ask for time)"
            )
        ],
    ),
    "an answer that comes in pieces": (
        put(whole, "processing_mode.response_body_mode", "STREAMED"),
        ["cluster q.whole, ext_proc: processing_mode.response_body_mode is STREAMED, must be BUFFERED"],
    ),
    "credentials that the sidecar would see": (
        put(whole, "forward_rules", None),
        [
            (
                'cluster q.whole, ext_proc: forward_rules.disallowed_headers.patterns lacks {"exact":"authorization"}'
                " and 3 more (credentials are Envoy's alone)"
            )
        ],
    ),
    "an impatient connection": (
        put(lambda account: account.manager(INGRESS), "stream_idle_timeout", "300s"),
        ["listener ingress: stream_idle_timeout is 300s, must be at least 600s"],
    ),
    "an endlessly patient one": (put(lambda account: account.manager(INGRESS), "stream_idle_timeout", "0s"), []),
    "clients that steer the router": (
        put(lambda account: account.manager(INGRESS), "early_header_mutation_extensions", None),
        ["listener ingress: early_header_mutation_extensions lacks "],
    ),
    "errors of Envoy's own shape": (
        put(lambda account: account.manager(EGRESS), "local_reply_config", {}),
        ["listener egress: local_reply_config.mappers lacks "],
    ),
    "ends that no one is told of": (
        lambda account: account.manager(INGRESS)["access_log"].pop(),
        ["listener ingress: access_log lacks "],
    ),
    "a log of one's own": (lambda account: account.manager(INGRESS)["access_log"].pop(0), []),
    "a listener that isn't drained": (
        put(lambda account: account.listeners[INGRESS], "traffic_direction", None),
        ["listener ingress: traffic_direction is unset, must be INBOUND (the drain goes by it)"],
    ),
    "the buffer that crashes": (
        put(lambda account: account.listeners[EGRESS], "per_connection_buffer_limit_bytes", 1 << 20),
        [
            (
                "listener egress: per_connection_buffer_limit_bytes is 1048576, must be at least 1073741824"
                " (Envoy 1.40 crashes otherwise)"
            )
        ],
    ),
    "a small retry buffer": (
        put(route, "request_body_buffer_limit", 1 << 20),
        [
            (
                "listener ingress, route: request_body_buffer_limit is 1048576, must be at least 68157440"
                " (a retry needs the whole body)"
            )
        ],
    ),
    "a buffer beyond a worker's message": (
        put(route, "request_body_buffer_limit", 1 << 30),
        ["listener ingress, route: request_body_buffer_limit is 1073741824, must be at most 69206016 (the worker's)"],
    ),
    "retries that stay with the first cluster": (
        put(route, "route.retry_policy.refresh_cluster_on_retry", False),
        [
            (
                "listener ingress, route: route.retry_policy.refresh_cluster_on_retry is unset, must be true"
                " (attempt n goes to the plan's n-th cluster)"
            )
        ],
    ),
    "a mark that isn't heeded": (
        put(route, "route.retry_policy.retry_on", "5xx"),
        ["listener ingress, route: route.retry_policy.retry_on lacks connect-failure and 3 more"],
    ),
    "no plan": (
        put(route, "route.inline_cluster_specifier_plugin", None),
        ["listener ingress: no route has the cluster specifier that goes by the sidecar's plan (priority_group)"],
    ),
    "the plan of someone else": (
        put(
            route,
            "route.inline_cluster_specifier_plugin.extension.typed_config.override_metadata_namespace",
            "other",
        ),
        [
            (
                "listener ingress, route: route.inline_cluster_specifier_plugin.extension.typed_config"
                ".override_metadata_namespace is other, must be zurelay"
            )
        ],
    ),
    "breakers that end plans": (
        put(cluster("p.first"), "circuit_breakers.thresholds", [BREAKERS]),
        [
            "cluster p.first: circuit_breakers.thresholds.0.max_connections is 1024, must be at least 1000000",
            "cluster p.first: circuit_breakers.thresholds.0.max_retries is 3, must be at least 1000000",
        ],
    ),
    "a cluster that isn't there": (
        lambda account: account.clusters.remove(account.cluster("q.stream")),
        ["cluster q.stream: not there; a plan that names it ends"],
    ),
    "no word to the sidecar": (
        lambda account: account.static_clusters.pop(0),
        [
            "cluster sidecar: not there, and listener ingress asks the sidecar by it",
            "cluster sidecar: not there, and listener egress asks the sidecar by it",
        ],
    ),
    "a sidecar by HTTP/1": (
        put(cluster("sidecar"), "typed_extension_protocol_options", None),
        ["cluster sidecar: doesn't speak HTTP/2, which gRPC needs (explicit_http_config.http2_protocol_options)"],
    ),
    "workers elsewhere": (
        put(cluster("sidecar"), "load_assignment.endpoints", []),
        ["cluster sidecar: load_assignment.endpoints.0.lb_endpoints lacks "],
    ),
    "any certificate": (
        put(
            lambda account: next(
                each for each in account.clusters if each["name"].startswith("q.") and "transport_socket" in each
            ),
            "transport_socket.typed_config.auto_sni_san_validation",
            False,
        ),
        [" transport_socket.typed_config.auto_sni_san_validation is unset, must be true (any certificate would do)"],
    ),
    "a missing secret that ends the plan": (
        lambda account: account.filter("p.whole", 2).update(allow_request_without_credential=False),
        [
            (
                "cluster p.whole, CredentialInjector: allow_request_without_credential is unset, must be true"
                " (a missing secret would end the plan)"
            )
        ],
    ),
    "a header that a provider would see": (
        lambda account: account.filter("p.first", 1)["mutations"]["request_mutations"].remove({"remove": "cookie"}),
        [
            (
                'cluster p.first, HeaderMutation: mutations.request_mutations lacks {"remove":"cookie"}'
                " (a provider would see it)"
            )
        ],
    ),
}


@pytest.mark.parametrize(("change", "said"), CASES.values(), ids=CASES)
def test_a_difference_is_named(change: Change, said: list[str]) -> None:
    account = Account(given())
    change(account)

    found = contract.problems(account.wanted(), account.envoy())

    assert len(found) == len(said), found
    for problem, start in zip(found, said, strict=True):
        assert start in problem


def test_filters_have_their_order() -> None:
    account = Account(given())
    (options,) = account.cluster("p.whole")["typed_extension_protocol_options"].values()
    options["http_filters"].insert(0, options["http_filters"].pop(2))

    (problem,) = contract.problems(account.wanted(), account.envoy())

    assert problem.startswith("cluster p.whole: its filters are [")
    assert problem.endswith(", in this order")


def test_filters_of_others_may_stand_between() -> None:
    account = Account(given())
    (options,) = account.cluster("p.whole")["typed_extension_protocol_options"].values()
    options["http_filters"].insert(1, {"name": "envoy.filters.http.lua", "typed_config": {"@type": "x/y"}})

    assert contract.problems(account.wanted(), account.envoy()) == []


def test_a_filter_that_is_not_there_is_named() -> None:
    account = Account(given())
    (options,) = account.cluster("p.first")["typed_extension_protocol_options"].values()
    del options["http_filters"][0]

    found = contract.problems(account.wanted(), account.envoy())

    assert found[0] == "cluster p.first: no upstream ext_proc filter with `phase: first` in its initial metadata"
    assert "in this order" in found[1]


def test_every_door_of_a_phase_is_looked_at() -> None:
    account = Account(given())
    account.listeners += Account(given()).listeners[:1]
    account.listeners[-1]["name"] = "another"
    account.processor(len(account.listeners) - 1)["failure_mode_allow"] = True

    (problem,) = contract.problems(account.wanted(), account.envoy())

    assert problem.startswith("listener another, ext_proc: failure_mode_allow is true")


def test_a_credential_that_no_one_asked_for_is_named() -> None:
    account = Account(given())
    (theirs,) = account.cluster("p.whole")["typed_extension_protocol_options"].values()
    (ours,) = account.cluster("q.whole")["typed_extension_protocol_options"].values()
    ours["http_filters"].insert(2, theirs["http_filters"][2])

    assert contract.problems(account.wanted(), account.envoy()) == [
        "cluster q.whole: injects a credential, and the configuration names none for its provider"
    ]


def passing() -> Account:
    """Streams may pass through, and requests are traced."""
    return Account(
        msgspec.structs.replace(
            given(), streaming=Streaming(passthrough=True), telemetry=Telemetry(otlp="http://127.0.0.1:4317")
        )
    )


def test_streams_that_pass_through_and_traces_are_agreement() -> None:
    account = passing()

    assert contract.problems(account.wanted(), account.envoy()) == []


BESIDE: dict[str, tuple[Change, str]] = {
    "no buffer for what waits": (
        put(lambda account: account.listeners[INGRESS], "per_connection_buffer_limit_bytes", None),
        (
            "listener ingress: per_connection_buffer_limit_bytes is unset, must be at least 67108864"
            " (Envoy 1.40 crashes otherwise)"
        ),
    ),
    "no script": (
        lambda account: account.manager(INGRESS)["http_filters"].remove(script(account)),
        "listener ingress: http_filters after ext_proc lacks ",
    ),
    "a script too early": (
        lambda account: account.manager(INGRESS)["http_filters"].sort(key=lambda each: each["name"] != LUA),
        "listener ingress: http_filters after ext_proc lacks ",
    ),
    "a script of another release": (
        lambda account: script(account)["typed_config"]["default_source_code"].update(inline_string="-- old"),
        "listener ingress: http_filters after ext_proc lacks ",
    ),
    "spans that clients name": (
        lambda account: account.manager(INGRESS)["http_filters"].pop(0),
        'listener ingress: http_filters before ext_proc lacks {"@type":',
    ),
}


def script(account: Account) -> Any:
    return next(each for each in account.manager(INGRESS)["http_filters"] if each["name"] == LUA)


@pytest.mark.parametrize(("change", "said"), BESIDE.values(), ids=BESIDE)
def test_what_stands_beside_the_processor_is_compared(change: Change, said: str) -> None:
    account = passing()
    change(account)

    (problem,) = contract.problems(account.wanted(), account.envoy())

    assert problem.startswith(said)


def test_a_script_that_no_stream_needs_is_its_owner_s() -> None:
    account = Account(given())
    account.manager(INGRESS)["http_filters"].insert(1, script(passing()))

    assert contract.problems(account.wanted(), account.envoy()) == []
