"""wrk, the load generator for requests: its script, its run, what it says."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.running import BenchError, output

MISSING = "wrk is missing, so latencies and rates of requests are left out: apt install wrk"
_MARK = "bench:"

# One line of JSON at the end: what wrk prints for people has two digits. Times are in microseconds.
_DONE = f"""
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{_MARK}{{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d}}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What wrk saw: how many answers in how long, how late, and how many went wrong."""

    requests: int
    microseconds: int
    p50: int
    p99: int
    failed: int

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.microseconds * 1e6


def binary() -> str | None:
    """Find wrk."""
    return shutil.which("wrk")


def script(body: bytes, headers: Mapping[str, str]) -> str:
    """Write the Lua that says what is sent."""
    lines = ['wrk.method = "POST"', f"wrk.body = {_lua(body.decode())}"]
    lines += [f"wrk.headers[ {_lua(name)} ] = {_lua(value)}" for name, value in headers.items()]
    return "\n".join(lines) + _DONE


def _lua(text: str) -> str:
    """Write a string of ours as Lua's long bracket, in which nothing is escaped."""
    if "]==]" in text:
        raise ValueError("the text holds the end of its bracket")
    return f"[==[{text}]==]"


def read(text: str) -> Load:
    """Read what our script printed at the end of a run."""
    found = [line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)]
    if len(found) != 1:
        raise BenchError(f"wrk did not say what it measured:\n{text}")
    return msgspec.json.decode(found[0], type=Load)


async def run(program: str, url: str, script_file: Path, connections: int, seconds: int) -> Load:
    """Load a server with one thread."""
    duration = ("-d", f"{seconds}s", "--timeout", "20s")
    command = (program, "-t", "1", "-c", str(connections), *duration, "-s", str(script_file), url)
    return read(await output(*command))
