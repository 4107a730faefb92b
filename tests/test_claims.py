"""The table of requests that are over: each end counts once, in whichever worker."""

from __future__ import annotations

import collections
import multiprocessing
import multiprocessing.synchronize
import pathlib
import time

import pytest

from zurelay import claims
from zurelay.claims import MOMENT, Claims

NAMES = [f"req_{number}" for number in range(3_000)]


@pytest.fixture(name="path")
def _path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "ends")


def test_who_judges_first_has_it(path: str) -> None:
    one, other = Claims(path), Claims(path)
    assert [True, False, False, True] == [
        one.claim("req_1"),
        one.claim("req_1"),
        other.claim("req_1"),
        other.claim("req_2"),
    ]
    one.close()
    other.close()
    again = Claims(path)
    assert not again.claim("req_2")
    again.close()


def test_what_was_judged_is_announced_by_nobody(path: str) -> None:
    one, other = Claims(path), Claims(path)
    assert one.claim("req_1")
    assert [False, True] == [other.announce("req_1"), other.is_claimed("req_1")]


def test_what_was_announced_is_claimed_and_announced_by_nobody(path: str) -> None:
    one, other = Claims(path), Claims(path)
    assert one.announce("req_1")
    assert [False, False, False] == [other.claim("req_1"), other.announce("req_1"), one.is_claimed("req_1")]


def test_a_judge_who_had_not_seen_the_announcement_is_seen(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two look at the same time, before either has written: who announces looks once more, and yields."""
    judge, other = Claims(path), Claims(path)
    put = judge._put  # the place between looking and writing

    def late(mark: bytes, place: int) -> bool:
        assert other.announce("req_1")
        return put(mark, place)

    monkeypatch.setattr(judge, "_put", late)
    assert judge.claim("req_1")
    assert other.is_claimed("req_1")


def test_an_announcement_that_was_on_its_way_writes_over_no_claim(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, other = Claims(path), Claims(path)
    put = other._put

    def late(mark: bytes, place: int) -> bool:
        assert judge.claim("req_1")
        return put(mark, place)

    monkeypatch.setattr(other, "_put", late)
    assert other.announce("req_1")
    assert other.is_claimed("req_1")


def test_many_are_remembered_before_the_oldest_is_forgotten(path: str) -> None:
    made = Claims(path)
    assert all(made.claim(name) for name in NAMES)
    assert not any(made.claim(name) for name in NAMES)


def test_of_a_full_bucket_the_oldest_goes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_CLAIMED", 1)
    made = Claims(path)
    for name in NAMES[:9]:
        assert made.claim(name)
    assert [False] * 8 == [made.claim(name) for name in NAMES[1:9]]
    assert made.claim(NAMES[0])


def judge_all(path: str, start: multiprocessing.synchronize.Event, found: multiprocessing.Queue[list[str]]) -> None:
    made = Claims(path)
    start.wait()
    found.put([name for name in NAMES if made.claim(name)])


def announce_all(path: str, start: multiprocessing.synchronize.Event, found: multiprocessing.Queue[list[str]]) -> None:
    made = Claims(path)
    start.wait()
    announced = [name for name in reversed(NAMES) if made.announce(name)]
    time.sleep(MOMENT)
    found.put([name for name in announced if not made.is_claimed(name)])


def test_of_those_who_judge_and_those_who_hear_of_it_one_counts(path: str) -> None:
    """Two processes go through the same requests at once, towards each other."""
    context = multiprocessing.get_context("spawn")
    start, found = context.Event(), context.Queue()
    processes = [context.Process(target=each, args=(path, start, found)) for each in (judge_all, announce_all)]
    for process in processes:
        process.start()
    start.set()
    counted = collections.Counter(name for _ in processes for name in found.get(timeout=60))
    for process in processes:
        process.join(10)
    assert dict.fromkeys(NAMES, 1) == counted
