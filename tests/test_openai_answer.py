"""A complete answer: what is one, and what changes in it on the way to the client."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import openai_answer
from zurelay.openai_answer import Answer, BadAnswerError
from zurelay.plan import Reason
from zurelay.usage import Usage

SAID = b'"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]'
USED = b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}'


def read(body: bytes) -> Answer:
    return openai_answer.read(body, "catalog-id")


CHANGED = {
    "the model": (b'{"id":"x","model":"gpt-x",' + SAID + b"}", b'{"id":"x","model":"catalog-id",' + SAID + b"}"),
    "no model": (b"{" + SAID + b"}", b"{" + SAID + b',"model":"catalog-id"}'),
    "a model of null": (b'{"model":null,' + SAID + b"}", b'{"model":"catalog-id",' + SAID + b"}"),
    "two models": (b'{"model":"a","model":"b",' + SAID + b"}", b'{"model":"catalog-id",' + SAID + b"}"),
    "an escaped key": (b'{"\\u006dodel":"a",' + SAID + b"}", b'{"\\u006dodel":"catalog-id",' + SAID + b"}"),
    "a model within stays": (
        b'{"choices":[{"message":{"content":"","model":"in"}}],"model":"a"}',
        b'{"choices":[{"message":{"content":"","model":"in"}}],"model":"catalog-id"}',
    ),
    "white space, order, digits and escapes stay": (
        b' {\n "model" : "a" , "x" : 1e400, "y":0.10,"choices": [ {"message": {"content":"\\u00e9\\/"} } ] } ',
        b' {\n "model" : "catalog-id" , "x" : 1e400, "y":0.10,"choices": [ {"message": {"content":"\\u00e9\\/"} } ] } ',
    ),
    "reasoning": (
        b'{"model":"a","choices":[{"message":{"reasoning":"hm","content":"Hi"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"reasoning_content":"hm","content":"Hi"}}]}',
    ),
    "reasoning in one of two choices": (
        b'{"model":"a","choices":[{"message":{"content":"1" }},{"message":{"reasoning":"hm"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"content":"1" }},{"message":{"reasoning_content":"hm"}}]}',
    ),
    "reasoning beside an empty reasoning_content": (
        b'{"model":"a","choices":[{"message":{"reasoning":"hm","reasoning_content":null,"content":"Hi"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"reasoning_content":"hm","content":"Hi"}}]}',
    ),
    "reasoning beside reasoning_content stays": (
        b'{"model":"a","choices":[{"message":{"reasoning":"hm","reasoning_content":"hm"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"reasoning":"hm","reasoning_content":"hm"}}]}',
    ),
    "reasoning of null stays": (
        b'{"model":"a","choices":[{"message":{"reasoning":null,"content":"Hi"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"reasoning":null,"content":"Hi"}}]}',
    ),
    "reasoning that is an object stays": (
        b'{"model":"a","choices":[{"message":{"reasoning":{"x":1},"content":"Hi"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"reasoning":{"x":1},"content":"Hi"}}]}',
    ),
    "the word in a text stays": (
        b'{"model":"a","choices":[{"message":{"content":"say \\"reasoning\\": yes"}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"content":"say \\"reasoning\\": yes"}}]}',
    ),
    "usage as it should be": (
        b'{"model":"a",' + SAID + b"," + USED + b"}",
        b'{"model":"catalog-id",' + SAID + b"," + USED + b"}",
    ),
    "usage with reasoning beside": (
        b'{"model":"a",' + SAID + b',"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":6,'
        b'"completion_tokens_details":{"reasoning_tokens":3}}}',
        b'{"model":"catalog-id",' + SAID + b',"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6,'
        b'"completion_tokens_details":{"reasoning_tokens":3}}}',
    ),
    "usage of null": (
        b'{"model":"a","usage":null,' + SAID + b"}",
        b'{"model":"catalog-id","usage":null,' + SAID + b"}",
    ),
    "an error of null": (
        b'{"model":"a","error":null,' + SAID + b"}",
        b'{"model":"catalog-id","error":null,' + SAID + b"}",
    ),
    "an empty error": (b'{"model":"a","error":{},' + SAID + b"}", b'{"model":"catalog-id","error":{},' + SAID + b"}"),
    "a content of null, as with tool calls": (
        b'{"model":"a","choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]}}]}',
        b'{"model":"catalog-id","choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]}}]}',
    ),
    "an empty message": (
        b'{"model":"a","choices":[{"message":{}}]}',
        b'{"model":"catalog-id","choices":[{"message":{}}]}',
    ),
}


@pytest.mark.parametrize(("body", "expected"), [pytest.param(*row, id=name) for name, row in CHANGED.items()])
def test_what_changes_in_an_answer(body: bytes, expected: bytes) -> None:
    assert expected == read(body).body


BAD = {
    "an error": (b'{"error":{"message":"m","code":400}}', Reason.ERROR_BODY),
    "an error that is text": (b'{"error":"m"}', Reason.ERROR_BODY),
    "an error beside choices of null": (b'{"error":{"message":"m"},"choices":null}', Reason.ERROR_BODY),
    "an error beside no choices": (b'{"error":{"message":"m"},"choices":[]}', Reason.ERROR_BODY),
    "an error beside choices": (b'{"error":{"message":"m"},' + SAID + b"}", Reason.ERROR_BODY),
    "no choices": (b'{"model":"a","choices":[]}', Reason.NO_TOKEN),
    "choices of null": (b'{"model":"a","choices":null}', Reason.NOT_JSON),
    "choices left out": (b'{"model":"a"}', Reason.NOT_JSON),
    "choices that are an object": (b'{"choices":{}}', Reason.NOT_JSON),
    "choices that are text": (b'{"choices":"x"}', Reason.NOT_JSON),
    "a choice of null": (b'{"choices":[null]}', Reason.NOT_JSON),
    "a choice without a message": (b'{"choices":[{"index":0,"text":"Hi"}]}', Reason.NOT_JSON),
    "a message of null": (b'{"choices":[{"message":null}]}', Reason.NOT_JSON),
    "a message that is text": (b'{"choices":[{"message":"Hi"}]}', Reason.NOT_JSON),
    "a list": (b"[]", Reason.NOT_JSON),
    "text": (b'"Hi"', Reason.NOT_JSON),
    "nothing": (b"", Reason.NOT_JSON),
    "a page": (b"<html></html>", Reason.NOT_JSON),
    "cut short": (b'{"model":"a",' + SAID, Reason.NOT_JSON),
    "cut within a character": ('{"choices":[{"message":{"content":"模'.encode()[:-1], Reason.NOT_JSON),
    "a stream": (b"data: {}\n\ndata: [DONE]\n\n", Reason.NOT_JSON),
    "an Anthropic answer": (b'{"type":"message","content":[{"type":"text","text":"Hi"}]}', Reason.NOT_JSON),
    "no UTF-8": (b'{"model":"a","choices":[{"message":{"content":"\xff"}}]}', Reason.NOT_JSON),
    "NaN": (b'{"model":"a","x":NaN,' + SAID + b"}", Reason.NOT_JSON),
    "nested deeply": (b'{"choices":' + b"[" * 5_000 + b"]" * 5_000 + b"}", Reason.NOT_JSON),
    "something behind": (b'{"model":"a",' + SAID + b"}{}", Reason.NOT_JSON),
}


@pytest.mark.parametrize(("body", "reason"), [pytest.param(*row, id=name) for name, row in BAD.items()])
def test_what_is_no_answer(body: bytes, reason: Reason) -> None:
    with pytest.raises(BadAnswerError) as caught:
        read(body)
    assert reason is caught.value.reason


@pytest.mark.parametrize(
    "choice", [b"7", b"null", b"[]", b"{}", b'{"delta":null}', b'{"delta":"reasoning"}', b'{"delta":{"reasoning":7}}']
)
def test_a_choice_without_reasoning_stays(choice: bytes) -> None:
    assert choice == openai_answer.with_reasoning_content(choice, "delta")


USAGES = {
    "reported": (USED, Usage(prompt=3, completion=1)),
    "not reported": (b'"x":1', None),
    "null": (b'"usage":null', None),
    "empty": (b'"usage":{}', None),
    "no object": (b'"usage":[3]', None),
    "out of range": (b'"usage":{"prompt_tokens":1e400,"completion_tokens":2}', Usage(completion=2, estimated=True)),
}


@pytest.mark.parametrize(("field", "expected"), [pytest.param(*row, id=name) for name, row in USAGES.items()])
def test_what_was_used(field: bytes, expected: Usage | None) -> None:
    assert expected == read(b"{" + SAID + b"," + field + b"}").usage


def test_why_each_choice_ended() -> None:
    reasons: list[object] = ["stop", None, "length", 5, "tool_calls"]
    choices = [{"message": {}, "finish_reason": reason} for reason in reasons]
    assert read(json.dumps({"choices": choices}).encode()).finish_reasons == ("stop", "length", "tool_calls")


def test_a_model_of_any_name_is_written_as_json() -> None:
    made = openai_answer.read(b'{"model":"a",' + SAID + b"}", 'a"\\模')
    assert json.loads(made.body)["model"] == 'a"\\模'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["model", "usage", "x"]), inner),
    max_leaves=6,
)
MESSAGES = st.dictionaries(st.sampled_from(["content", "model", "refusal", "tool_calls", "reasoning_content"]), JSON)


@given(
    st.dictionaries(st.sampled_from(["id", "model", "created", "x"]), JSON), st.lists(MESSAGES, min_size=1, max_size=3)
)
def test_the_model_is_replaced_and_nothing_else(fields: dict[str, object], messages: list[dict[str, object]]) -> None:
    sent = {**fields, "choices": [{"message": message} for message in messages]}
    made = json.loads(read(json.dumps(sent).encode()).body)
    assert sent | {"model": "catalog-id"} == made
