"""What the simulated provider's tests share."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from zurelay.simulate.actions import Action, Head, Send
from zurelay.simulate.faults import Wish
from zurelay.simulate.nouns import Answer, Ask, Choice, Usage

USER = {"role": "user", "content": "What is the weather in Paris?"}
CHAT: dict[str, Any] = {"model": "m", "messages": [USER]}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 1000, "messages": [USER]}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NO_WISH = Wish()


def ask(**fields: Any) -> Ask:
    return Ask(model="m", **fields)


def answer(choice: Choice | None = None, **fields: Any) -> Answer:
    """An answer of the words `one two three`, unless told otherwise."""
    choices = (choice or Choice(text=("one", " two", " three")),)
    usage = Usage(input=10, output=3)
    made = Answer(id="abc", created=5, model="m", choices=choices, usage=usage)
    return msgspec.structs.replace(made, **fields)


def body_of(actions: Sequence[Action]) -> bytes:
    return b"".join(action.data for action in actions if isinstance(action, Send))


def head_of(actions: Sequence[Action]) -> Head:
    return next(action for action in actions if isinstance(action, Head))


def events_of(body: bytes) -> list[tuple[str | None, str]]:
    """Read a stream that is framed in the usual way."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        found.append((fields.get("event"), fields["data"]))
    return found


def objects_of(body: bytes) -> Iterator[Any]:
    """Give the JSON of a stream's events."""
    return (msgspec.json.decode(data) for _, data in events_of(body) if data != "[DONE]")
