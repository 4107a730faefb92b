"""A run that is broken off leaves nothing behind: no process, no file."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def directory() -> Iterator[pathlib.Path]:
    """A short one: it holds Unix sockets."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="b"))
    yield made
    shutil.rmtree(made)


def processes(word: str) -> list[str]:
    """The command lines that name a directory."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if word in command:
            found.append(command)
    return found


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for the stub")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_broken_off_leaves_no_process(directory: pathlib.Path, by: signal.Signals) -> None:
    environ = {**os.environ, "TMPDIR": str(directory), "PYTHONPATH": f"{ROOT}/service{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "bench", "--quick"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ, cwd=ROOT) as run:
        assert run.stderr is not None
        said = next((line for line in run.stderr if line.startswith(("requests", "streams"))), None)
        assert said is not None
        assert len(processes(str(directory))) >= 3  # the stub, both gateways
        run.send_signal(by)
        assert run.wait(30) != 0
        rest = run.stderr.read()
    end = time.monotonic() + 20  # the load generator ends by itself
    while left := processes(str(directory)):
        assert time.monotonic() < end, left
        time.sleep(0.05)
    if by != signal.SIGKILL:
        assert rest.endswith("interrupted: nothing of it runs any more\n")
        assert list(directory.iterdir()) == []
