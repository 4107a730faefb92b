"""What the world outside the file says: the environment, the files that are there, and the catalog's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from zurelay.problems import shown
from zurelay.settings.names import Names
from zurelay.settings.places import At
from zurelay.settings.scalars import matching, text

_variable_name = matching(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "the name of an environment variable, not its value")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Passed in, so that a file can be checked without touching anything."""

    environ: Mapping[str, str]
    readable: Callable[[str], bool]
    names: Names

    def variable(self, at: At) -> str:
        """Read the name of an environment variable that is set."""
        name = _variable_name(at)
        if not self.environ.get(name):
            state = "empty" if name in self.environ else "not set"
            raise at.wrong(f"the environment variable {name} is {state}")
        return name

    def file(self, at: At) -> str:
        """Read the path of a file that is there and readable; it stays as written."""
        path = text(at)
        if not self.readable(path):
            raise at.wrong(f"the file {shown(path)} isn't there or can't be read")
        return path
