"""Golden files: what went in, and byte for byte what must come out. `UPDATE_GOLDEN=1 pytest` writes the latter anew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from zurelay.model import Effort

ROOT = Path(__file__).parent.parent / "fixtures" / "formats"


def cases(folder: str, suffix: str) -> list[str]:
    """Name the cases of a folder."""
    found = sorted(f"{folder}/{path.name.removesuffix(suffix)}" for path in (ROOT / folder).glob(f"*{suffix}"))
    assert found, f"no case in {ROOT / folder}"
    return found


def read(name: str) -> bytes:
    """Give a file's bytes, without a newline that editors put at the end."""
    return (ROOT / name).read_bytes().removesuffix(b"\n")


def effort(body: bytes, *path: str) -> Effort | None:
    """Give the level that a request asks for."""
    found: Any = json.loads(body)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None else Effort[found]


def check(name: str, found: bytes) -> None:
    """Compare with a golden file."""
    if os.environ.get("UPDATE_GOLDEN"):
        (ROOT / name).write_bytes(found)
    assert (ROOT / name).read_bytes() == found
