"""Who has put a request's end on record: a file that all workers of an instance share, so that each end counts once.

An attempt judges an answer in one worker while Envoy tells another that the client has left: whoever claims the request
first has it. It is asked once a request and takes some microseconds; the file survives a worker that dies.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os

_MARK = 16  # bytes of a request's digest
_SLOTS = 8  # in a bucket: the latest claims, newest first
_BUCKET = _SLOTS * _MARK
_BUCKETS = 1 << 14  # 2 MiB: the last 100,000 requests; two observers of one end are seconds apart at most
_TRIES = 3  # for a bucket that another worker is in: it is there for microseconds, or frozen

_log = logging.getLogger("zurelay")


class Claims:
    """The claims of one instance."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self._file, 0, _BUCKETS * _BUCKET)  # so that a disk that fills up later does no harm

    def claim(self, name: str) -> bool:
        """Claim a request; False where somebody has."""
        mark = hashlib.blake2b(name.encode(), digest_size=_MARK).digest()
        place = int.from_bytes(mark[:4]) % _BUCKETS * _BUCKET
        try:
            return self._claim(mark, place)
        except OSError:
            _log.exception("the file of requests that are over can't be used: one that ends twice counts twice")
            return True

    def _claim(self, mark: bytes, place: int) -> bool:
        locked = self._lock(place)
        try:
            latest = os.pread(self._file, _BUCKET, place)
            if mark in latest:
                return False
            os.pwrite(self._file, (mark + latest)[:_BUCKET], place)
            return True
        finally:
            if locked:
                fcntl.lockf(self._file, fcntl.LOCK_UN, _BUCKET, place)

    def _lock(self, place: int) -> bool:
        """Keep the other workers out of a bucket. A frozen one must not hold up the rest: then it goes without."""
        for _ in range(_TRIES):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, _BUCKET, place)
            except BlockingIOError:
                continue
            return True
        return False

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
