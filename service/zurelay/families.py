"""Every metric that zurelay has: OpenTelemetry's for GenAI, and ours. docs/telemetry.md lists them for people."""

from __future__ import annotations

from zurelay import semconv
from zurelay.tally import Family, Kind

# The conventions' advice, and beyond it as far as an attempt may take.
_SECONDS = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
    163.84,
    327.68,
    655.36,
)
_FIRST = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    320.0,
)
_TOKENS = tuple(float(4**power) for power in range(14))
_OURS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)

_ATTEMPT = (
    semconv.OPERATION,
    semconv.PROVIDER,
    semconv.REQUEST_MODEL,
    semconv.SERVER_ADDRESS,
    semconv.SERVER_PORT,
)

TOKEN_USAGE = Family(
    name="gen_ai.client.token.usage",
    kind=Kind.HISTOGRAM,
    told="Number of input and output tokens used.",
    unit="{token}",
    labels=(*_ATTEMPT, semconv.TOKEN_TYPE),
    bounds=_TOKENS,
)
OPERATION_DURATION = Family(
    name="gen_ai.client.operation.duration",
    kind=Kind.HISTOGRAM,
    told="Duration of an attempt, failed ones too.",
    unit="s",
    labels=(*_ATTEMPT, semconv.ERROR_TYPE),
    bounds=_SECONDS,
)
TIME_TO_FIRST_CHUNK = Family(
    name="gen_ai.client.operation.time_to_first_chunk",
    kind=Kind.HISTOGRAM,
    told="Time from the start of a streamed attempt to its first token.",
    unit="s",
    labels=_ATTEMPT,
    bounds=_SECONDS,
)
TIME_PER_OUTPUT_CHUNK = Family(
    name="gen_ai.client.operation.time_per_output_chunk",
    kind=Kind.HISTOGRAM,
    told="Time between two chunks of a stream as they come.",
    unit="s",
    labels=_ATTEMPT,
    bounds=_SECONDS,
)
TIME_TO_FIRST_TOKEN = Family(
    name="gen_ai.server.time_to_first_token",
    kind=Kind.HISTOGRAM,
    told="Time from a caller's streamed request to the first token that it got.",
    unit="s",
    labels=(semconv.OPERATION, semconv.PROVIDER, semconv.REQUEST_MODEL),
    bounds=_FIRST,
)
REQUESTS = Family(
    name="zurelay.requests",
    kind=Kind.COUNTER,
    told="Requests that had a plan, by the model that answered and how they ended.",
    unit="{request}",
    labels=("model", "outcome"),
)
REFUSALS = Family(
    name="zurelay.refusals",
    kind=Kind.COUNTER,
    told="Requests that were refused before any attempt, by the error's code.",
    unit="{request}",
    labels=("code",),
)
REQUEST_DURATION = Family(
    name="zurelay.request.duration",
    kind=Kind.HISTOGRAM,
    told="Time from a request's head to its end.",
    unit="s",
    labels=("model", "stream"),
    bounds=_SECONDS,
)
SIDECAR_DURATION = Family(
    name="zurelay.sidecar.duration",
    kind=Kind.HISTOGRAM,
    told="Time that the sidecar took of a request, by phase: decide (receiving the body apart).",
    unit="s",
    labels=("phase",),
    bounds=_OURS,
)
DECISIONS = Family(
    name="zurelay.decisions",
    kind=Kind.COUNTER,
    told="Decisions, by the category that Auto found (none where a model was named) and the first model planned.",
    unit="{request}",
    labels=("category", "model"),
)
GIVEN_UP = Family(
    name="zurelay.attempts.given_up",
    kind=Kind.COUNTER,
    told="Attempts that failed, by route and reason.",
    unit="{attempt}",
    labels=("route", "reason"),
)
FALLBACKS = Family(
    name="zurelay.fallbacks",
    kind=Kind.COUNTER,
    told="Requests that took more than one attempt, by the model asked for and why the first was given up.",
    unit="{request}",
    labels=("asked", "reason"),
)
COST = Family(
    name="zurelay.cost_usd",
    kind=Kind.COUNTER,
    told="What callers paid, by model.",
    unit="USD",
    labels=("model",),
)
OWN_COST = Family(
    name="zurelay.own_cost_usd",
    kind=Kind.COUNTER,
    told="What failed and discarded attempts cost, which no caller pays, by model.",
    unit="USD",
    labels=("model",),
)
LIMITS_HIT = Family(
    name="zurelay.limits_hit",
    kind=Kind.COUNTER,
    told="Requests that a limit refused, or would have refused.",
    unit="{request}",
    labels=("scope", "limit", "shadow"),
)
LIMIT_USED = Family(
    name="zurelay.limit.used_ratio",
    kind=Kind.GAUGE,
    told="Share of a key's budget that is spent, for keys with a limit of money.",
    unit="1",
    labels=("key", "limit"),
)
POLICY_EFFECTS = Family(
    name="zurelay.policy_effects",
    kind=Kind.COUNTER,
    told="What policies had against requests, or would have had.",
    unit="{effect}",
    labels=("policy", "effect", "shadow"),
)
KEEPALIVES = Family(
    name="zurelay.keepalives",
    kind=Kind.COUNTER,
    told="Keep-alives sent into silent streams.",
    unit="{keepalive}",
)
EARLY_OPENS = Family(
    name="zurelay.early_opens",
    kind=Kind.COUNTER,
    told="Streams opened before their first token.",
    unit="{request}",
)
LOG_LINES_DROPPED = Family(
    name="zurelay.log_lines_dropped",
    kind=Kind.COUNTER,
    told="Log lines that nobody took.",
    unit="{line}",
)
TELEMETRY_DROPPED = Family(
    name="zurelay.telemetry_dropped",
    kind=Kind.COUNTER,
    told="Spans, metrics and log records that could not be sent.",
    unit="{item}",
    labels=("signal",),
)
WORKERS = Family(name="zurelay.workers", kind=Kind.GAUGE, told="Worker processes wanted.", unit="{process}")
WORKERS_ALIVE = Family(name="zurelay.workers_alive", kind=Kind.GAUGE, told="Workers that serve.", unit="{process}")
WORKER_RESTARTS = Family(
    name="zurelay.worker_restarts", kind=Kind.COUNTER, told="Workers that were replaced.", unit="{restart}"
)
CONFIG_GENERATION = Family(
    name="zurelay.config_generation", kind=Kind.GAUGE, told="Configurations put in force.", unit="{configuration}"
)
CONFIG_RELOADS = Family(
    name="zurelay.config_reloads",
    kind=Kind.COUNTER,
    told="Changes of the configuration, by what became of them.",
    unit="{reload}",
    labels=("result",),
)

FAMILIES = tuple(value for value in list(globals().values()) if isinstance(value, Family))
GAUGES = frozenset(family.name for family in FAMILIES if family.kind is Kind.GAUGE)
