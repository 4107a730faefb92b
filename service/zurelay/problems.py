"""What is wrong in a file that a person wrote: every problem, with its line and its place in the tree."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One thing to put right. Line 0 is a problem of no one line; an empty path is one of the whole file."""

    line: int
    path: str
    message: str

    def __str__(self) -> str:
        """Write it as `line 12: models.opus.price.inptu: unknown key; did you mean input?`."""
        where = [f"line {self.line}"] if self.line else []
        return ": ".join([*where, self.path, self.message] if self.path else [*where, self.message])


class SettingsError(Exception):
    """A file can't be used. It carries all its problems, in the order of their lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


def shown(word: str) -> str:
    """Write a word from the file so that it can't break a line of the log or flood it."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in word[:64])
    return f"{printable}..." if len(word) > len(printable) else printable
