"""The README's commands do what it says: they are read out of it and run."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from e2e.harness import free_port
from zurelay import settings

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """What `make run` serves, on ports of our own; the address stands in for the README's."""
    assert blocks("sh")[0] == "make run\n"
    port = free_port()
    running = subprocess.Popen(
        ["make", "run", f"ARGS=--port {port} --status-port {free_port()}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )
    assert running.stdout is not None
    lines = iter(running.stdout.readline, "")
    assert any("zurelay is ready" in line for line in lines)
    drained = threading.Thread(target=lambda: [None for _ in lines])
    drained.start()
    yield f"127.0.0.1:{port}"
    os.killpg(running.pid, signal.SIGINT)
    running.wait(30)
    drained.join(10)
    running.stdout.close()


def shell(command: str) -> str:
    """Run a README command; what it prints."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_first_request_is_answered_as_shown(address: str) -> None:
    answer = shell(blocks("sh")[1].replace("127.0.0.1:8080", address))
    shown = blocks("")[0]
    assert answer.splitlines()[0] == shown.splitlines()[0]
    for line in shown.split("\n\n")[0].splitlines()[1:]:
        name, _, value = line.partition(": ")
        found = re.search(rf"^{name}: (.*?)\r?$", answer, re.MULTILINE)
        assert found is not None, name
        assert found[1] == value or name == "x-zurelay-request-id"


def test_the_sdk_example_prints_an_answer(address: str) -> None:
    program = blocks("python")[0].replace("127.0.0.1:8080", address)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip()


def test_the_broken_request_takes_two_attempts(address: str) -> None:
    assert "x-zurelay-attempts: 2" in shell(blocks("sh")[2].replace("127.0.0.1:8080", address))


def test_the_example_configuration_is_good() -> None:
    found = settings.parse(blocks("yaml")[0], environ={"OPENAI_API_KEY": "set"}, readable=lambda _: True)
    assert list(found.models) == ["gpt-6-sol", "local"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
