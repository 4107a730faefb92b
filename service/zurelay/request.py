"""A chat request as the rest of the house sees it: what we read of it, checked, beside its bytes (SPEC 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from zurelay import media, tokens
from zurelay.carried import Carried, carried
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document
from zurelay.model import Endpoint, Feature, Input

READ_ONCE = frozenset(
    {
        "model",
        "models",
        "stream",
        "messages",
        "tools",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
    }
)
_PARAMETERS = (
    *("max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k"),
    *("frequency_penalty", "presence_penalty", "seed", "n"),
)
_NUMBER: msgspec.json.Decoder[int | float] = msgspec.json.Decoder(int | float)
_LARGEST = 1 << 53  # what telemetry can hold as the client wrote it
MOST_MODELS = 8  # SPEC 5: the length of a request's own list of models


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _OutputConfig(msgspec.Struct):
    effort: str | None = None


class _Thinking(msgspec.Struct):
    type: str | None = None
    display: str | None = None


class ChatRequest:
    """What a client sent to an endpoint that makes a model answer. Costly facts are found when first asked for."""

    def __init__(self, document: Document, endpoint: Endpoint) -> None:
        self.document = document
        self.endpoint = endpoint
        model = document.value("model", str)
        if not model:
            raise InvalidRequest(
                "The request names no model: set model to one that GET /v1/models lists.", param="model"
            )
        self.model: str = model
        self.models = _models(document)
        self.stream = bool(document.value("stream", bool)) and endpoint is not Endpoint.COUNT_TOKENS
        self.effort_word = self._effort_word()
        if self.stream:  # what the relay will read: a mistake in it is told before the request holds anything
            document.value("stream_options", _StreamOptions)
            document.value("n", int)
        if document.raw("messages") is None:
            raise InvalidRequest("The request has no messages: send a list of at least one.", param="messages")
        if not document.value("messages", list[msgspec.Raw]):
            raise InvalidRequest("messages is empty: send at least one message.", param="messages")

    @classmethod
    def parse(cls, body: bytes, endpoint: Endpoint) -> ChatRequest:
        """Read a decoded body; InvalidRequest says what is wrong with it."""
        return cls(Document.parse(body, once=READ_ONCE), endpoint)

    @property
    def effort_param(self) -> str:
        """The name of the field that asks for a level."""
        return "reasoning_effort" if self.endpoint is Endpoint.CHAT else "output_config.effort"

    def _effort_word(self) -> str | None:
        if self.endpoint is Endpoint.CHAT:
            return self.document.value("reasoning_effort", str)
        thinking = self.document.value("thinking", _Thinking)
        if thinking is not None and thinking.type == "disabled":
            return "none"
        config = self.document.value("output_config", _OutputConfig)
        return config.effort if config is not None else None

    @cached_property
    def wants_thinking(self) -> bool:
        """Whether the client reads reasoning: in chat it may, in messages where it turned it on and did not hide it."""
        if self.endpoint is Endpoint.CHAT:
            return True
        thinking = self.document.value("thinking", _Thinking)
        return thinking is not None and thinking.type in ("enabled", "adaptive") and thinking.display != "omitted"

    @cached_property
    def include_usage(self) -> bool:
        """Whether a streaming client asked for the usage chunk."""
        options = self.document.value("stream_options", _StreamOptions)
        return bool(options is not None and options.include_usage)

    @cached_property
    def choices(self) -> int:
        """How many answers are asked for."""
        return self.document.value("n", int) or 1

    @cached_property
    def max_output(self) -> int | None:
        """The most tokens that the client lets the answer have; of two limits the larger, as a provider may read it."""
        found = []
        for field in ("max_completion_tokens", "max_tokens"):
            most = self.document.value(field, int)
            if most is not None and most < 0:
                raise InvalidRequest(f"`{field}`: expected a positive number, got {str(most)[:20]}.", param=field)
            if most is not None:
                found.append(most)
        return max(found, default=None)

    @cached_property
    def parameters(self) -> dict[str, int | float]:
        """The numbers that say how to sample, by their fields; what is no number there is the provider's to refuse."""
        found = {}
        for field in self.document.among(_PARAMETERS):
            raw = self.document.raw(field)
            if raw is None:
                continue
            try:
                value = _NUMBER.decode(raw)
            except msgspec.DecodeError:
                continue
            if abs(value) < _LARGEST:
                found[field] = value
        return found

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The whole request, decoded; numbers too long to hold are floats, perhaps infinite."""
        decoded: dict[str, Any]
        try:
            decoded = msgspec.json.decode(self.document.data)
        except msgspec.ValidationError:  # a number out of range is legal JSON (SPEC 3)
            decoded = json.loads(self.document.data, parse_int=float)
        return decoded

    @cached_property
    def media(self) -> frozenset[Input]:
        """The kinds of media in it, text apart."""
        return media.found(self.body)

    @cached_property
    def carried(self) -> Carried:
        """What it may hold, as a policy that denies inputs must see it."""
        return carried(self.document.data)

    @cached_property
    def tokens(self) -> int:
        """An estimate of the prompt's tokens."""
        return tokens.estimate(self.body)

    @cached_property
    def features(self) -> frozenset[Feature]:
        """The features that it uses."""
        found = set()
        if any(self.document.value(field, list[msgspec.Raw]) for field in ("tools", "functions")):
            found.add(Feature.TOOLS)
        if self._wants_schema():
            found.add(Feature.JSON_SCHEMA)
        return frozenset(found)

    def _wants_schema(self) -> bool:
        field = "response_format" if self.endpoint is Endpoint.CHAT else "output_config"
        value = self.body.get(field)
        if not isinstance(value, dict):
            return False
        wanted = value if self.endpoint is Endpoint.CHAT else value.get("format")
        return isinstance(wanted, dict) and wanted.get("type") == "json_schema"


def _models(document: Document) -> tuple[str, ...] | None:
    names = document.value("models", list[str])
    if names is None:
        return None
    if len(names) > MOST_MODELS:
        raise InvalidRequest(f"models has {len(names)} names; it takes {MOST_MODELS} at most.", param="models")
    return tuple(names)
