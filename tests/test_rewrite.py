"""A client's body, made a provider's: what changes, and that nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import attempt
from zurelay import rewrite
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document

RENAME = {"max_tokens": "max_completion_tokens"}


def common(raw: bytes, *, stream: bool) -> bytes:
    return rewrite.common(Document.parse(raw), ask_usage=stream)


def made(raw: bytes, **facts: Any) -> bytes:
    return rewrite.for_attempt(Document.parse(raw), attempt(upstream="up", **facts))


COMMON = {
    "nothing of ours": (b'{"model":"m", "x": 0.1000 }', False, b'{"model":"m", "x": 0.1000 }'),
    "models": (b'{"model":"m", "models": ["a"], "x":1}', False, b'{"model":"m", "x":1}'),
    "models of null": (b'{"models":null,"x":1}', False, b'{"x":1}'),
    "models, escaped": (b'{"\\u006dodels":["a"],"x":1}', False, b'{"x":1}'),
    "models alone": (b'{"models":[]}', False, b"{}"),
    "models within another field stay": (b'{"x":{"models":[1]}}', False, b'{"x":{"models":[1]}}'),
    "a stream asks for usage": (b'{"x":1}', True, b'{"x":1,"stream_options":{"include_usage":true}}'),
    "a stream's options of null": (
        b'{"stream_options":null,"x":1}',
        True,
        b'{"stream_options":{"include_usage":true},"x":1}',
    ),
    "a stream's options keep the rest": (
        b'{"stream_options":{ "include_obfuscation": false },"x":1}',
        True,
        b'{"stream_options":{ "include_obfuscation": false,"include_usage":true },"x":1}',
    ),
    "a stream that didn't want usage": (
        b'{"stream_options":{"include_usage": false}}',
        True,
        b'{"stream_options":{"include_usage": true}}',
    ),
    "a stream that wanted usage": (
        b'{"stream_options": {"include_usage" : true} }',
        True,
        b'{"stream_options": {"include_usage" : true} }',
    ),
    "options without a stream": (b'{"stream_options":{}}', False, b'{"stream_options":{}}'),
}


@pytest.mark.parametrize(("raw", "stream", "expected"), [pytest.param(*row, id=name) for name, row in COMMON.items()])
def test_what_all_attempts_start_from(raw: bytes, expected: bytes, *, stream: bool) -> None:
    assert expected == common(raw, stream=stream)


@pytest.mark.parametrize("options", [b"[]", b'"x"', b"true", b"1", b"[{}]"])
def test_stream_options_that_are_no_object_are_400(options: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        common(b'{"stream_options":' + options + b"}", stream=True)
    assert (400, "stream_options") == (caught.value.status, caught.value.param)


ATTEMPTS: dict[str, tuple[bytes, dict[str, Any], bytes]] = {
    "the model's name": (b'{"model": "first","x":1}', {}, b'{"model": "up","x":1}'),
    "an escaped key": (b'{"\\u006dodel":"first"}', {}, b'{"\\u006dodel":"up"}'),
    "an effort": (
        b'{"model":"m","reasoning_effort":"max"}',
        {"effort": "high"},
        b'{"model":"up","reasoning_effort":"high"}',
    ),
    "an effort that wasn't asked": (b'{"model":"m"}', {"effort": "low"}, b'{"model":"up","reasoning_effort":"low"}'),
    "an effort for a model without levels": (b'{"model":"m","reasoning_effort":"max"}', {}, b'{"model":"up"}'),
    "an effort of null": (b'{"model":"m","reasoning_effort":null}', {}, b'{"model":"up"}'),
    "no effort": (b'{"model":"m","x":1}', {}, b'{"model":"up","x":1}'),
    "a rename": (b'{"model":"m","max_tokens":5}', {"rename": RENAME}, b'{"model":"up","max_completion_tokens":5}'),
    "a rename, the key escaped": (
        b'{"model":"m","max_\\u0074okens":5}',
        {"rename": RENAME},
        b'{"model":"up","max_completion_tokens":5}',
    ),
    "a rename of what isn't there": (b'{"model":"m","x":1}', {"rename": RENAME}, b'{"model":"up","x":1}'),
    "a rename, both sent: the new name's value": (
        b'{"model":"m","max_tokens":5,"max_completion_tokens":7}',
        {"rename": RENAME},
        b'{"model":"up","max_completion_tokens":7}',
    ),
    "a rename, the new name null": (
        b'{"model":"m","max_tokens":5,"max_completion_tokens":null}',
        {"rename": RENAME},
        b'{"model":"up","max_completion_tokens":5}',
    ),
    "a rename, the old name null": (
        b'{"model":"m","max_tokens":null,"max_completion_tokens":7}',
        {"rename": RENAME},
        b'{"model":"up","max_completion_tokens":7}',
    ),
    "a drop": (b'{"model":"m", "stop":["x"], "y":1}', {"drop": ("stop",)}, b'{"model":"up", "y":1}'),
    "a drop of null": (b'{"model":"m","stop":null}', {"drop": ("stop",)}, b'{"model":"up"}'),
    "a drop of what isn't there": (b'{"model":"m"}', {"drop": ("stop",)}, b'{"model":"up"}'),
    "a drop, the key escaped": (b'{"model":"m","st\\u006fp":1}', {"drop": ("stop",)}, b'{"model":"up"}'),
    "a drop of a field that stands twice": (b'{"model":"m","stop":1,"stop":2}', {"drop": ("stop",)}, b'{"model":"up"}'),
    "a drop within another field stays": (
        b'{"model":"m","x":{"stop":1}}',
        {"drop": ("stop",)},
        b'{"model":"up","x":{"stop":1}}',
    ),
    "a drop of the effort": (
        b'{"model":"m","reasoning_effort":"low"}',
        {"effort": "low", "drop": ("reasoning_effort",)},
        b'{"model":"up"}',
    ),
    "a rename and a drop of one field": (
        b'{"model":"m","max_tokens":5}',
        {"rename": RENAME, "drop": ("max_tokens",)},
        b'{"model":"up","max_completion_tokens":5}',
    ),
    "a rename of the effort": (
        b'{"model":"m","reasoning_effort":"max"}',
        {"effort": "high", "rename": {"reasoning_effort": "level"}},
        b'{"model":"up","level":"high"}',
    ),
    "a rename of the effort, both sent": (
        b'{"model":"m","reasoning_effort":"max","level":"mine"}',
        {"effort": "high", "rename": {"reasoning_effort": "level"}},
        b'{"model":"up","level":"mine"}',
    ),
    "digits stay": (
        b'{"model":"m","a":1e400,"b":0.1000,"c":12345678901234567890,"d":-0}',
        {},
        b'{"model":"up","a":1e400,"b":0.1000,"c":12345678901234567890,"d":-0}',
    ),
    "white space, order and escapes stay": (
        b' { "b" : "\\u00e9\\/" ,\r\n"model":"m" , "a":[ ] } ',
        {},
        b' { "b" : "\\u00e9\\/" ,\r\n"model":"up" , "a":[ ] } ',
    ),
}


@pytest.mark.parametrize(("raw", "facts", "expected"), [pytest.param(*row, id=name) for name, row in ATTEMPTS.items()])
def test_what_an_attempt_changes(raw: bytes, facts: dict[str, Any], expected: bytes) -> None:
    assert expected == made(raw, **facts)


LOSSLESS = {
    "nothing to change": (b'{"model":"m","stop":1}', {}, True),
    "a drop of what isn't there": (b'{"model":"m"}', {"drop": ("stop",)}, True),
    "a drop": (b'{"model":"m","stop":1}', {"drop": ("stop",)}, False),
    "a rename": (b'{"model":"m","max_tokens":1}', {"rename": RENAME}, False),
    "an effort": (b'{"model":"m","reasoning_effort":"max"}', {"effort": "low"}, True),
    "an effort left out": (b'{"model":"m","reasoning_effort":"max"}', {}, True),
}


@pytest.mark.parametrize(("raw", "facts", "expected"), [pytest.param(*row, id=name) for name, row in LOSSLESS.items()])
def test_a_body_made_ready_may_serve_later_attempts(raw: bytes, facts: dict[str, Any], *, expected: bool) -> None:
    assert expected is rewrite.is_lossless(Document.parse(raw), attempt(**facts))


FIELDS = st.dictionaries(
    st.sampled_from(["model", "max_tokens", "max_completion_tokens", "stop", "reasoning_effort", "x", "messages"]),
    st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2),
)
FACTS = st.fixed_dictionaries(
    {
        "effort": st.none() | st.sampled_from(["low", "high"]),
        "rename": st.sampled_from([{}, RENAME]),
        "drop": st.sampled_from([(), ("stop",), ("stop", "x")]),
        "upstream": st.sampled_from(["one", "two"]),
    }
)


@given(FIELDS, FACTS, FACTS)
def test_after_a_lossless_attempt_the_next_makes_the_same_of_either_body(
    fields: dict[str, Any], first: dict[str, Any], then: dict[str, Any]
) -> None:
    sent = Document.parse(json.dumps(fields).encode())
    one, two = attempt(**first), attempt(**then)
    if rewrite.is_lossless(sent, one):
        direct = json.loads(rewrite.for_attempt(sent, two))
        through = json.loads(rewrite.for_attempt(Document.parse(rewrite.for_attempt(sent, one)), two))
        assert direct == through


@given(FIELDS, FACTS)
def test_only_the_fields_concerned_change(fields: dict[str, Any], facts: dict[str, Any]) -> None:
    made = json.loads(rewrite.for_attempt(Document.parse(json.dumps(fields).encode()), attempt(**facts)))
    concerned = {"model", "reasoning_effort", *facts["drop"], *facts["rename"], *facts["rename"].values()}
    untouched = {name: value for name, value in fields.items() if name not in concerned}
    assert untouched == {name: value for name, value in made.items() if name not in concerned}
    assert facts["upstream"] == made["model"]
    assert facts["effort"] == made.get("reasoning_effort")


def test_a_level_that_a_policy_asks_for_is_not_sent_to_a_route_that_refuses_the_field() -> None:
    dropped = attempt(upstream="up", effort="low", drop=("reasoning_effort",))
    assert b'{"model":"up"}' == rewrite.for_attempt(Document.parse(b'{"model":"m"}'), dropped)
