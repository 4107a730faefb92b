"""The seam: a gRPC call as its method sees it, and what a method is. Transports give calls, processors serve them."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Code(enum.IntEnum):
    """How a call ends (gRPC's status codes, those that we give)."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallError(Exception):
    """A call that can't be served: raised by a method, it ends the call with this code and message."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Call(Protocol[T_co]):
    """One call. The client leaving cancels the task that serves it; a read may give None just before."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """What came before the first message, repeated names joined by a comma; of binary ones nothing is sure."""

    async def read(self) -> T_co | None:
        """Give the next message, waiting for it; None when there are no more."""

    async def write(self, message: bytes) -> None:
        """Send a message, serialized; waits only while the client has no room."""


class Method(msgspec.Struct, Generic[T], frozen=True):
    """A method by its path, how its messages are read, and how its calls are served, one task each."""

    path: str
    parse: Callable[[bytes], T]
    serve: Callable[[Call[T]], Awaitable[None]]


def bidirectional(path: str, parse: Callable[[bytes], T], serve: Callable[[Call[T]], Awaitable[None]]) -> Method[T]:
    """Make a method whose messages come and go as they will; one with a stream of answers to one question too."""
    return Method(path, parse, serve)


def client_streaming(path: str, parse: Callable[[bytes], T], serve: Callable[[Call[T]], Awaitable[bytes]]) -> Method[T]:
    """Make a method that reads many messages and gives one answer at the end."""

    async def to_the_end(call: Call[T]) -> None:
        await call.write(await serve(call))

    return Method(path, parse, to_the_end)


def unary(path: str, parse: Callable[[bytes], T], answer: Callable[[T], Awaitable[bytes]]) -> Method[T]:
    """Make a method with one question and one answer."""

    async def once(call: Call[T]) -> None:
        question = await call.read()
        if question is None:
            raise CallError(Code.INVALID_ARGUMENT, "a call without a message")
        await call.write(await answer(question))

    return Method(path, parse, once)
