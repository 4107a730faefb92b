"""What the simulated provider answers: from the request alone, plausible, the same each time."""

from __future__ import annotations

import itertools

import msgspec

from zurelay.simulate import prose, schemas
from zurelay.simulate.faults import Fault, Wish
from zurelay.simulate.nouns import Answer, Ask, Call, Choice, Finish, Tool, Usage

_BIG_TOKEN = 1024  # bytes of a token in a big answer, unless its size is given
_CALL_PIECE = 12  # characters of a tool call's arguments in one event
_REFUSED = "I can't help with that."


def compose(ask: Ask, fault: Fault, wish: Wish, *, id: str, created: int) -> Answer:
    """Write the answer to a request; `id` and `created` are what can't be told from it."""
    choices = tuple(_choice(ask, fault, wish, id, index) for index in range(ask.n))
    return Answer(
        id=id,
        created=created,
        model=ask.model,
        choices=choices,
        usage=None if fault.no_usage else _usage(ask, fault, choices),
        include_usage=ask.include_usage,
        hide_thoughts=ask.hide_thoughts,
        reasoning_field="reasoning" if fault.reasoning_field else "reasoning_content",
        usage_beside=fault.usage_beside,
    )


def _choice(ask: Ask, fault: Fault, wish: Wish, id: str, index: int) -> Choice:
    if fault.refusal:
        return Choice(text=prose.pieces(_REFUSED), finish=Finish.REFUSAL)
    thoughts = prose.pieces(_thoughts(ask, wish))
    if (filler := _filler(fault)) is not None:
        return Choice(thoughts=thoughts, text=filler)
    if calls := _calls(ask, id, index) if wish.text is None else ():
        return _limited(Choice(thoughts=thoughts, calls=calls, finish=Finish.TOOLS), ask.limit)
    text, stop = _stopped(_text(ask, wish, index), ask.stop)
    finish = Finish.STOP_SEQUENCE if stop else Finish.STOP
    return _limited(Choice(thoughts=thoughts, text=prose.pieces(text), finish=finish, stop_sequence=stop), ask.limit)


def _thoughts(ask: Ask, wish: Wish) -> str:
    if wish.reasoning is not None:
        return wish.reasoning
    return prose.thoughts(ask.text, ask.level) if ask.level else ""


def _text(ask: Ask, wish: Wish, index: int) -> str:
    if wish.text is not None:
        return wish.text
    if ask.schema is not None:
        return msgspec.json.encode(schemas.fill(ask.schema, prose.subject(ask.text))).decode()
    text = prose.answer(ask.text, ask.results)
    return f"{text} ({index + 1})" if index else text


def _filler(fault: Fault) -> tuple[str, ...] | None:
    """Make an answer whose length was asked for: `tokens` of `size` bytes each, or `big` bytes in all."""
    if fault.big is not None:
        size = max(fault.size or _BIG_TOKEN, 1)
        whole, rest = divmod(fault.big, size)
        return (_word(size),) * whole + ((_word(rest),) if rest else ())
    if fault.tokens is None and fault.size is None:
        return None
    count = 20 if fault.tokens is None else fault.tokens
    if fault.size is not None:
        return (_word(max(fault.size, 1)),) * count
    return tuple(itertools.islice(itertools.cycle((" one", " more", " word", " of", " the", " answer")), count))


def _word(size: int) -> str:
    return ("x" * (size - 1) + " ") if size > 1 else "x"


def _calls(ask: Ask, id: str, index: int) -> tuple[Call, ...]:
    """Call the tools that the text names, else the first; a named choice is called whatever the text says."""
    if ask.choice == "none" or (ask.results and ask.choice == "auto"):
        return ()
    tools = ask.tools
    if ask.choice not in {"auto", "required"}:
        tools = tuple(tool for tool in tools if tool.name == ask.choice)
    named = tuple(tool for tool in tools if tool.name in ask.text)
    chosen = (named or tools)[: None if ask.parallel and named else 1]
    return tuple(_call(tool, ask.text, f"{id}{index}{number}") for number, tool in enumerate(chosen))


def _call(tool: Tool, text: str, id: str) -> Call:
    arguments = schemas.fill(tool.schema, prose.subject(text))
    written = msgspec.json.encode(arguments if isinstance(arguments, dict) else {}).decode()
    cuts = range(0, len(written), _CALL_PIECE)
    return Call(id, tool.name, tuple(written[cut : cut + _CALL_PIECE] for cut in cuts))


def _stopped(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """Cut a text before the first stop sequence in it."""
    found = [(text.index(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return text, None
    at, stop = min(found)
    return text[:at], stop


def _limited(choice: Choice, limit: int | None) -> Choice:
    """Cut a choice to its token limit, which thinking uses up first."""
    written = sum(len(call.arguments) for call in choice.calls)
    if limit is None or len(choice.thoughts) + len(choice.text) + written <= limit:
        return choice
    left = limit - len(choice.thoughts)
    thoughts = choice.thoughts[:limit]
    calls = []
    room = max(left, 0)
    for call in choice.calls:
        if room > 0:
            calls.append(Call(call.id, call.name, call.arguments[:room]))
        room -= len(call.arguments)
    return Choice(thoughts=thoughts, text=choice.text[: max(left, 0)], calls=tuple(calls), finish=Finish.LENGTH)


def _usage(ask: Ask, fault: Fault, choices: tuple[Choice, ...]) -> Usage:
    """Count what was written, unless the fault says other numbers."""
    thought = sum(len(choice.thoughts) for choice in choices)
    said = sum(len(choice.text) + sum(len(call.arguments) for call in choice.calls) for choice in choices)
    reasoning = thought if fault.reasoning is None else fault.reasoning
    output = reasoning + said if fault.output is None else fault.output
    return Usage(
        input=ask.prompt_tokens if fault.input is None else fault.input,
        output=output,
        cached=fault.cached or 0,
        written=fault.written or 0,
        reasoning=min(reasoning, output),
    )
