"""Tool calls that come in pieces from an OpenAI-format provider, put together."""

from __future__ import annotations

from zurelay.formats.arguments import is_object
from zurelay.formats.chat_answers import Call, arguments


class ToolCall:
    """A call under way. `sent` says how many pieces of its arguments went out, `shut` that no more may."""

    __slots__ = ("id", "key", "name", "pieces", "sent", "shut")

    def __init__(self, key: int) -> None:
        self.key = key
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.sent = 0
        self.shut = False

    @property
    def whole(self) -> bool:
        """Whether the arguments make an object: then no more of them come."""
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}") and is_object("".join(self.pieces))

    def unsent(self) -> list[str]:
        """Give the pieces that haven't gone out, and count them as sent."""
        found = self.pieces[self.sent :]
        self.sent = len(self.pieces)
        return found


class ToolCalls:
    """The calls of one answer, in order."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: list[ToolCall] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def waiting(self) -> list[ToolCall]:
        """Give the calls that aren't shut; the first is the one that may go out."""
        return [call for call in self._all if not call.shut]

    def is_last(self, call: ToolCall) -> bool:
        """Tell whether no other call was begun behind this one."""
        return call is self._all[-1]

    def add(self, piece: Call) -> None:
        """Put a piece where it belongs."""
        call = self._find(piece)
        call.id = call.id or piece.id or ""
        function = piece.function
        if function is not None:
            call.name = call.name or function.name or ""
            if text := arguments(function):
                call.pieces.append(text)

    def _find(self, piece: Call) -> ToolCall:
        """Find the call that a piece belongs to; some providers number all calls 0, or none."""
        known = [call for call in self._all if piece.index is None or call.key == piece.index]
        if piece.id and known and known[-1].id and known[-1].id != piece.id:
            known = [call for call in known if call.id == piece.id]
        if known:
            return known[-1]
        call = ToolCall(len(self._all) if piece.index is None else piece.index)
        self._all.append(call)
        return call
