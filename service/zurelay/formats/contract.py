"""What callers of the translators give and get: the values that both directions share."""

from __future__ import annotations

import enum

import msgspec

from zurelay.model import Effort
from zurelay.usage import Usage


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes.

    `model` is the provider's name of the model. `effort` is the level to send, already one that the model accepts; None
    sends nothing. `named` says that the client asked for this very model: what has no counterpart is then refused, and
    dropped otherwise (SPEC 9).
    """

    model: str
    max_output: int | None = None
    effort: Effort | None = None
    named: bool = True


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer carries that its provider doesn't say.

    `id` goes behind `chatcmpl-` or `msg_`, `created` is Unix time, `model` the catalog's id. The last two are for
    Messages clients: `upstream` is the provider's name of the model (it must equal Target.model of the turns to come,
    so that reasoning finds back to it), and `thinking` says whether thinking blocks are wanted.
    """

    id: str
    created: int
    model: str
    upstream: str = ""
    thinking: bool = True


class Answer(msgspec.Struct, frozen=True):
    """A complete answer for the client; what it used, if the provider said so; why it ended, in the client's words."""

    body: bytes
    usage: Usage | None
    finish_reason: str


class BadAnswer(Exception):
    """A provider's answer or event that isn't its format's JSON; the text says what was wrong, for logs."""


class FailureKind(enum.Enum):
    """How a provider's stream went wrong."""

    ERROR = "error"  # it sent an error event
    CUT = "cut"  # it stopped without its end
    EMPTY = "empty"  # it ended before the model said anything


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a stream won't be whole. `message` and `code` are the provider's own, where it gave them."""

    kind: FailureKind
    message: str = ""
    code: str | None = None
