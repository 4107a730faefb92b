"""Which streams pass through, and what was used by what Envoy has kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from making import attempt, catalog, model, plan
from zurelay.model import Endpoint, Format, Streaming
from zurelay.passthrough import Counted, applied, used, wanted
from zurelay.plan import Passes, Plan
from zurelay.trace_context import Trace
from zurelay.usage import Usage

ANTHROPIC = attempt("first/one", format=Format.ANTHROPIC)


def passing(planned: Plan, *, everywhere: bool = True, include_usage: bool = False, **models: Any) -> Plan:
    facts = {name: {"passthrough": value} for name, value in models.items()}
    known = (model(name, **facts.get(name, {})) for name in ("first", "second"))
    settings = catalog(*known, streaming=Streaming(passthrough=everywhere)).settings
    return applied(settings, planned, include_usage=include_usage, now=1_000.0)


@pytest.mark.parametrize(
    ("planned", "facts", "expected"),
    [
        (plan("first/one", "second/two"), {}, Passes.DROP),
        (plan("first/one"), {"include_usage": True}, Passes.KEEP),
        (plan("first/one"), {"everywhere": False}, None),
        (plan("first/one"), {"everywhere": False, "first": True}, Passes.DROP),
        (plan("first/one", "second/two"), {"everywhere": False, "first": True}, None),
        (plan("first/one", "second/two"), {"second": False}, None),
        (plan(ANTHROPIC), {}, None),
        (plan("second/two", ANTHROPIC), {}, None),
        (plan(ANTHROPIC, endpoint=Endpoint.MESSAGES), {}, Passes.KEEP),
        (plan("first/one", endpoint=Endpoint.MESSAGES), {}, None),
        (plan(ANTHROPIC, endpoint=Endpoint.COUNT_TOKENS), {}, None),
    ],
)
def test_a_stream_passes_where_all_that_may_answer_it_let_it(
    planned: Plan, facts: dict[str, Any], expected: Passes | None
) -> None:
    found = passing(planned, **facts)
    assert expected is found.passes
    assert (1_000.0 + planned.total if expected else 0) == found.begin_by


def test_a_stream_that_passes_has_no_relay_in_its_trace() -> None:
    trace = Trace(id="a" * 32, server="b" * 16, relay="c" * 16)
    assert trace == passing(plan(ANTHROPIC, trace=trace)).trace
    found = passing(plan("first/one", trace=trace)).trace
    assert found is not None
    assert ("", trace.server) == (found.relay, found.above)


@pytest.mark.parametrize(
    ("everywhere", "own", "expected"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_a_models_own_word_counts_before_the_one_for_all(everywhere: bool, own: bool | None, expected: bool) -> None:
    settings = catalog(model("first", passthrough=own), streaming=Streaming(passthrough=everywhere)).settings
    assert expected is wanted(settings)


START = '{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}'


@pytest.mark.parametrize(
    ("format", "first", "last", "expected"),
    [
        (Format.OPENAI, "", "", None),
        (Format.OPENAI, "{broken", "", None),
        (Format.OPENAI, '{"prompt_tokens":5,"completion_tokens":2}', "", Usage(prompt=5, completion=2)),
        (
            Format.OPENAI,
            '{"prompt_tokens":5,"completion_tokens":2}',
            '{"prompt_tokens":5,"completion_tokens":9}',
            Usage(prompt=5, completion=9),
        ),
        (
            Format.OPENAI,
            '{"prompt_tokens":5,"completion_tokens":2}',
            '{"prompt_tokens":0,"completion_tokens":0}',
            Usage(prompt=5, completion=2),
        ),
        (Format.ANTHROPIC, START, '{"output_tokens":7}', Usage(prompt=8, completion=7, cached=3)),
        (Format.ANTHROPIC, START, "", Usage(prompt=8, completion=1, cached=3)),
    ],
)
def test_what_was_used_is_the_providers_last_word(
    format: Format, first: str, last: str, expected: Usage | None
) -> None:
    counted = Counted(number=1, first=first, last=last, whole=True)
    assert expected == used(counted, attempt("first/one", format=format))


HALF = '{"prompt_tokens":5,"completion_tokens":2}'
COMPLETE = '{"output_tokens":7}'


@pytest.mark.parametrize(
    ("format", "counted", "completion", "estimated"),
    [
        (Format.OPENAI, Counted(first=HALF, reported=4, events=9), 7, True),
        (Format.OPENAI, Counted(first=HALF, reported=9, events=9), 2, False),
        (Format.OPENAI, Counted(first=HALF, reported=9, events=8), 2, False),
        (Format.OPENAI, Counted(first=HALF, reported=4, events=9, whole=True), 2, False),
        (Format.ANTHROPIC, Counted(first=START, reported=1, events=64), 64, True),
        (Format.ANTHROPIC, Counted(first=START, reported=5, events=5), 5, True),
        (Format.ANTHROPIC, Counted(first=START, last=COMPLETE, reported=5, events=5), 7, False),
        (Format.ANTHROPIC, Counted(first=START, last=COMPLETE, reported=5, events=6, whole=True), 7, False),
        (Format.ANTHROPIC, Counted(first=START, last=COMPLETE, reported=5, events=90), 90, True),
    ],
)
def test_what_a_model_wrote_behind_its_providers_word_is_estimated(
    format: Format, counted: Counted, completion: int, estimated: bool
) -> None:
    found = used(counted, attempt("first/one", format=format))
    assert found is not None
    assert (completion, estimated) == (found.completion, found.estimated)
