"""An OpenAI-format provider's complete answer, written as a Messages message (SPEC 7).

Reasoning becomes a thinking block under a signature of ours (see `thinking`), a refusal a text with stop_reason
`refusal`. Arguments that are no JSON object are wrapped (see `arguments`), so that the client can tell the model.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.formats import chat_answers
from zurelay.formats.anthropic_usage import as_anthropic
from zurelay.formats.arguments import to_input
from zurelay.formats.blocks import Block, Text, Thinking, ToolUse
from zurelay.formats.chat_answers import Said
from zurelay.formats.contract import Answer, BadAnswer, Stamp
from zurelay.formats.failures import complaint
from zurelay.formats.thinking import signature
from zurelay.usage import Usage, from_openai


class _Choice(msgspec.Struct):
    message: Said
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: dict[str, Any] | None = None


_COMPLETION = msgspec.json.Decoder(_Completion)


def response(body: bytes, stamp: Stamp) -> bytes:
    """Translate an answer's body; BadAnswer if it is none."""
    return answer(body, stamp).body


def answer(body: bytes, stamp: Stamp) -> Answer:
    """Translate an answer, and read from it what was used; BadAnswer if it is none."""
    completion = _read(body)
    choice = completion.choices[0]
    said = choice.message
    calls = _calls(said, stamp)
    refused = said.refusal or ""
    reason = chat_answers.stop_reason(choice.finish_reason, calls=bool(calls), refused=bool(refused))
    used = None if completion.usage is None else from_openai(completion.usage)
    out: dict[str, Any] = {
        "id": f"msg_{stamp.id}",
        "type": "message",
        "role": "assistant",
        "model": stamp.model,
        "content": [*_words(said, stamp), *calls],
        "stop_reason": reason,
        "stop_sequence": None,
    }
    if refused:
        out["stop_details"] = chat_answers.stop_details(refused)
    out["usage"] = as_anthropic(used or Usage())
    return Answer(msgspec.json.encode(out), used, reason)


def _read(body: bytes) -> _Completion:
    try:
        completion = _COMPLETION.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(complaint(body, error)) from error
    if not completion.choices:
        raise BadAnswer("the answer has no choices")
    return completion


def _words(said: Said, stamp: Stamp) -> list[Block]:
    found: list[Block] = []
    if said.thought and stamp.thinking:
        found.append(Thinking(said.thought, signature(stamp.upstream)))
    found += [Text(text) for text in (said.text, said.refusal) if text]
    return found


def _calls(said: Said, stamp: Stamp) -> list[Block]:
    found: list[Block] = []
    for index, call in enumerate(said.tool_calls or ()):
        function = call.function
        if function is None or not function.name:
            raise BadAnswer("a tool call without a function's name")
        call_id = call.id or f"toolu_{stamp.id}_{index}"
        found.append(ToolUse(call_id, function.name, to_input(chat_answers.arguments(function))))
    return found
