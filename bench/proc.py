"""What Linux tells of processes (proc(5)): processor time, memory, children."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12  # of the fields behind the name in /proc/PID/stat: proc(5) counts them 14 and 15
_PARENT = 1


def cpu_seconds(pids: Iterable[int]) -> float:
    """Sum the processor time of processes, threads that have ended included."""
    return sum(ticks(_read(pid, "stat")) for pid in pids) / _TICKS


def ticks(stat: str) -> int:
    """Read user and system time, in ticks, from a /proc/PID/stat. The name may hold spaces and brackets."""
    fields = _behind_name(stat)
    return int(fields[_USER]) + int(fields[_SYSTEM])


def mebibytes(pids: Iterable[int]) -> float:
    """Sum the resident memory of processes."""
    return sum(resident(_read(pid, "status")) for pid in pids) / 1024


def resident(status: str) -> int:
    """Read the resident memory, in KiB, from a /proc/PID/status."""
    return _kibibytes(status, "VmRSS")


def _kibibytes(status: str, name: str) -> int:
    """Read a size; a process that is ending has none."""
    line = next((line for line in status.splitlines() if line.startswith(f"{name}:")), "x: 0 kB")
    return int(line.split()[1])


def reset_peak(pids: Iterable[int]) -> None:
    """Let `peak` count from now on (proc(5), clear_refs)."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak(pids: Iterable[int]) -> float:
    """Sum the most memory, in MiB, that processes had resident since the last `reset_peak`."""
    return sum(_kibibytes(_read(pid, "status"), "VmHWM") for pid in pids) / 1024


def children(parent: int) -> dict[int, str]:
    """Give the command lines of a process's children by their ids."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if int(_behind_name((entry / "stat").read_text())[_PARENT]) == parent:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
            continue
    return found


def _behind_name(stat: str) -> list[str]:
    return stat.rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()
