"""Who has put a request's end on record: a table that all workers of an instance share, so that each end counts once.

An attempt judges an answer in one worker while Envoy tells another that the client has left. Who judges claims the
request and goes on; who hears of its end announces that, and looks once more after a moment: by then it sees the claim
of any judge who hadn't seen the announcement. So there is no lock, in which a frozen worker might hold up the others.

The table is a file in memory, which outlives a worker: no system call is made, after each of which another thread may
take the interpreter.
"""

from __future__ import annotations

import hashlib
import mmap
import os

MOMENT = 0.1  # seconds; a judge claims within a microsecond of having looked
_MARK = 16  # bytes of a request's digest
_BUCKET = 8 * _MARK  # the latest marks, newest first
# Who judges writes the first table alone, who announces the second: so neither writes over the other's mark.
_CLAIMED = 1 << 14  # buckets, 2 MiB: the last 100,000 requests; those who see one end do so within seconds
_ANNOUNCED = 1 << 11  # few ends are heard of


class Claims:
    """The claims of one instance."""

    def __init__(self, path: str) -> None:
        size = (_CLAIMED + _ANNOUNCED) * _BUCKET
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # All of it: a page for which a full disk has no room would end the process when it is written.
            os.posix_fallocate(file, 0, size)
            self._table = mmap.mmap(file, size)
        finally:
            os.close(file)

    def claim(self, name: str) -> bool:
        """Claim a request that was judged; False where somebody has, or has announced its end."""
        mark, claimed, announced = _places(name)
        return not self._has(mark, announced) and self._put(mark, claimed)

    def announce(self, name: str) -> bool:
        """Say that a request is over; False where somebody has claimed it, or said so."""
        mark, claimed, announced = _places(name)
        return not self._has(mark, claimed) and self._put(mark, announced)

    def is_claimed(self, name: str) -> bool:
        """Tell whether a request was judged."""
        mark, claimed, _ = _places(name)
        return self._has(mark, claimed)

    def _has(self, mark: bytes, place: int) -> bool:
        return mark in self._table[place : place + _BUCKET]

    def _put(self, mark: bytes, place: int) -> bool:
        latest = self._table[place : place + _BUCKET]
        if mark in latest:
            return False
        self._table[place : place + _BUCKET] = (mark + latest)[:_BUCKET]
        return True

    def close(self) -> None:
        """Let go of the table."""
        self._table.close()


def _places(name: str) -> tuple[bytes, int, int]:
    mark = hashlib.blake2b(name.encode(), digest_size=_MARK).digest()
    number = int.from_bytes(mark[:4])
    return mark, number % _CLAIMED * _BUCKET, (_CLAIMED + number % _ANNOUNCED) * _BUCKET
