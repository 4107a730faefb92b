"""The nouns: what a catalog, a key, a policy and the settings are. Frozen values, no behaviour beyond look-ups."""

from __future__ import annotations

import datetime as dt
import decimal
import enum

import msgspec


class Format(enum.Enum):
    """A provider's wire format."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Endpoint(enum.Enum):
    """What the client called; it decides the shape of answers and errors."""

    CHAT = "chat"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"


class Effort(enum.IntEnum):
    """The ladder of reasoning levels (SPEC 1); the distance of two levels is the difference of their values."""

    none = 0
    minimal = 1
    low = 2
    medium = 3
    high = 4
    xhigh = 5
    max = 6


class Input(enum.Enum):
    """A kind of content that a model may read."""

    TEXT = "text"
    IMAGE = "image"
    PDF = "pdf"
    AUDIO = "audio"
    VIDEO = "video"


class Feature(enum.Enum):
    """Something that a request may use and a model may lack."""

    TOOLS = "tools"
    JSON_SCHEMA = "json_schema"


class Http(enum.Enum):
    """The HTTP version spoken to a provider; AUTO negotiates it by ALPN."""

    HTTP1 = "http1"
    HTTP2 = "http2"
    AUTO = "auto"


class Require(enum.Enum):
    """Who may call."""

    KEY = "key"
    WORKLOAD = "workload"
    EITHER = "either"
    NONE = "none"


class IdentityMode(enum.Enum):
    """Where a workload's identity comes from (SPEC 12)."""

    NONE = "none"
    MTLS = "mtls"
    FORWARDED = "forwarded"


class OnFailure(enum.Enum):
    """What a request does while the store is away."""

    ALLOW = "allow"
    REFUSE = "refuse"


class Category(enum.Enum):
    """What Auto takes a request to be."""

    SIMPLE = "simple"
    STANDARD = "standard"
    COMPLEX = "complex"


class Params(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that some models refuse: renamed, or dropped (SPEC 3)."""

    rename: dict[str, str] = {}
    drop: tuple[str, ...] = ()


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """Where a secret is found: an environment variable or a file, exactly one. Never the secret itself."""

    env: str | None = None
    file: str | None = None


class Url(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's base URL, taken apart. `path` has no trailing slash; IPv6 hosts have no brackets."""

    scheme: str
    host: str
    port: int
    path: str = ""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Somewhere that serves models."""

    name: str
    base_url: Url
    format: Format
    api_key: Secret | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    auth_header: str | None = None
    ca: str | None = None
    params: Params = Params()
    http: Http = Http.AUTO


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's deployment of one model. `name` is unique in the catalog and names its clusters."""

    name: str
    provider: str
    model: str


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """The levels that a model accepts, in ladder order, and the one that it uses when none is asked."""

    levels: tuple[Effort, ...]
    default: Effort | None = None


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """USD per million tokens. A missing cache price is the input price (SPEC 11)."""

    input: decimal.Decimal
    output: decimal.Decimal
    cached_input: decimal.Decimal | None = None
    cache_write: decimal.Decimal | None = None


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a client may send, with its facts."""

    id: str
    routes: tuple[Route, ...]
    context_window: int
    max_output: int | None = None
    aliases: tuple[str, ...] = ()
    inputs: frozenset[Input] = frozenset({Input.TEXT})
    features: frozenset[Feature] = frozenset(Feature)
    reasoning: Reasoning | None = None
    price: Price | None = None
    fallbacks: tuple[str, ...] = ()
    params: Params = Params()
    messages: bool = False
    display_name: str | None = None
    created: int = 0


class Auto(msgspec.Struct, frozen=True, kw_only=True):
    """Auto's models by category, in the order they are tried, and the scores that part the categories."""

    simple: tuple[str, ...] = ()
    standard: tuple[str, ...] = ()
    complex: tuple[str, ...] = ()
    thresholds: tuple[float, float] = (0.35, 0.65)


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a server certificate."""

    cert: str
    key: str


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """An address to listen on."""

    port: int
    host: str = "127.0.0.1"
    tls: Tls | None = None


class Streaming(msgspec.Struct, frozen=True, kw_only=True):
    """Times of an open stream, in seconds (SPEC 8)."""

    open_after: float = 20.0
    keepalive: float = 15.0
    messages_keepalive: float = 10.0
    passthrough: bool = False


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Times of attempts and requests, in seconds (SPEC 5)."""

    first_token: float = 180.0
    first_token_high: float = 300.0
    whole: float = 240.0
    whole_high: float = 400.0
    total: float = 570.0
    idle: float = 300.0


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    """Who may call, and the file of their keys."""

    require: Require = Require.KEY
    keys: str | None = None
    allow_open: bool = False


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload proves who it is (SPEC 12)."""

    mode: IdentityMode = IdentityMode.NONE
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    trust_domain: str | None = None
    trusted: tuple[str, ...] = ()


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Where spend and limits are kept: a file, a Redis by its URL, or one whose URL is a secret."""

    sqlite: str | None = "zurelay.db"
    redis: str | None = None
    redis_secret: Secret | None = None
    on_failure: OnFailure = OnFailure.ALLOW


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a key or a policy; None is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    usd_per_day: decimal.Decimal | None = None
    usd_per_month: decimal.Decimal | None = None


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy applies to; each is a glob, None matches all."""

    namespace: str | None = None
    service_account: str | None = None
    key: str | None = None


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Globs to allow and deny. `allow` None allows all; deny wins."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for the mesh; all that match apply together (SPEC 12)."""

    name: str
    match: Match
    models: Names = Names()
    providers: Names = Names()
    effort_max: Effort | None = None
    inputs_deny: frozenset[Input] = frozenset()
    limits: UsageLimits = UsageLimits()
    smart_routing: bool | None = None
    shadow: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is held in memory, in bytes."""

    request_body: int = 64 << 20
    response_body: int = 64 << 20
    bodies_in_flight: int = 512 << 20


class Keep(enum.Enum):
    """A kind of request whose trace is kept though it wasn't sampled."""

    ERRORS = "errors"
    FALLBACKS = "fallbacks"


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """Where traces and metrics go. `otlp` and `sample` None: as OTEL_* variables say, else off, and all traces.

    `propagate` sends the trace's context to providers; `logs` sends the log lines too; `access_log` is Envoy's own.
    """

    otlp: str | None = None
    sample: float | None = None
    keep: frozenset[Keep] = frozenset()
    capture_content: bool = False
    propagate: bool = False
    logs: bool = False
    access_log: bool = False


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One API key's entry in keys.yaml. `digest` is the SHA-256 of the whole key, 32 bytes."""

    name: str
    digest: bytes
    models: tuple[str, ...] | None = None
    smart_routing: bool = True
    limits: UsageLimits = UsageLimits()
    expires: dt.datetime | None = None
    disabled: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the configuration file says. Replaced whole on reload."""

    listen: Listen
    status: Listen
    providers: dict[str, Provider]
    models: dict[str, Model]
    auto: Auto | None = None
    streaming: Streaming = Streaming()
    timeouts: Timeouts = Timeouts()
    auth: Auth = Auth()
    identity: Identity = Identity()
    store: Store = Store()
    workers: int | None = None
    policies: tuple[Policy, ...] = ()
    limits: Limits = Limits()
    telemetry: Telemetry = Telemetry()


AUTO_ID = "zurelay-auto"
AUTO_ALIAS = "auto"
