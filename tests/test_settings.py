import importlib.resources
from decimal import Decimal

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import settings
from zurelay.model import (
    Auth,
    Auto,
    Effort,
    Format,
    Input,
    Key,
    Listen,
    Model,
    Policy,
    Price,
    Provider,
    Reasoning,
    Require,
    Route,
    Secret,
    Settings,
    Store,
    Telemetry,
    Url,
    UsageLimits,
)
from zurelay.problems import Problem

FILES = {"keys.yaml", "/run/secrets/anthropic"}
ENVIRON = {"OPENAI_API_KEY": "secret-of-openai"}

EXAMPLE = """\
listen: {port: 8080, host: 127.0.0.1}          # tls: {cert, key} for server TLS
status: {port: 8081, host: 127.0.0.1}
providers:
  openai:    {base_url: "https://api.openai.com/v1", format: openai, api_key: {env: OPENAI_API_KEY}}
  anthropic: {base_url: "https://api.anthropic.com/v1", format: anthropic, api_key: {file: /run/secrets/anthropic}}
models:
  claude-opus-5-5:
    aliases: [opus]
    routes: [{provider: anthropic, model: claude-opus-5-5}]
    context_window: 1000000
    max_output: 128000
    inputs: [text, image, pdf]                 # of text, image, pdf, audio, video
    features: [tools, json_schema]             # left out: both
    reasoning: {levels: [low, medium, high, xhigh, max], default: high}   # left out: no levels
    price: {input: 3.5, cached_input: 0.35, cache_write: 4.375, output: 17.5}   # USD per 1M tokens
    fallbacks: [gpt-6-sol]                     # also: params {}, messages: true
auto: {simple: [deepseek-v4.1-flash], standard: [gpt-6-sol], complex: [claude-opus-5-5], thresholds: [0.35, 0.65]}
streaming: {open_after: 20s, keepalive: 15s, messages_keepalive: 10s, passthrough: false}
timeouts: {first_token: 180s, first_token_high: 300s, whole: 240s, whole_high: 400s, total: 570s, idle: 300s}
auth: {require: key, keys: keys.yaml}          # key | workload | either | none; none only on loopback
identity: {mode: none}                         # mtls (ca, cert, key, trust_domain) | forwarded
store: {sqlite: zurelay.db, on_failure: allow} # or {redis: "redis://..."}; on_failure: allow | refuse
workers: auto                                  # one per two cores, at least one
policies: []
limits: {request_body: 64MiB, response_body: 64MiB, bodies_in_flight: 512MiB}
telemetry: {otlp: "http://127.0.0.1:4317", sample: 1.0, capture_content: false}   # left out: off
"""
OTHER_MODELS = """\
  gpt-6-sol: {routes: [{provider: openai, model: gpt-6-sol}], context_window: 400000}
  deepseek-v4.1-flash: {routes: [{provider: openai, model: flash}], context_window: 64000}
auto:"""


def parse(text: str) -> Settings:
    return settings.parse(text, environ=ENVIRON, readable=FILES.__contains__)


def problems(text: str) -> list[str]:
    with pytest.raises(settings.SettingsError) as caught:
        parse(text)
    return [str(problem) for problem in caught.value.problems]


def outcome(text: str) -> Settings | tuple[Problem, ...]:
    try:
        return parse(text)
    except settings.SettingsError as error:
        return error.problems


