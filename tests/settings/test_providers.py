from typing import Any

import pytest

from zurelay.model import Format, Http, Params, Provider, Secret, Url
from zurelay.settings.facts import Facts
from zurelay.settings.providers import provider

URL = Url(scheme="https", host="a.com", port=443)


def read(read_one: Any, facts: Facts, text: str) -> Any:
    return read_one(lambda at: provider("p", at, facts), text)


def test_a_provider_has_all_that_the_file_says(read_one: Any, facts: Facts) -> None:
    text = """
    base_url: https://a.com/v1
    format: anthropic
    api_key: {env: KEY}
    headers: {X-Team: "7", anthropic-version: 2023-06-01}
    query: {api-version: 2024-10-21, deep: a b}
    auth_header: Api-Key
    ca: there.pem
    params: {rename: {max_tokens: max_completion_tokens}, drop: [temperature, stop]}
    http: http2
    """

    expected = Provider(
        name="p",
        base_url=Url(scheme="https", host="a.com", port=443, path="/v1"),
        format=Format.ANTHROPIC,
        api_key=Secret(env="KEY"),
        headers={"x-team": "7", "anthropic-version": "2023-06-01"},
        query={"api-version": "2024-10-21", "deep": "a b"},
        auth_header="api-key",
        ca="there.pem",
        params=Params(rename={"max_tokens": "max_completion_tokens"}, drop=("temperature", "stop")),
        http=Http.HTTP2,
    )
    assert (expected, []) == read(read_one, facts, text)


def test_a_provider_needs_its_url_and_format_only(read_one: Any, facts: Facts) -> None:
    assert (Provider(name="p", base_url=URL, format=Format.OPENAI), []) == read(
        read_one, facts, "{base_url: https://a.com, format: openai}"
    )


def test_a_key_may_be_in_a_file(read_one: Any, facts: Facts) -> None:
    found, problems = read(read_one, facts, "{base_url: https://a.com, format: openai, api_key: {file: there}}")

    assert problems == []
    assert Secret(file="there") == found.api_key


OURS = "is set by zurelay itself; leave it out"
WRONG = {
    "all is missing": ("{}", ["base_url: missing; it has no default", "format: missing; it has no default"]),
    "no such format": (
        "format: opnai",
        ["format: expected one of openai or anthropic, not opnai; did you mean openai?"],
    ),
    "no such version": (
        "http: http3",
        ["http: expected one of http1, http2 or auto, not http3; did you mean http1 or http2?"],
    ),
    "a key in the file": (
        "api_key: sk-secret",
        ["api_key: expected {env: NAME} or {file: PATH}, not text; keys don't belong in this file"],
    ),
    "a key in braces": (
        "api_key: {sk-secret}",
        ["api_key: expected {env: NAME} or {file: PATH}; what else it says isn't shown, it could be a secret"],
    ),
    "a slip": (
        "api_key: {evn: KEY}",
        ["api_key.evn: unknown key; did you mean env?", "api_key: expected one of env and file"],
    ),
    "two secrets": ("api_key: {env: KEY, file: there}", ["api_key: expected one of env and file"]),
    "no secret": ("api_key: {}", ["api_key: expected one of env and file"]),
    "an absent variable": ("api_key: {env: NOPE}", ["api_key.env: the environment variable NOPE is not set"]),
    "an absent file": ("api_key: {file: gone}", ["api_key.file: the file gone isn't there or can't be read"]),
    "an absent CA": ("ca: gone", ["ca: the file gone isn't there or can't be read"]),
    "a CA without TLS": ("{base_url: http://a.com, ca: there}", ["ca: is for https, but base_url is http"]),
    "a header for no key": (
        "auth_header: api-key",
        ["auth_header: names the header of a credential, but api_key is missing"],
    ),
    "a header that is none": ("headers: {'a b': c}", ["headers.a b: isn't a legal header name"]),
    "a header that is ours": (
        "headers: {Host: a, content-length: '1', X-Envoy-Retry-On: a, x-zurelay-model: b, te: c}",
        [f"headers.{name}: {OURS}" for name in ("Host", "content-length", "X-Envoy-Retry-On", "x-zurelay-model", "te")],
    ),
    "a header said twice": (
        "headers: {a-b: c, A-B: d}",
        ["headers.A-B: said twice; header names are the same in upper and lower case"],
    ),
    "a value of two lines": (
        'headers: {a: "b\\r\\nc: d"}',
        ["headers.a: holds a character that can't be printed; write it on one line, without tabs"],
    ),
    "a value that isn't ASCII": ("headers: {a: é}", ["headers.a: expected 1 to 4096 printable ASCII characters"]),
    "a value with a space around": ("headers: {a: ' b'}", ["headers.a: expected 1 to 4096 printable ASCII characters"]),
    "a number in a header": ("headers: {a: 1}", ["headers.a: expected text, not a number; put it in quotes"]),
    "a number in the query": ("query: {a: 1}", ["query.a: expected text, not a number; put it in quotes"]),
    "an auth header that is ours": ("{auth_header: host, api_key: {env: KEY}}", [f"auth_header: {OURS}"]),
    "a field that must stay": (
        "params: {drop: [model], rename: {stream: x, a: messages}}",
        [
            "params.drop[0]: model can't be renamed or dropped; no request works without it",
            "params.rename.stream: stream can't be renamed or dropped; no request works without it",
            "params.rename.a: messages can't be renamed or dropped; no request works without it",
        ],
    ),
}


@pytest.mark.parametrize(("text", "problems"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_provider_is_a_problem(read_one: Any, facts: Facts, text: str, problems: list[str]) -> None:
    _, found = read(read_one, facts, text)

    missing = {"line 1: base_url: missing; it has no default", "line 1: format: missing; it has no default"}
    expected = [f"line 1: {problem}" for problem in problems]
    assert expected == [problem for problem in found if problem not in missing or problem in expected]


@pytest.mark.parametrize(
    ("format", "auth_header", "header"),
    [("openai", "", "authorization"), ("anthropic", "", "x-api-key"), ("openai", "api-key", "api-key")],
)
def test_a_header_may_not_replace_the_credential(
    read_one: Any, facts: Facts, format: str, auth_header: str, header: str
) -> None:
    auth = f"auth_header: {auth_header}, " if auth_header else ""
    text = f"{{base_url: https://a.com, format: {format}, api_key: {{env: KEY}}, {auth}headers: {{{header}: secret}}}}"

    _, problems = read(read_one, facts, text)

    assert [f"line 1: headers: says {header}, which carries the credential; leave it or api_key out"] == problems
