"""The yardstick: a fixed piece of pure Python, as varied as the sidecar's own work, so that both slow down together."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z]+|[0-9]+|[^a-z0-9 ]")
_TEXT = (
    'def total(items, rate=0.19): return {"net": sum(items), "gross": [round(one * (1 + rate), 2) for one in items]} '
    * 4
)
_ROUNDS = 6


class _Node:
    """A small object, made and thrown away."""

    __slots__ = ("children", "name", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.children: list[_Node] = []

    def add(self, child: _Node) -> int:
        """Hang a child below."""
        self.children.append(child)
        self.size += child.size
        return self.size


def run() -> int:
    """Do the work once; what it gives says that it was done."""
    found = 0
    for turn in range(_ROUNDS):
        root = _Node("root", turn)
        seen: dict[str, int] = {}
        for place, word in enumerate(_WORD.findall(_TEXT)):
            seen[word] = seen.get(word, 0) + 1
            if word.isalpha():
                found += root.add(_Node(word, len(word)))
            else:
                found ^= _mixed(word.encode(), place)
        found += len(_written(root, seen))
    return found & 0xFFFFFFFF


def _mixed(data: bytes, seed: int) -> int:
    value = seed
    for byte in data:
        value = (value * 31 + byte) & 0xFFFF
    return value


def _written(root: _Node, seen: dict[str, int]) -> str:
    pieces = [f"{node.name}={seen[node.name]}:{node.size}" for node in root.children]
    pieces.sort()
    return ";".join(piece.partition("=")[2] + piece[:3].upper() for piece in pieces)
