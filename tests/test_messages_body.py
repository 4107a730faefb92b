"""A client's messages body for a provider of the same format: the model, the effort, what the route refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import attempt
from zurelay import messages_body
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document
from zurelay.model import Effort, Format
from zurelay.plan import Attempt


def at(effort: str | None = None, **facts: Any) -> Attempt:
    return attempt("first/one", **{"format": Format.ANTHROPIC, "upstream": "up", "effort": effort, **facts})


def made(body: bytes, one: Attempt) -> bytes:
    return messages_body.for_attempt(Document.parse(body), one)


def lossless(body: bytes, one: Attempt) -> bool:
    return messages_body.is_lossless(Document.parse(body), one)


OFF = b'"thinking":{"type":"disabled"}'
# The body behind its model as the client sent it, the level that runs, and what the provider gets; whether a later
# attempt can still make its own from that.
LEVELS: dict[str, tuple[bytes, str | None, bytes, bool]] = {
    "nothing asked": (b'"max_tokens":5', None, b'"max_tokens":5', True),
    "a level that the model has": (
        b'"output_config":{"effort":"low"}',
        "low",
        b'"output_config":{"effort":"low"}',
        True,
    ),
    "a level that is clamped": (
        b'"output_config": {"effort" : "max", "format":{"a":1.0}}',
        "high",
        b'"output_config": {"effort" : "high", "format":{"a":1.0}}',
        True,
    ),
    "a level for a model without levels": (b'"output_config":{"effort":"low"},"x":1', None, b'"x":1', True),
    "with a format beside it": (
        b'"output_config":{"effort":"low","format":{}}',
        None,
        b'"output_config":{"format":{}}',
        True,
    ),
    "an escaped key": (b'"output_config":{"\\u0065ffort":"low"},"x":1', None, b'"x":1', True),
    "a config without effort": (b'"output_config":{"format":{}}', None, b'"output_config":{"format":{}}', True),
    "an empty config": (b'"output_config":{}', None, b'"output_config":{}', True),
    "a config of null": (b'"output_config":null', None, b'"output_config":null', True),
    "none by word": (b'"output_config":{"effort":"none"},"x":1', "none", b'"x":1,' + OFF, False),
    "none by thinking": (OFF + b',"x":1', "none", OFF + b',"x":1', True),
    "none where thinking was on": (
        b'"thinking":{"type":"adaptive"},"output_config":{"effort":"none","format":{}}',
        "none",
        OFF + b',"output_config":{"format":{}}',
        False,
    ),
    "off, on a model that always reasons": (OFF + b',"x":1', "low", b'"x":1,"output_config":{"effort":"low"}', False),
    "off in other letters": (
        b'"thinking":{"type":"dis\\u0061bled"},"x":1',
        "low",
        b'"x":1,"output_config":{"effort":"low"}',
        False,
    ),
    "off, on a model without levels": (OFF, None, OFF, True),
    "off beside an effort of the client's own": (
        OFF + b',"output_config":{"effort":"max"}',
        "none",
        OFF + b',"output_config":{"effort":"max"}',
        True,
    ),
    "adaptive stays": (b'"thinking": {"type":"adaptive"}', None, b'"thinking": {"type":"adaptive"}', True),
    "adaptive with a level": (
        b'"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}',
        "high",
        b'"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}',
        True,
    ),
    "a budget stays": (
        b'"thinking":{"type":"enabled","budget_tokens":1024}',
        None,
        b'"thinking":{"type":"enabled","budget_tokens":1024}',
        True,
    ),
    "a budget beside a level": (
        b'"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"max"}',
        "high",
        b'"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"high"}',
        True,
    ),
}


@pytest.mark.parametrize(("sent", "level", "expected", "keeps"), LEVELS.values(), ids=LEVELS)
def test_the_level_that_runs_is_the_only_change_beside_the_model(
    sent: bytes, level: str | None, expected: bytes, keeps: bool
) -> None:
    body = b'{ "model":"first", %b }'
    assert body.replace(b"first", b"up") % expected == made(body % sent, at(level))
    assert keeps is lossless(body % sent, at(level))


def test_a_config_that_is_no_object_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as caught:
        made(b'{"model":"first","output_config":7,' + OFF + b"}", at("low"))
    assert caught.value.param == "output_config"


PARAMS: dict[str, tuple[dict[str, Any], bytes, bytes, bool]] = {
    "a field that is dropped": ({"drop": ("top_k",)}, b'"top_k":1,"x":1', b'"x":1', False),
    "a field that is not there": ({"drop": ("top_k",)}, b'"x":1', b'"x":1', True),
    "a field that is renamed": ({"rename": {"top_k": "k"}}, b'"top_k":1', b'"k":1', False),
    "thinking that would be turned off, where it is dropped": (
        {"drop": ("thinking",), "effort": "none"},
        b'"x":1',
        b'"x":1',
        True,
    ),
    "a config that is dropped": (
        {"drop": ("output_config",)},
        b'"output_config":{"effort":"low"},"x":1',
        b'"x":1',
        False,
    ),
}


@pytest.mark.parametrize(("facts", "sent", "expected", "keeps"), PARAMS.values(), ids=PARAMS)
def test_what_the_route_refuses(facts: dict[str, Any], sent: bytes, expected: bytes, keeps: bool) -> None:
    body = b'{"model":"first",%b}'
    assert body.replace(b"first", b"up") % expected == made(body % sent, at(**facts))
    assert keeps is lossless(body % sent, at(**facts))


UNSIGNED = {"type": "thinking", "thinking": "hm", "signature": "zurelay:d1"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def talk(*blocks: dict[str, Any]) -> bytes:
    turn = {"role": "assistant", "content": [*blocks, {"type": "text", "text": "zurelay: a name"}]}
    return json.dumps({"model": "first", "messages": [{"role": "user", "content": "hi"}, turn]}).encode()


def test_reasoning_that_no_provider_signed_goes_and_is_kept_for_its_own_model() -> None:
    kept = json.loads(made(talk(UNSIGNED, SIGNED), at()))["messages"][1]["content"]
    assert kept == [SIGNED, {"type": "text", "text": "zurelay: a name"}]
    assert not lossless(talk(UNSIGNED), at())
    assert lossless(talk(SIGNED), at())


EFFORTS = st.none() | st.sampled_from([level.name for level in Effort])
CONFIGS = st.fixed_dictionaries({}, optional={"effort": EFFORTS, "format": st.just({"a": 1.0})})
THINKING = st.sampled_from(
    [None, {"type": "disabled"}, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}]
)
BODIES = st.fixed_dictionaries(
    {"model": st.just("first"), "messages": st.just([])},
    optional={"output_config": st.none() | CONFIGS, "thinking": THINKING, "top_k": st.just(1), "x": st.just([1.0])},
).map(lambda value: json.dumps(value).encode())
ATTEMPTS = st.builds(
    lambda level, drop, rename, up: at(level, drop=drop, rename=rename, upstream=up),
    EFFORTS,
    st.sampled_from([(), ("top_k",), ("thinking",)]),
    st.sampled_from([{}, {"top_k": "k"}]),
    st.sampled_from(["up", "other"]),
)


def said(body: bytes) -> dict[str, Any]:
    """What a body says: null and an empty config count as left out."""
    return {name: value for name, value in json.loads(body).items() if value not in (None, {})}


@given(BODIES, ATTEMPTS, ATTEMPTS)
def test_what_is_lossless_lets_a_later_attempt_make_its_own_body(body: bytes, one: Attempt, two: Attempt) -> None:
    if lossless(body, one):
        assert said(made(body, two)) == said(made(made(body, one), two))


@given(BODIES, ATTEMPTS)
def test_making_a_body_twice_changes_nothing_more(body: bytes, one: Attempt) -> None:
    once = made(body, one)
    assert once == made(once, one)


@given(BODIES, EFFORTS)
def test_the_body_asks_for_the_level_that_runs(body: bytes, level: str | None) -> None:
    found = json.loads(made(body, at(level)))
    off = (found.get("thinking") or {}).get("type") == "disabled"
    effort = (found.get("output_config") or {}).get("effort")
    if level == Effort.none.name:
        assert off
    elif level is not None:
        assert (False, level) == (off, effort)