def test_the_example_of_the_documentation_is_read_exactly() -> None:
    expected = Settings(
        listen=Listen(port=8080),
        status=Listen(port=8081),
        providers={
            "openai": Provider(
                name="openai",
                base_url=Url(scheme="https", host="api.openai.com", port=443, path="/v1"),
                format=Format.OPENAI,
                api_key=Secret(env="OPENAI_API_KEY"),
            ),
            "anthropic": Provider(
                name="anthropic",
                base_url=Url(scheme="https", host="api.anthropic.com", port=443, path="/v1"),
                format=Format.ANTHROPIC,
                api_key=Secret(file="/run/secrets/anthropic"),
            ),
        },
        models={
            "claude-opus-5-5": Model(
                id="claude-opus-5-5",
                aliases=("opus",),
                routes=(Route(name="claude-opus-5-5/anthropic", provider="anthropic", model="claude-opus-5-5"),),
                context_window=1_000_000,
                max_output=128_000,
                inputs=frozenset({Input.TEXT, Input.IMAGE, Input.PDF}),
                reasoning=Reasoning(
                    levels=(Effort.low, Effort.medium, Effort.high, Effort.xhigh, Effort.max), default=Effort.high
                ),
                price=Price(
                    input=Decimal("3.5"),
                    cached_input=Decimal("0.35"),
                    cache_write=Decimal("4.375"),
                    output=Decimal("17.5"),
                ),
                fallbacks=("gpt-6-sol",),
            ),
            "gpt-6-sol": Model(
                id="gpt-6-sol",
                routes=(Route(name="gpt-6-sol/openai", provider="openai", model="gpt-6-sol"),),
                context_window=400_000,
            ),
            "deepseek-v4.1-flash": Model(
                id="deepseek-v4.1-flash",
                routes=(Route(name="deepseek-v4.1-flash/openai", provider="openai", model="flash"),),
                context_window=64_000,
            ),
        },
        auto=Auto(simple=("deepseek-v4.1-flash",), standard=("gpt-6-sol",), complex=("claude-opus-5-5",)),
        auth=Auth(keys="keys.yaml"),
        telemetry=Telemetry(otlp="http://127.0.0.1:4317", sample=1.0),
    )

    assert expected == parse(EXAMPLE.replace("auto:", OTHER_MODELS, 1))


def test_the_example_alone_names_models_that_are_not_there() -> None:
    assert problems(EXAMPLE) == [
        "line 16: models.claude-opus-5-5.fallbacks[0]: no model is called gpt-6-sol",
        "line 17: auto.simple[0]: no model is called deepseek-v4.1-flash",
        "line 17: auto.standard[0]: no model is called gpt-6-sol",
    ]


def test_the_demo_catalog_has_no_problem_and_needs_no_secret_and_no_file() -> None:
    text = importlib.resources.files("zurelay").joinpath("data/demo.yaml").read_text()

    demo = settings.parse(text, environ={}, readable=lambda _: False)

    assert demo.auth.require is Require.NONE
    assert {"claude-opus-5-5", "claude-sonnet-5-5", "gpt-6-sol", "gpt-6.1-sol", "deepseek-v4.1-flash"} < set(
        demo.models
    )
    assert demo.auto
    assert min(map(len, (demo.auto.simple, demo.auto.standard, demo.auto.complex))) >= 2
    assert {"simulated", "simulated-claude"} == {model.routes[0].provider for model in demo.models.values()}


def test_the_demo_prices_are_in_the_range_of_the_product_pages() -> None:
    text = importlib.resources.files("zurelay").joinpath("data/demo.yaml").read_text()
    prices = [model.price for model in settings.parse(text, environ={}, readable=bool).models.values() if model.price]

    assert (Decimal("0.025"), Decimal("3.50")) == (min(p.input for p in prices), max(p.input for p in prices))
    assert (Decimal("0.12"), Decimal("17.50")) == (min(p.output for p in prices), max(p.output for p in prices))
    assert "examples" in text


LEAST = {
    "providers": "{p: {base_url: http://127.0.0.1:1/v1, format: openai}}",
    "models": "{m: {routes: [{provider: p, model: m}], context_window: 1000}}",
    "auth": "{require: none}",
}


def config(**sections: str) -> str:
    """A small configuration that is right, one section a line, some of them said otherwise."""
    return "".join(f"{name}: {text}\n" for name, text in {**LEAST, **sections}.items())


def test_what_is_left_out_has_its_default() -> None:
    found = parse(config())

    assert (Listen(port=8080), Listen(port=8081), Store(), None) == (
        found.listen,
        found.status,
        found.store,
        found.auto,
    )
    assert (None, (), Telemetry()) == (found.workers, found.policies, found.telemetry)


