from __future__ import annotations

import os
import subprocess
import sys

from bench import proc

STAT = "77 (a b) c) S 5 77 77 0 -1 4194304 100 0 0 0 250 31 0 0 20 0 9 0 100 1000 10 18446744073709551615 0 0"


def test_ticks_are_user_and_system_time_whatever_the_name_holds() -> None:
    assert 250 + 31 == proc.ticks(STAT)


def test_resident_memory_is_read_in_kibibytes() -> None:
    assert proc.resident("Name:\tx\nVmHWM:\t 900 kB\nVmRSS:\t  812 kB\n") == 812


def test_a_process_that_is_ending_has_no_memory() -> None:
    assert proc.resident("Name:\tx\nState:\tZ (zombie)\n") == 0


def test_a_child_is_found_by_its_parent() -> None:
    command = [sys.executable, "-c", "input()", "a word"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        found = proc.children(os.getpid())
        child.kill()
    assert "a word" in found[child.pid]


def test_the_peak_of_memory_counts_from_its_reset_on() -> None:
    pids = [os.getpid()]
    large = bytearray(b"x" * (64 << 20))
    with_it = proc.peak(pids)
    del large
    proc.reset_peak(pids)
    assert proc.peak(pids) < with_it - 32
