import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from zurelay.supervise.polling import until
from zurelay.supervise.process import Child, package_command, prefixed


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def is_there(pid: int) -> bool:
    """Tell whether a process runs; one that has ended but whose parent hasn't asked yet doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Start(Protocol):
    async def __call__(self, *args: Any, **kwargs: Any) -> Child: ...


@pytest.fixture(name="start")
async def _start() -> AsyncIterator[Start]:
    """Start children that are gone after the test."""
    children: list[Child] = []

    async def start(*args: Any, **kwargs: Any) -> Child:
        children.append(await Child.start(*args, **kwargs))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        await child.wait()
        while not child.stdout.at_eof():
            await child.stdout.read()


async def gone(*pids: int) -> None:
    async def none_left() -> bool:
        return not any(map(is_there, pids))

    await until(none_left, 10)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        pytest.param("print('one'); print('two')", ["one", "two"], id="two lines"),
        pytest.param("print('one', end='')", ["one"], id="no line end at the end"),
        pytest.param("", [], id="silence"),
        pytest.param("import sys; sys.stderr.write('oh\\n')", ["oh"], id="standard error too"),
        pytest.param("import sys; sys.stdout.buffer.write(b'\\xff\\n')", ["\ufffd"], id="bytes that aren't UTF-8"),
        pytest.param("print('x' * 200_000)", None, id="a line longer than what is held"),
    ],
)
async def test_output_comes_line_by_line(start: Start, code: str, lines: list[str] | None) -> None:
    heard: list[str] = []

    child = await start("it", python(code), sink=heard.append)

    assert await child.wait() == "ended with status 0"
    if lines is None:
        assert "".join(heard) == "x" * 200_000
    else:
        assert heard == lines
        assert child.tail == tuple(lines)


def test_a_sink_writes_the_name_before_each_line(capfd: pytest.CaptureFixture[str]) -> None:
    prefixed("envoy")("hello")

    assert capfd.readouterr().err == "envoy    | hello\n"


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("raise SystemExit(3)", "ended with status 3"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
    ],
)
async def test_the_end_is_told_in_words(start: Start, code: str, how: str) -> None:
    child = await start("it", python(code), sink=[].append)

    assert await child.wait() == how
    assert not child.running


async def test_a_command_that_is_not_there_ends_with_its_reason(start: Start) -> None:
    child = await start("it", ["/nowhere/envoy"], sink=[].append)

    assert await child.wait() == "ended with status 1"
    assert child.tail == ("/nowhere/envoy: can't be run: No such file or directory",)


async def test_a_line_can_be_waited_for(start: Start) -> None:
    child = await start("it", python("print('a'); print('port 7'); input()"), sink=[].append)

    found = await child.says(re.compile(r"port (\d+)"))

    assert found is not None
    assert found[1] == "7"


async def test_waiting_for_a_line_ends_with_the_process(start: Start) -> None:
    child = await start("it", python("print('no')"), sink=[].append)

    assert await child.says(re.compile("yes")) is None


async def test_a_process_is_asked_to_end_first(start: Start) -> None:
    child = await start("it", python("print('up', flush=True); import time; time.sleep(60)"), sink=[].append)
    await child.says(re.compile("up"))

    await child.end(grace=10)

    assert await child.wait() == "ended by SIGTERM"


async def test_a_process_that_does_not_end_is_killed(start: Start) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child = await start("it", python(code), sink=[].append)
    await child.says(re.compile("up"))

    await child.end(grace=0.1)

    assert await child.wait() == "ended by SIGKILL"


async def test_ending_what_has_ended_does_nothing(start: Start) -> None:
    child = await start("it", python(""), sink=[].append)
    await child.wait()

    await child.end(grace=1)
    child.kill()

    assert await child.wait() == "ended with status 0"


async def test_without_a_sink_there_is_a_line_to_talk_on(start: Start) -> None:
    child = await start("it", python("print(input()[::-1], flush=True); input()"))

    child.stdin.write(b"abc\n")

    assert await child.stdout.readline() == b"cba\n"


async def test_ctrl_c_reaches_the_supervisor_alone(start: Start) -> None:
    child = await start("it", python("import os; print(os.getpgid(0)); input()"))

    assert int(await child.stdout.readline()) == child.pid != os.getpgid(0)


_PARENT = """
import asyncio, sys
from zurelay.supervise.process import Child

async def main():
    code = "print('up', flush=True); import time; time.sleep(60)"
    children = [await Child.start("it", [sys.executable, "-c", code]) for _ in range(2)]
    for child in children:
        await child.stdout.readline()
    print(*(child.pid for child in children), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "end", [pytest.param(lambda pid: os.kill(pid, signal.SIGKILL), id="killed"), pytest.param(None, id="crashed")]
)
async def test_no_child_outlives_its_parent(start: Start, end: Callable[[int], None] | None) -> None:
    parent = await start("parent", [sys.executable, "-c", _PARENT])
    pids = [int(word) for word in (await parent.stdout.readline()).split()]
    os.kill(pids[1], signal.SIGSTOP)  # a frozen one can't notice anything by itself
    assert all(map(is_there, pids))

    (end or (lambda pid: os.kill(pid, signal.SIGSEGV)))(parent.pid)

    await gone(*pids)
    await asyncio.wait_for(parent.wait(), 10)


def test_the_package_runs_by_the_same_python_and_not_from_the_working_directory() -> None:
    assert package_command("simulate", "--port", "0") == [
        sys.executable, "-P", "-m", "zurelay", "simulate", "--port", "0",
    ]  # fmt: skip