def test_all_sections_are_taken_up() -> None:
    found = parse(
        config(
            listen="{port: 1, host: 0.0.0.0}",
            status="{port: 2}",
            auth="{keys: keys.yaml}",
            auto="{simple: [m]}",
            streaming="{open_after: 1s}",
            timeouts="{total: 1s}",
            store="{redis: 'redis://r'}",
            workers="3",
            policies="[{name: a, match: {}}]",
            limits="{request_body: 1MiB}",
            telemetry="{sample: 0}",
        )
    )

    assert (
        found.listen.port,
        found.status.port,
        found.auth.keys,
        found.auto and found.auto.simple,
    ) == (1, 2, "keys.yaml", ("m",))
    assert (
        found.streaming.open_after,
        found.timeouts.total,
        found.store.redis,
        found.workers,
    ) == (1.0, 1.0, "redis://r", 3)
    assert (found.limits.request_body, found.telemetry.sample) == (1 << 20, 0.0)
    assert [policy.name for policy in found.policies] == ["a"]


NO_KEYS = (
    "auth.keys: missing; require: key needs the file of the keys, such as keys.yaml (or say require: none, on loopback)"
)
NOT_COUNTED = "missing; a policy limits USD, and what isn't priced can't be counted (0 is a price too)"
KEYS = (
    "the keys here are listen, status, providers, models, auto, streaming, timeouts, auth, identity, store, workers,"
    " policies, limits, telemetry"
)
WRONG = {
    "nothing": ("", ["line 1: the file is empty; it needs providers, models and auth"]),
    "a comment": ("# soon\n", ["line 1: the file is empty; it needs providers, models and auth"]),
    "a list": ("[]", ["line 1: expected a mapping, not a list"]),
    "a word": ("zurelay", ["line 1: expected a mapping, not text"]),
    "binary": ("\x00\x01\x02", ["line 1: not valid YAML: control characters are not allowed"]),
    "no catalog": (
        "{}",
        [
            "line 1: providers: no providers; at least one is needed",
            "line 1: models: no models; at least one is needed",
            f"line 1: {NO_KEYS}",
        ],
    ),
    "an empty catalog": (
        config(providers="{}", models=""),
        [
            "line 1: providers: no providers; at least one is needed",
            "line 2: models: no models; at least one is needed",
        ],
    ),
    "a catalog that is a list": (
        config(providers="[]", models="[]"),
        [
            "line 1: providers: expected a mapping, not a list",
            "line 2: models: expected a mapping, not a list",
        ],
    ),
    "an unknown section": (config(modles="{}"), ["line 4: modles: unknown key; did you mean models?"]),
    "a section of nothing like": (config(x="{}"), [f"line 4: x: unknown key; {KEYS}"]),
    "a section twice": (config() + "auth: {}\n", ["line 4: auth: said twice; first at line 3"]),
    "a model twice": (
        config(models="\n  m: {routes: [{provider: p, model: m}], context_window: 1}\n  m: {}"),
        ["line 4: models.m: said twice; first at line 3"],
    ),
    "a port twice": (
        config(listen="{port: 8081}"),
        ["line 1: status.port: 8081 is the public listener's port too; choose another"],
    ),
    "a port twice, both said": (
        config(listen="{port: 5}", status="{port: 5}"),
        ["line 5: status.port: 5 is the public listener's port too; choose another"],
    ),
    "open to all": (
        config(listen="{host: 0.0.0.0}"),
        [
            (
                "line 3: auth.require: none lets anyone who reaches 0.0.0.0 use your accounts;"
                " listen on 127.0.0.1, require keys, or say allow_open: true"
            )
        ],
    ),
    "no price while a policy limits USD": (
        config(policies="[{name: a, match: {}, limits: {usd_per_day: 5}}]"),
        [f"line 2: models.m.price: {NOT_COUNTED}"],
    ),
    "no price and a broken policy": (
        config(policies="[{match: {}, limits: {usd_per_month: x}}]"),
        [
            f"line 2: models.m.price: {NOT_COUNTED}",
            "line 4: policies[0].limits.usd_per_month: expected a number, not text",
            "line 4: policies[0].name: missing; it has no default",
        ],
    ),
    "a broken provider isn't taken for an unknown one": (
        config(providers="{p: {base_url: nowhere, format: openai}}"),
        ["line 1: providers.p.base_url: expected a URL that begins with https:// or http://"],
    ),
    "a broken section isn't judged again": (
        config(auth="{require: kez}"),
        ["line 3: auth.require: expected one of key, workload, either or none, not kez; did you mean key?"],
    ),
    "many at once": (
        """\
listen: {prot: 8080, port: 0}
providers:
  p: {base_url: "http://127.0.0.1:9/v1?a=b", format: opnai, api_key: {env: NOPE}}
models:
  m:
    routes: [{provider: q, model: m}]
    context_window: -5
    price: {inptu: 1, output: -2}
  m:
    context_window: 1
auto: {simple: [n]}
auth: {require: key}
""",
        [
            "line 1: listen.prot: unknown key; did you mean port?",
            "line 1: listen.port: expected a whole number from 1 to 65535",
            "line 3: providers.p.base_url: holds a ?; a provider's query goes into query: {}",
            "line 3: providers.p.format: expected one of openai or anthropic, not opnai; did you mean openai?",
            "line 3: providers.p.api_key.env: the environment variable NOPE is not set",
            "line 6: models.m.routes[0].provider: no provider is called q",
            "line 7: models.m.context_window: expected a whole number from 1 to 1000000000",
            "line 8: models.m.price.inptu: unknown key; did you mean input?",
            "line 8: models.m.price.output: expected a number from 0 to 1000000",
            "line 8: models.m.price.input: missing; it has no default",
            "line 9: models.m: said twice; first at line 5",
            "line 11: auto.simple[0]: no model is called n",
            f"line 12: {NO_KEYS}",
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_every_problem_is_told_at_once_in_the_order_of_lines(text: str, expected: list[str]) -> None:
    assert expected == problems(text)


def test_anchors_and_merge_keys_share_what_models_have_in_common() -> None:
    text = config(
        models="\n  a: &a {routes: [{provider: p, model: a}], context_window: 1000, max_output: 10}\n"
        "  b: {<<: *a, context_window: 2000}"
    )

    found = parse(text).models["b"]

    assert (found.context_window, found.max_output, found.routes[0].name) == (2000, 10, "b/p")


def test_no_problem_shows_a_secret() -> None:
    text = config(
        providers="{p: {base_url: 'http://u:hunter2@a.com', format: openai, api_key: hunter2,"
        ' headers: {a: "hunter2\\n"}}}',
        store="{redis: 'hunter2'}",
    )

    found = problems(text)

    assert len(found) == 4
    assert not [problem for problem in found if "hunter2" in problem]


@hypothesis.settings(deadline=None)
@given(st.text() | st.text("abc:[]{}-, \n'\"&*x<"))
def test_any_text_is_settings_or_problems(text: str) -> None:
    assert outcome(text)


LEAVES = st.sampled_from(
    ["", "auto", "5", "-1", "true", "none", "20s", "[]", "{}", "[[]]", "{a: b}", "'x'", "[m, m]", "*"]
)
SECTIONS = ["listen", "status", "providers", "models", "auto", "streaming", "timeouts", "auth", "identity", "store"]
SECTIONS += ["workers", "policies", "limits", "telemetry"]


@hypothesis.settings(deadline=None)
@given(st.dictionaries(st.sampled_from(SECTIONS), LEAVES, max_size=5))
def test_any_value_in_any_section_is_settings_or_problems(sections: dict[str, str]) -> None:
    assert outcome(config(**sections))


def test_a_key_that_limits_usd_needs_prices_too() -> None:
    found = parse(config())
    free = Key(name="free", digest=b"")
    limited = Key(name="limited", digest=b"", limits=UsageLimits(usd_per_month=Decimal(5)))
    message = "missing; the key limited limits USD, and what isn't priced can't be counted (0 is a price too)"

    assert settings.unpriced(found, [free]) == ()
    assert settings.unpriced(found, [free, limited]) == (Problem(0, "models.m.price", message),)


def test_models_with_prices_may_be_limited() -> None:
    models = "{m: {routes: [{provider: p, model: m}], context_window: 1000, price: {input: 0, output: 0}}}"
    found = parse(config(models=models, policies="[{name: a, match: {}, limits: {usd_per_day: 5}}]"))
    limited = Key(name="limited", digest=b"", limits=UsageLimits(usd_per_day=Decimal(5)))

    assert isinstance(found.policies[0], Policy)
    assert settings.unpriced(found, [limited]) == ()
