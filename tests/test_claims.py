"""The file of requests that are over: each end counts once, in whichever worker."""

from __future__ import annotations

import collections
import fcntl
import logging
import multiprocessing
import multiprocessing.synchronize
import pathlib

import pytest

from zurelay import claims
from zurelay.claims import Claims

NAMES = [f"req_{number}" for number in range(3_000)]


def test_the_first_one_has_it(tmp_path: pathlib.Path) -> None:
    one, other = Claims(str(tmp_path / "ends")), Claims(str(tmp_path / "ends"))
    assert [True, False, False, True] == [
        one.claim("req_1"),
        one.claim("req_1"),
        other.claim("req_1"),
        other.claim("req_2"),
    ]
    one.close()
    again = Claims(str(tmp_path / "ends"))
    assert not again.claim("req_2")
    again.close()
    other.close()


def test_many_are_remembered_before_the_oldest_is_forgotten(tmp_path: pathlib.Path) -> None:
    made = Claims(str(tmp_path / "ends"))
    assert all(made.claim(name) for name in NAMES)
    assert not any(made.claim(name) for name in NAMES)
    made.close()


def test_of_a_full_bucket_the_oldest_goes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_BUCKETS", 1)
    made = Claims(str(tmp_path / "ends"))
    for name in NAMES[:9]:
        assert made.claim(name)
    assert [False] * 8 == [made.claim(name) for name in NAMES[1:9]]
    assert made.claim(NAMES[0])
    made.close()


def claim_all(path: str, start: multiprocessing.synchronize.Event, found: multiprocessing.Queue[list[str]]) -> None:
    made = Claims(path)
    start.wait()
    found.put([name for name in NAMES if made.claim(name)])


def test_processes_that_claim_at_once_share_without_loss(tmp_path: pathlib.Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, found = context.Event(), context.Queue()
    processes = [context.Process(target=claim_all, args=(str(tmp_path / "ends"), start, found)) for _ in range(3)]
    for process in processes:
        process.start()
    start.set()
    claimed = collections.Counter(name for _ in processes for name in found.get(timeout=60))
    for process in processes:
        process.join(10)
    assert dict.fromkeys(NAMES, 1) == claimed


def hold(path: str, held: multiprocessing.synchronize.Event, over: multiprocessing.synchronize.Event) -> None:
    with pathlib.Path(path).open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        held.set()
        over.wait()


def test_a_worker_that_is_frozen_in_the_midst_holds_nobody_up(tmp_path: pathlib.Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, over = context.Event(), context.Event()
    made = Claims(str(tmp_path / "ends"))
    process = context.Process(target=hold, args=(str(tmp_path / "ends"), held, over))
    process.start()
    assert held.wait(30)
    assert [True, False] == [made.claim("req_1"), made.claim("req_1")]
    over.set()
    process.join(10)
    made.close()


def test_a_file_that_cannot_be_used_loses_no_record(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    made = Claims(str(tmp_path / "ends"))
    made.close()
    with caplog.at_level(logging.ERROR):
        assert made.claim("req_1")
    assert "requests that are over" in caplog.text
