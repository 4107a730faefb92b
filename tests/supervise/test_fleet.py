import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest

from supervise.workers import COMMAND
from zurelay.supervise import fleet as fleet_module
from zurelay.supervise.fleet import Fleet, NotConfiguredError, without
from zurelay.supervise.member import Member
from zurelay.supervise.polling import until

ENVIRON = {**os.environ, "ZURELAY_TEST": "seen"}


class Launches:
    """Gives the command of each worker, and counts how often it was asked."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __call__(self, number: int) -> tuple[Sequence[str], Mapping[str, str], str]:
        self.numbers.append(number)
        return COMMAND, ENVIRON, "/"


@pytest.fixture(name="launches")
def _launches() -> Launches:
    return Launches()


@pytest.fixture(name="fleet")
async def _fleet(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    monkeypatch.setattr(fleet_module, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(fleet_module, "_GRACE", 0.2)
    fleet = Fleet(2, launches)
    yield fleet
    await fleet.stop()


async def so(met: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return met()

    await until(ask, 20)


async def serving(fleet: Fleet) -> None:
    await so(lambda: fleet.serving == fleet.size)


def told(fleet: Fleet) -> set[tuple[str, str]]:
    """What the workers were configured with."""
    commands = [member.configured for member in fleet._members.values()]
    return {(command.config, command.keys) for command in commands if command is not None}


async def test_all_workers_serve(fleet: Fleet) -> None:
    assert fleet.serving == 0

    fleet.start("ok", "")

    await serving(fleet)
    assert len(set(fleet.pids)) == 2


async def test_workers_get_their_environment(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)

    assert (await fleet.totals())["seen", ()] == (2,)


async def test_a_worker_that_is_killed_is_replaced_and_configured(fleet: Fleet, launches: Launches) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    before = fleet.pids

    os.kill(before[1], signal.SIGKILL)

    await so(lambda: fleet.restarts == 1 and fleet.serving == 2)
    assert fleet.pids[0] == before[0]
    assert fleet.pids[1] != before[1]
    assert sorted(launches.numbers) == [0, 1, 1]


async def test_the_second_start_comes_at_once_and_later_ones_wait_longer_and_longer(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.start("leave", "")

    await so(lambda: fleet.restarts >= 8)

    ends = [record.getMessage() for record in caplog.records if record.getMessage().startswith("worker 0 ended")]
    assert [line.rpartition(" in ")[2] for line in ends[:4]] == ["0 s", "0.01 s", "0.02 s", "0.04 s"]


async def test_a_worker_that_freezes_is_replaced(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_WATCH", 0.02), ("_REPORT", 0.1), ("_FROZEN", 0.5)):
        monkeypatch.setattr(fleet_module, name, seconds)
    fleet.start("ok", "")
    await serving(fleet)
    frozen = fleet.pids[0]

    os.kill(frozen, signal.SIGSTOP)

    await so(lambda: frozen not in fleet.pids and fleet.serving == 2)
    assert fleet.restarts == 1


async def test_a_worker_that_only_pauses_stays(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_WATCH", 0.02), ("_REPORT", 0.05)):
        monkeypatch.setattr(fleet_module, name, seconds)
    fleet.start("ok", "")
    await serving(fleet)
    before = fleet.pids

    os.kill(before[0], signal.SIGSTOP)
    await fleet.totals()
    os.kill(before[0], signal.SIGCONT)

    await serving(fleet)
    await fleet.totals()
    assert fleet.pids == before


async def test_a_new_configuration_reaches_every_worker_and_those_to_come(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)

    await fleet.configure("other", "keys")

    assert told(fleet) == {("other", "keys")}
    os.kill(fleet.pids[0], signal.SIGKILL)
    await so(lambda: fleet.restarts == 1 and fleet.serving == 2)
    assert told(fleet) == {("other", "keys")}


async def test_a_configuration_that_a_worker_refuses_costs_none(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    before = fleet.pids

    for _ in range(3):
        with pytest.raises(NotConfiguredError, match="it won't"):
            await fleet.configure("problem", "")

    assert fleet.pids == before
    assert fleet.restarts == 0
    assert told(fleet) == {("ok", "")}


async def test_a_configuration_that_crashes_a_worker_is_tried_in_one_only(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    before = fleet.pids

    with pytest.raises(NotConfiguredError):
        await fleet.configure("crash", "")

    await so(lambda: fleet.restarts == 1 and fleet.serving == 2)
    assert len({*before, *fleet.pids}) == 3
    await fleet.configure("ok again", "")
    assert fleet.restarts == 1


async def test_a_frozen_worker_does_not_hold_up_a_new_configuration(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "_CONFIGURE", 0.3)
    fleet.start("ok", "")
    await serving(fleet)
    before = fleet.pids

    os.kill(before[0], signal.SIGSTOP)
    await fleet.configure("other", "")

    await so(lambda: before[0] not in fleet.pids and fleet.serving == 2)
    assert told(fleet) == {("other", "")}


async def test_the_same_configuration_disturbs_no_one(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    for pid in fleet.pids:
        os.kill(pid, signal.SIGSTOP)

    await asyncio.wait_for(fleet.configure("ok", ""), 1)


async def test_what_the_dead_have_counted_still_counts(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    before = (await fleet.totals())["reports", ()]

    os.kill(fleet.pids[0], signal.SIGKILL)
    await so(lambda: fleet.restarts == 1 and fleet.serving == 2)

    assert (await fleet.totals())["reports", ()] > before


def drains(member: Member) -> float:
    return next(sample.values[0] for sample in member.samples if sample.family == "drains")


async def test_draining_reaches_every_worker_and_those_to_come(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)

    await fleet.drain()
    os.kill(fleet.pids[0], signal.SIGKILL)
    await so(lambda: fleet.restarts == 1 and fleet.serving == 2)
    await fleet.totals()

    await so(lambda: [drains(member) for member in fleet._members.values()] == [1, 1])


async def test_workers_say_how_many_calls_are_under_way_and_finish_them(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)

    await fleet.leave()
    assert await fleet.open() == 6

    await fleet.finish(5)
    assert await fleet.open() == 0


async def test_a_frozen_worker_can_not_be_drained_and_that_is_said(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fleet_module, "_DRAIN", 0.1)
    fleet.start("ok", "")
    await serving(fleet)
    os.kill(fleet.pids[1], signal.SIGSTOP)

    with caplog.at_level(logging.WARNING):
        await fleet.drain()

    assert "worker 1 doesn't answer within 0.1 s: it can't be told to drain" in caplog.text


async def test_stopping_ends_every_worker(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    children = [member.child for member in fleet._members.values()]

    await fleet.stop()

    assert [child.running for child in children] == [False, False]


async def test_killing_ends_frozen_workers_too(fleet: Fleet) -> None:
    fleet.start("ok", "")
    await serving(fleet)
    children = [member.child for member in fleet._members.values()]
    for child in children:
        os.kill(child.pid, signal.SIGSTOP)

    fleet.kill()
    await fleet.stop()

    assert [await child.wait() for child in children] == ["ended by SIGKILL", "ended by SIGKILL"]


def test_provider_keys_are_left_out_of_an_environment() -> None:
    environ = {"PATH": "/bin", "A_KEY": "secret", "B_KEY": "secret"}

    assert without(environ, frozenset({"A_KEY", "B_KEY", "C_KEY"})) == {"PATH": "/bin"}
