"""The nouns of the simulated provider: what is asked, what is answered, and the pieces of a stream."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

Json = Any  # JSON of any shape

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Tool(msgspec.Struct, frozen=True):
    """A function that may be called, and the JSON schema of its arguments."""

    name: str
    schema: Json


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request, free of its format. `choice` is auto, none, required or a tool's name; `level` an index of LEVELS."""

    model: str
    stream: bool = False
    include_usage: bool = False
    text: str = ""
    results: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    parallel: bool = True
    level: int = 0
    hide_thoughts: bool = False
    schema: Json = None
    stop: tuple[str, ...] = ()
    limit: int | None = None
    n: int = 1
    prompt_tokens: int = 1


class Finish(enum.Enum):
    """Why an answer ends."""

    STOP = enum.auto()
    STOP_SEQUENCE = enum.auto()
    LENGTH = enum.auto()
    TOOLS = enum.auto()
    REFUSAL = enum.auto()


class Call(msgspec.Struct, frozen=True):
    """A call of a tool; `arguments` are pieces of JSON."""

    id: str
    name: str
    arguments: tuple[str, ...]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, in pieces of about a token."""

    thoughts: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    finish: Finish = Finish.STOP
    stop_sequence: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts. `input` includes cached and written ones, `output` includes `reasoning`."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that a body or a stream is written from. `id` has no prefix yet; `usage` None leaves it out."""

    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: Usage | None
    include_usage: bool = False
    hide_thoughts: bool = False
    reasoning_field: str = "reasoning_content"
    usage_beside: bool = False


class Kind(enum.Enum):
    """What a stream's event is, as far as faults care. FINISH includes usage; AROUND is what is left."""

    AROUND = enum.auto()
    TOKEN = enum.auto()
    FINISH = enum.auto()
    END = enum.auto()


class Event(msgspec.Struct, frozen=True):
    """One server-sent event, not framed yet."""

    kind: Kind
    data: bytes
    name: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """An error that a provider answers with."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None


SERVER_ERROR = 500  # the statuses from here on are the provider's fault (RFC 9110, 15.6)


class Dialect(Protocol):
    """What each format's module offers."""

    def read(self, body: Mapping[str, Json]) -> Ask:
        """Take a request apart."""

    def refuse(self, refusal: Refusal) -> bytes:
        """Write the body of an error."""

    def too_long(self, tokens: int) -> Refusal:
        """Word the refusal of a prompt over the context window."""

    def whole(self, answer: Answer) -> bytes:
        """Write an answer that isn't streamed."""

    def events(self, answer: Answer) -> Iterator[Event]:
        """Write a stream."""

    def error_event(self, refusal: Refusal) -> Event:
        """Write an error into a stream."""
