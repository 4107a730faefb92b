"""Typed reading of a YAML tree: a reader takes a place in it and gives a value, or notes what is wrong and is Broken.

Whoever reads a mapping catches Broken and reads on, so that all problems of a file are found in one go. No message
shows a value that could be a secret: only names, and words that were to be one of a closed set, are said again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from zurelay import nearby
from zurelay.problems import Problem
from zurelay.yamlnodes import Items, Node, Scalar, Table, is_null, join, kind

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


class Broken(Exception):
    """No value can be had here; the problem is noted already."""


class At:
    """A place in the tree: a node, the line that leads to it, and the way there."""

    __slots__ = ("_parent", "_step", "line", "node", "problems")

    def __init__(
        self, node: Node, line: int, problems: list[Problem], parent: At | None = None, step: str | int = ""
    ) -> None:
        self.node = node
        self.line = line
        self.problems = problems
        self._parent = parent
        self._step = step

    @property
    def path(self) -> str:
        """Name the place, as `models.opus.routes[0]`; only problems need it."""
        before = self._parent.path if self._parent else ""
        return f"{before}[{self._step}]" if isinstance(self._step, int) else join(before, self._step)

    def note(self, message: str) -> None:
        """Note a problem of this place and go on."""
        self.problems.append(Problem(self.line, self.path, message))

    def wrong(self, message: str) -> Broken:
        """Note a problem; what comes back is to be raised."""
        self.note(message)
        return Broken()

    def has(self, key: str) -> bool:
        """Tell whether a mapping says this key; null counts as left out."""
        return not is_null(self.key(key).node)

    def key(self, key: str) -> At:
        """Go to a key of a mapping; one that is left out is null, at the mapping's line."""
        entry = self.node.entries.get(key) if isinstance(self.node, Table) else None
        line, node = entry or (self.line, Scalar(self.line, ""))
        return At(node, line, self.problems, self, key)

    def of_key(self, word: str) -> At:
        """Go to the key that leads here, to check it as if it were a value."""
        return At(Scalar(self.line, word, plain=False), self.line, self.problems, self._parent, self._step)

    def entries(self) -> Iterator[tuple[str, At]]:
        """Walk a mapping; of anything else, note the problem."""
        if not isinstance(self.node, Table):
            raise self.wrong(f"expected a mapping, not {kind(self.node)}")
        for key, (line, node) in self.node.entries.items():
            yield key, At(node, line, self.problems, self, key)

    def items(self) -> Iterator[At]:
        """Walk a list; of anything else, note the problem."""
        if not isinstance(self.node, Items):
            raise self.wrong(f"expected a list, not {kind(self.node)}")
        for index, node in enumerate(self.node.items):
            yield At(node, node.line, self.problems, self, index)


Reader = Callable[[At], T]


def each(read: Reader[T], *, repeats: bool = False) -> Reader[tuple[T, ...]]:
    """Read a list; an item said twice is a problem unless `repeats`."""

    def read_all(at: At) -> tuple[T, ...]:
        found: list[T] = []
        seen: set[T] = set()
        broken = False
        for item in at.items():
            try:
                value = read(item)
            except Broken:
                broken = True
                continue
            if not repeats:
                if value in seen:
                    item.note("said twice in this list")
                seen.add(value)
            found.append(value)
        if broken:
            raise Broken
        return tuple(found)

    return read_all


def mapped(read: Callable[[str, At], T]) -> Reader[dict[str, T]]:
    """Read a mapping of free keys; `read` has the key too."""

    def read_all(at: At) -> dict[str, T]:
        found: dict[str, T] = {}
        broken = False
        for name, child in at.entries():
            try:
                found[name] = read(name, child)
            except Broken:
                broken = True
        if broken:
            raise Broken
        return found

    return read_all


class Found:
    """What a mapping says: the values that could be read, and whether all that it says could."""

    __slots__ = ("_at", "values", "whole")

    def __init__(self, at: At, readers: Mapping[str, Reader[Any]]) -> None:
        self._at = at
        self.values: dict[str, Any] = {}
        self.whole = True
        for key, child in at.entries():
            read = readers.get(key)
            if read is None:
                child.note(_unknown(key, tuple(readers)))
            elif not is_null(child.node):
                try:
                    self.values[key] = read(child)
                except Broken:
                    self.whole = False

    def build(self, kind: type[S], **given: Any) -> S:
        """Make the struct, with what is given from elsewhere."""
        for field in _needed(kind):
            if field not in given and field not in self.values and not self._at.has(field):
                self._at.key(field).note("missing; it has no default")
                self.whole = False
        if not self.whole:
            raise Broken
        return kind(**given | self.values)


def struct(at: At, kind: type[S], readers: Mapping[str, Reader[Any]], **given: Any) -> S:
    """Read a mapping into a struct. Unknown keys and missing ones are problems; the rest is read all the same."""
    return Found(at, readers).build(kind, **given)


@functools.cache
def _needed(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.required)


def _unknown(key: str, known: Sequence[str]) -> str:
    meant = nearby.did_you_mean(nearby.near(key, known))
    return f"unknown key{meant or '; the keys here are ' + ', '.join(known)}"
