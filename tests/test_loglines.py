"""Lines come out whole and in order; a reader who is slow or gone costs lines, never a request."""

from __future__ import annotations

import io
import os

import pytest

from zurelay import loglines
from zurelay.loglines import LogLines


def test_lines_come_out_whole_and_in_order() -> None:
    out = io.BytesIO()
    lines = LogLines(out)
    for number in range(1_000):
        lines.add(b"line %d" % number)
    lines.wait_until_written()
    assert out.getvalue().splitlines() == [b"line %d" % number for number in range(1_000)]
    assert lines.dropped == 0


def test_a_reader_that_is_gone_costs_the_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as out:
        lines = LogLines(out)
        lines.add(b"to nobody")
        lines.wait_until_written()
    assert lines.dropped == 1


def test_a_reader_that_is_slow_never_makes_us_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loglines, "_MOST_WAITING", 10)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as out, os.fdopen(reading, "rb") as reader:
        lines = LogLines(out)
        for _ in range(1_000):
            lines.add(b"x" * 1_000)
        assert lines.dropped > 0
        taken = 1_000 - lines.dropped
        for _ in range(taken):
            assert reader.readline() == b"x" * 1_000 + b"\n"
        lines.wait_until_written()
