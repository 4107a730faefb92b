"""The run directory: the sockets of one run and the files that Envoy reads, each replaced whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# sun_path holds 108 bytes with its final zero (unix(7)); our longest socket's name is worker-127.sock.
_LONGEST = 107 - len("/worker-127.sock")


class RunDirectoryError(Exception):
    """The run directory can't be used."""


class RunDirectory:
    """One run's directory. `write` replaces a file by rename, which is what Envoy watches for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: dict[str, str] = {}

    def file(self, name: str) -> str:
        """Give a file's or socket's path."""
        return str(self.path / name)

    def written(self, name: str) -> str | None:
        """Give the text that was written last."""
        return self._written.get(name)

    def write(self, name: str, text: str) -> bool:
        """Write a file, unless it says that already; tell whether it was written."""
        if self._written.get(name) == text:
            return False
        new = self.path / f".{name}.new"
        new.write_bytes(text.encode())
        new.chmod(0o600)
        new.rename(self.path / name)
        self._written[name] = text
        return True

    def remove(self, name: str) -> None:
        """Remove a file or socket, where there is one."""
        (self.path / name).unlink(missing_ok=True)
        self._written.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The files that were written."""
        return tuple(self._written)


def replace(path: Path, text: str) -> None:
    """Replace a file of the user's whole, in one step; its mode stays, and a symlink stays one."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(text.encode())
    new.chmod(path.stat().st_mode & 0o777)
    new.rename(path)


@contextlib.contextmanager
def run_directory(path: Path | None) -> Iterator[RunDirectory]:
    """Open the run directory, ours alone for as long as it is open; without a path, a new one that goes afterwards."""
    if path is None:
        made = Path(tempfile.mkdtemp(prefix="zurelay-", dir=_short_parent()))
        try:
            yield RunDirectory(made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return
    path = path.absolute()
    if len(os.fsencode(path)) > _LONGEST:
        raise RunDirectoryError(f"{path}: too long for Unix sockets; use a path of at most {_LONGEST} bytes")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunDirectoryError(f"{path}: can't be used as the run directory: {error.strerror}") from None
    try:
        _take(lock, path)
        yield RunDirectory(path)
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunDirectoryError(f"{path}: another zurelay runs here; use another --run-dir") from None


def _short_parent() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) + len("/zurelay-12345678") <= _LONGEST else "/tmp"  # noqa: S108  # mkdtemp is safe there
