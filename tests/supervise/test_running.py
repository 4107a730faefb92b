import asyncio
import contextlib
import json
import logging
import os
import signal
import sys

import pytest

from zurelay.supervise import running
from zurelay.supervise.process import Child
from zurelay.supervise.running import FailedError, Kill


def test_what_went_wrong_is_logged_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: list[Kill]) -> None:
        raise FailedError("this\nand that")

    assert running.run(fail) == 1
    assert caplog.messages == ["this", "and that"]


def test_the_first_signal_ends_in_order_and_the_second_at_once() -> None:
    done: list[str] = []

    async def main(kills: list[Kill]) -> None:
        kills.append(lambda: done.append("killed"))
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            done.append("ending")
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    assert running.run(main) == 130
    assert done == ["ending", "killed"]


def test_one_signal_is_a_good_end() -> None:
    async def main(_: list[Kill]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    assert running.run(main) == 0


async def test_a_child_ends_with_the_stack() -> None:
    kills: list[Kill] = []
    async with contextlib.AsyncExitStack() as stack:
        sleeper = Child.start("sleeper", [sys.executable, "-c", "input()"])
        started = await running.child(sleeper, stack, kills)
        assert started.running
        assert len(kills) == 1
    assert not started.running


def test_log_lines_may_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    root, before = logging.getLogger(), list(logging.getLogger().handlers)
    root.handlers = []
    try:
        running.set_up_logging(as_json=True)
        try:
            int("no")
        except ValueError:
            logging.getLogger("zurelay").exception("it broke")
    finally:
        root.handlers = before
    line = json.loads(capsys.readouterr().err)

    assert (line["level"], line["message"]) == ("error", "it broke")
    assert "ValueError: invalid literal" in line["trace"]
