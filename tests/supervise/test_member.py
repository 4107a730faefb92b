import os
import signal
from collections.abc import AsyncIterator

import pytest

from supervise.workers import COMMAND
from zurelay.supervise.member import Command, Member, WorkerFrozenError, WorkerGoneError, WorkerRefusedError
from zurelay.tally import Sample

CONFIGURE = Command(op="configure", config="ok")
REPORT = Command(op="report")
REPORTED_ONCE = Sample("reports", (), (1.0,))


@pytest.fixture(name="member")
async def _member() -> AsyncIterator[Member]:
    member = await Member.start("worker 0", COMMAND, dict(os.environ), "/")
    yield member
    member.child.kill()
    await member.ended()


async def test_an_answer_belongs_to_its_question(member: Member) -> None:
    assert (await member.ask(CONFIGURE, 10)).op == "configure"
    assert (await member.ask(REPORT, 10)).samples[0] == REPORTED_ONCE
    assert member.samples[0] == REPORTED_ONCE


async def test_an_answer_that_comes_too_late_is_no_answer_to_the_next_question(member: Member) -> None:
    await member.ask(CONFIGURE, 10)
    os.kill(member.child.pid, signal.SIGSTOP)
    with pytest.raises(WorkerFrozenError, match=r"worker 0 doesn't answer within 0\.05 s"):
        await member.ask(REPORT, 0.05)
    assert member.waiting

    os.kill(member.child.pid, signal.SIGCONT)

    assert (await member.ask(CONFIGURE, 10)).op == "configure"
    assert member.samples[0] == REPORTED_ONCE
    assert not member.waiting


async def test_a_configuration_is_said_once(member: Member) -> None:
    await member.configure(CONFIGURE, 10)
    await member.ask(REPORT, 10)
    os.kill(member.child.pid, signal.SIGSTOP)

    await member.configure(CONFIGURE, 0.05)

    assert member.configured is CONFIGURE


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("crash", "worker 0 ended before it answered"),
        ("babble", "worker 0 ended before it answered"),
    ],
)
async def test_a_worker_that_ends_is_gone(member: Member, word: str, message: str) -> None:
    with pytest.raises(WorkerGoneError, match=message):
        await member.configure(Command(op="configure", config=word), 10)

    assert member.configured is None


async def test_a_worker_that_refuses_lives_on(member: Member) -> None:
    with pytest.raises(WorkerRefusedError, match="it won't"):
        await member.configure(Command(op="configure", config="problem"), 10)

    assert member.configured is None
    assert member.child.running


async def test_the_dead_are_not_asked(member: Member) -> None:
    member.child.kill()
    assert await member.ended() == "ended by SIGKILL"

    with pytest.raises(WorkerGoneError, match="worker 0 has ended"):
        await member.ask(REPORT, 10)
