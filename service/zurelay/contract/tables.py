"""What of an Envoy configuration is the contract, part by part. All else is its owner's: names, logs, own limits."""

from __future__ import annotations

from zurelay.contract.rules import How, Rule

_CRASH = "Envoy 1.40 crashes otherwise"
_UNREWRITTEN = "what no one looked at would go out"

PROCESSOR = (
    Rule("grpc_service.envoy_grpc.cluster_name", How.AT_LEAST),
    Rule("grpc_service.envoy_grpc.max_receive_message_length", why="a whole body is one message"),
    Rule("grpc_service.initial_metadata", How.INCLUDES),
    Rule("grpc_service.timeout", why="a stream of the processor's lives as long as its request"),
    Rule("grpc_service.retry_policy.retry_on", How.WORDS, why="a dead worker would fail its share of requests"),
    Rule("grpc_service.retry_policy.num_retries", How.AT_LEAST),
    Rule("failure_mode_allow", why=_UNREWRITTEN),
    Rule("observability_mode", why=_UNREWRITTEN),
    Rule("disable_immediate_response"),
    Rule("processing_mode.request_header_mode", unset="SEND"),
    Rule("processing_mode.request_body_mode"),
    Rule("processing_mode.request_trailer_mode", unset="SKIP"),
    Rule("processing_mode.response_header_mode", unset="SEND"),
    Rule("processing_mode.response_body_mode"),
    Rule("processing_mode.response_trailer_mode", unset="SKIP"),
    Rule("send_body_without_waiting_for_header_response", why="the first token decides about the headers"),
    Rule("message_timeout", How.PATIENT),
    Rule("max_message_timeout", How.AT_LEAST, why="without it the sidecar can't ask for time"),
    Rule("allow_content_length_header"),
    Rule("mutation_rules.allow_envoy"),
    Rule("mutation_rules.allow_all_routing"),
    Rule("route_cache_action"),
    Rule("metadata_options.forwarding_namespaces.untyped", How.INCLUDES),
    Rule("metadata_options.receiving_namespaces.untyped", How.INCLUDES),
    Rule("metadata_options.receiving_namespaces.typed", How.INCLUDES, why="the plan comes by it"),
    Rule("forward_rules.disallowed_headers.patterns", How.INCLUDES, why="credentials are Envoy's alone"),
    Rule("status_on_error.code"),
)

MANAGER = (
    Rule("stream_idle_timeout", How.PATIENT),
    Rule("use_remote_address"),
    Rule("skip_xff_append"),
    Rule("forward_client_cert_details", unset="SANITIZE"),
    Rule("early_header_mutation_extensions", How.INCLUDES, why="clients would steer the router by x-envoy-* headers"),
    Rule("local_reply_config.mappers", How.INCLUDES, why="Envoy's own errors need the API's shape"),
)

ENDS = (Rule("access_log", How.INCLUDES, why="the sidecar learns of ends by it"),)

BESIDE = (
    Rule("http_filters before ext_proc", How.INCLUDES, why="clients would name the sidecar's span"),
    Rule("http_filters after ext_proc", How.INCLUDES, why="what streams that pass through used is read by it"),
)

INGRESS = (
    Rule("traffic_direction", why="the drain goes by it"),
    Rule("per_connection_buffer_high_watermark_timeout", How.AT_LEAST),
    Rule("per_connection_buffer_limit_bytes", How.AT_LEAST, why=_CRASH),  # wanted where streams pass through
)
EGRESS = (
    Rule("traffic_direction", why="the drain goes by it"),
    Rule("per_connection_buffer_limit_bytes", How.AT_LEAST, why=_CRASH),
    Rule("ignore_global_conn_limit"),
    Rule("bypass_overload_manager"),
)

HOST = (
    Rule("include_request_attempt_count", why="attempts are told by it"),
    Rule("response_headers_to_remove", How.INCLUDES),
)
ROUTE = (
    Rule("request_body_buffer_limit", How.AT_LEAST, why="a retry needs the whole body"),
    Rule("route.timeout", why="the sidecar says how long"),
    Rule("route.auto_host_rewrite"),
    Rule("route.retry_policy.retry_on", How.WORDS),
    Rule("route.retry_policy.retriable_headers", How.INCLUDES),
    Rule("route.retry_policy.refresh_cluster_on_retry", why="attempt n goes to the plan's n-th cluster"),
    Rule("route.inline_cluster_specifier_plugin.extension.typed_config.@type"),
    Rule("route.inline_cluster_specifier_plugin.extension.typed_config.override_metadata_namespace"),
)

BREAKERS = tuple(
    Rule(f"circuit_breakers.thresholds.0.{name}", How.AT_LEAST)
    for name in ("max_connections", "max_pending_requests", "max_requests", "max_retries")
)
ATTEMPT = (
    *BREAKERS,
    Rule("cluster_type.typed_config.clusters", why="a name that doesn't resolve would end the plan"),
)
PROVIDER = (
    *BREAKERS,
    Rule("health_checks", why="without a healthy host a plan ends"),
    Rule("outlier_detection", why="without a healthy host a plan ends"),
    Rule("transport_socket.typed_config.sni"),
    Rule("transport_socket.typed_config.auto_sni_san_validation", why="any certificate would do"),
)
SIDECAR = (
    *BREAKERS,
    Rule("load_assignment.endpoints.0.lb_endpoints", How.INCLUDES),
)
MUTATION = (Rule("mutations.request_mutations", How.INCLUDES, why="a provider would see it"),)
CREDENTIAL = (
    Rule("overwrite"),
    Rule("allow_request_without_credential", why="a missing secret would end the plan"),
    Rule("credential.typed_config.header"),
    Rule("credential.typed_config.header_value_prefix"),
)
