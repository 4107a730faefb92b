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
_BUCKETS = 1 << 14  # 2 MiB: the last 100,000 requests; those who see one end do so within seconds
_TURNED = bytes(range(255, -1, -1))  # of an announcement all bits of the mark


class Claims:
    """The claims of one instance."""

    def __init__(self, path: str) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # All of it: a page for which a full disk has no room would end the process when it is written.
            os.posix_fallocate(file, 0, _BUCKETS * _BUCKET)
            self._table = mmap.mmap(file, _BUCKETS * _BUCKET)
        finally:
            os.close(file)

    def claim(self, name: str) -> bool:
        """Claim a request that was judged; False where somebody has, or has announced its end."""
        mark, place = _place(name)
        return self._put(mark, place, unless=(mark, mark.translate(_TURNED)))

    def announce(self, name: str) -> bool:
        """Say that a request is over; False where somebody has claimed it, or said so."""
        mark, place = _place(name)
        turned = mark.translate(_TURNED)
        return self._put(turned, place, unless=(mark, turned))

    def is_claimed(self, name: str) -> bool:
        """Tell whether a request was judged."""
        mark, place = _place(name)
        return mark in self._table[place : place + _BUCKET]

    def _put(self, mark: bytes, place: int, unless: tuple[bytes, bytes]) -> bool:
        latest = self._table[place : place + _BUCKET]
        if unless[0] in latest or unless[1] in latest:
            return False
        self._table[place : place + _BUCKET] = (mark + latest)[:_BUCKET]
        return True

    def close(self) -> None:
        """Let go of the table."""
        self._table.close()


def _place(name: str) -> tuple[bytes, int]:
    mark = hashlib.blake2b(name.encode(), digest_size=_MARK).digest()
    return mark, int.from_bytes(mark[:4]) % _BUCKETS * _BUCKET
