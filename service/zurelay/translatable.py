"""Whether a request can be said in a provider's format, found out by saying it: an attempt must not end on that."""

from __future__ import annotations

from zurelay.errors import InvalidRequest
from zurelay.formats import Target, request_chat_to_messages, request_messages_to_chat
from zurelay.model import Effort, Endpoint, Format
from zurelay.request import ChatRequest


class Translatable:
    """One request, said in the other format at most once for all models that the client didn't name."""

    __slots__ = ("_known", "_request")

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._known: dict[tuple[Effort | None, bool], InvalidRequest | None] = {}

    @property
    def endpoint(self) -> Endpoint:
        """What the client called."""
        return self._request.endpoint

    @property
    def own(self) -> Format:
        """The format that the client speaks."""
        return Format.OPENAI if self.endpoint is Endpoint.CHAT else Format.ANTHROPIC

    def refusal(self, format: Format, level: Effort | None, *, named: bool) -> InvalidRequest | None:
        """Say what of the request has no place in the format; None where it all can be said.

        The level counts for a named model only: for others, what doesn't go with it is left out.
        """
        if format is self.own:
            return None
        asked = (level if named else None, named)
        if asked not in self._known:
            self._known[asked] = self._tried(*asked)
        return self._known[asked]

    def _tried(self, level: Effort | None, named: bool) -> InvalidRequest | None:
        chat = self.own is Format.OPENAI
        translate = request_chat_to_messages.request if chat else request_messages_to_chat.request
        try:
            translate(self._request.document, Target(model="", effort=level, named=named))
        except InvalidRequest as error:
            return error
        return None
