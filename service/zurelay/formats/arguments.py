"""A tool call's arguments: in chat a string that should hold JSON, in Messages an object."""

from __future__ import annotations

import msgspec

INVALID = "invalid_arguments"
"""The one key of an input that stands for arguments that are no JSON object: the model sees what it wrote."""

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_WRAPPED = msgspec.json.Decoder(dict[str, str])


def is_object(arguments: str) -> bool:
    """Tell whether the arguments are whole, and an object."""
    try:
        _OBJECT.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False
    return True


def to_input(arguments: str) -> msgspec.Raw:
    """Give a call's input, its bytes as the model wrote them; no arguments are an empty object."""
    if not arguments or arguments.isspace():
        return msgspec.Raw(b"{}")
    if is_object(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(msgspec.json.encode({INVALID: arguments}))


def to_arguments(raw: msgspec.Raw) -> str:
    """Give a call's arguments for its input: the same bytes, or the string that `to_input` had to wrap."""
    text = bytes(raw).decode()
    if not text or text == "null":
        return "{}"
    if INVALID in text:
        try:
            wrapped = _WRAPPED.decode(text)
        except msgspec.DecodeError:
            return text
        if wrapped.keys() == {INVALID}:
            return wrapped[INVALID]
    return text
