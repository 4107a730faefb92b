"""YAML text to a tree that knows its lines.

Scalars keep their text as written, so a price is 0.1 and not the float next to it, and `no` is a word and not false
(the rules of YAML 1.2's core schema). Anchors and merge keys (`<<`) are followed; a key said twice is a problem. Read
event by event, without recursion, and bounded: no text makes it run away (SPEC 13).
"""

from __future__ import annotations

import re

import msgspec
import yaml

from zurelay.problems import Problem, shown

MAX_DEPTH = 32  # the format is at most 6 deep
MAX_ALIASED = 1_000_000  # values that aliases may bring in again; without a bound 10 short lines make 10**9

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # some builds of PyYAML have no C part
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")} | {"!"}


# Nodes stay out of the collector's sight: anchors that hold themselves are refused, so that no node is in a cycle.


class Scalar(msgspec.Struct, gc=False):
    """One value as written; `plain` is one without quotes."""

    line: int
    text: str
    plain: bool = True

    @property
    def truth(self) -> bool | None:
        """Tell true from false; None is neither."""
        return _TRUTHS.get(self.text) if self.plain else None

    @property
    def number(self) -> str | None:
        """Give the text of a number without its underscores; None is no number."""
        return self.text.replace("_", "") if self.plain and _NUMBER.fullmatch(self.text) else None


class Items(msgspec.Struct, gc=False):
    """A list; its weight is the number of values and keys in it, itself too."""

    line: int
    items: list[Node]
    weight: int = 1


class Table(msgspec.Struct, gc=False):
    """A mapping; each value comes with its key's line."""

    line: int
    entries: dict[str, tuple[int, Node]]
    weight: int = 1


Node = Scalar | Items | Table


def is_null(node: Node) -> bool:
    """Tell a value that counts as left out."""
    return isinstance(node, Scalar) and node.plain and node.text in _NULL


def kind(node: Node) -> str:
    """Name what a node is, for a message."""
    if isinstance(node, Table):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    if is_null(node):
        return "nothing"
    if node.truth is not None:
        return "true or false"
    return "text" if node.number is None else "a number"


def load(text: str, problems: list[Problem]) -> Node | None:
    """Read one YAML document. None: it can't be read as one, and `problems` says why; keys said twice are noted too."""
    builder = _Builder(problems)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
    except _Stop as stop:
        problems.append(stop.problem)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        problems.append(Problem(line, "", "not UTF-8 text: it holds half of a surrogate pair"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        said = ", ".join(part for part in (error.context, error.problem) if part)
        problems.append(Problem(line, "", f"not valid YAML: {said}"))
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        problems.append(Problem(line, "", f"not valid YAML: {error.reason}"))
    else:
        return Scalar(1, "") if builder.root is None else builder.root
    return None


class _Stop(Exception):
    """The document can't be read on."""

    def __init__(self, line: int, path: str, message: str) -> None:
        self.problem = Problem(line, path, message)


class _Frame:
    """A list or mapping that is still open."""

    __slots__ = ("anchor", "key", "key_line", "merged", "node")

    def __init__(self, node: Items | Table, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: str | None = None
        self.key_line = 0
        self.merged: list[Table] = []


class _Builder:
    """Events in, tree out."""

    def __init__(self, problems: list[Problem]) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[_Frame] = []
        self._anchors: dict[str, Node] = {}
        self._aliased = 0

    def feed(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor or "", line)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise _Stop(line, "", "a second document begins here; the file holds one")

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        node = Scalar(line, event.value, event.implicit[0])
        if event.tag:
            self._check_tag(event.tag, line)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._place(node, line)

    def _begin(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if event.tag:
            self._check_tag(event.tag, line)
        if len(self._open) == MAX_DEPTH:
            raise _Stop(line, "", f"nested over {MAX_DEPTH} levels deep")
        node = Table(line, {}) if isinstance(event, yaml.MappingStartEvent) else Items(line, [])
        if self._at_key():
            raise _Stop(line, self._path(), f"a key is {kind(node)}; keys are plain text")
        self._open.append(_Frame(node, event.anchor))

    def _end(self) -> None:
        frame = self._open.pop()
        if isinstance(frame.node, Table):
            for table in frame.merged:
                for key, entry in table.entries.items():
                    frame.node.entries.setdefault(key, entry)
        if frame.anchor:
            self._anchors[frame.anchor] = frame.node
        self._place(frame.node, frame.node.line)

    def _alias(self, name: str, line: int) -> None:
        if any(frame.anchor == name for frame in self._open):
            raise _Stop(line, self._path(), f"the anchor &{shown(name)} holds itself")
        node = self._anchors.get(name)
        if node is None:
            raise _Stop(line, self._path(), f"no anchor &{shown(name)} stands before this alias")
        self._aliased += _weight(node)
        if self._aliased > MAX_ALIASED:
            raise _Stop(line, "", f"aliases bring in over {MAX_ALIASED:,} values; write the file with fewer")
        if self._at_key() and not isinstance(node, Scalar):
            raise _Stop(line, self._path(), f"a key is {kind(node)}; keys are plain text")
        self._place(node, line)

    def _at_key(self) -> bool:
        """Tell whether a mapping's key comes next."""
        return bool(self._open) and self._open[-1].key is None and isinstance(self._open[-1].node, Table)

    def _place(self, node: Node, line: int) -> None:
        """Put a finished node where it belongs: the document, a list, a mapping's key or its value."""
        if not self._open:
            self.root = node
            return
        frame = self._open[-1]
        frame.node.weight += _weight(node)
        if isinstance(frame.node, Items):
            frame.node.items.append(node)
        elif frame.key is None and isinstance(node, Scalar):
            frame.key, frame.key_line = node.text, line
        else:
            self._put(frame, frame.node.entries, frame.key or "", node)
            frame.key = None

    def _put(self, frame: _Frame, entries: dict[str, tuple[int, Node]], key: str, node: Node) -> None:
        if key == "<<":
            self._merge(frame, node)
        elif key in entries:
            message = f"said twice; first at line {entries[key][0]}"
            self._problems.append(Problem(frame.key_line, self._path(), message))
        else:
            entries[key] = (frame.key_line, node)

    def _merge(self, frame: _Frame, node: Node) -> None:
        for table in node.items if isinstance(node, Items) else [node]:
            if not isinstance(table, Table):
                raise _Stop(frame.key_line, self._path(), f"expected a mapping to merge, not {kind(table)}")
            frame.merged.append(table)

    def _check_tag(self, tag: str, line: int) -> None:
        if tag not in _TAGS:
            message = f"the tag {shown(tag)} isn't used here; leave it out"
            self._problems.append(Problem(line, self._path(), message))

    def _path(self) -> str:
        """Name the place that is being read, as `models.opus.routes[0]`."""
        path = ""
        for frame in self._open:
            if isinstance(frame.node, Items):
                path += f"[{len(frame.node.items)}]"
            elif frame.key is not None:
                path = join(path, frame.key)
        return path


def join(path: str, key: str) -> str:
    """Name a key below a path."""
    return f"{path}.{shown(key)}" if path else shown(key)


def _weight(node: Node) -> int:
    return 1 if isinstance(node, Scalar) else node.weight
