"""Answers larger than what is held of one: where the head tells enough, the plan goes on without the body."""

from __future__ import annotations

import concurrent.futures
import pathlib
from collections.abc import Iterator

import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, ask
from e2e.scripted import ScriptedProvider, answer, whole

BIG = b"x" * (70 << 20)
TOLD = b"content-length: %d\r\n" % len(BIG)
GOOD = answer(whole())


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedProvider]:
    running = ScriptedProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def gateway(scripted: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory: pathlib.Path = tmp_path_factory.mktemp("large")
    running = Gateway(directory, catalog(scripted.port)).wait_ready()
    envoy = running.envoy
    yield running
    assert envoy == running.envoy
    assert 0 == running.stop(), "".join(running.log)


CASES = {
    "a failure whose length is told": (answer(BIG, status=500, more=TOLD), 200, ["m1", "m1", "m2"]),
    "a failure without end": (answer(BIG, status=502), 200, ["m1", "m1", "m2"]),
    "too many requests": (answer(BIG, status=429, more=TOLD), 200, ["m1", "m2"]),
    "denied": (answer(BIG, status=403), 200, ["m1", "m2"]),
    "an answer whose length is told": (answer(BIG, more=TOLD), 200, ["m1", "m1", "m2"]),
    "the client's mistake": (answer(BIG, status=400, more=TOLD), 400, ["m1"]),
    "no answer that HTTP has": (answer(BIG, status=302), 200, ["m1", "m1", "m2"]),
}


@pytest.mark.parametrize(("said", "status", "asked"), [pytest.param(*row, id=name) for name, row in CASES.items()])
def test_a_body_that_cannot_be_had_does_not_end_the_plan(
    gateway: Gateway, scripted: ScriptedProvider, said: bytes, status: int, asked: list[str]
) -> None:
    scripted.answers = {"m1": said, "m2": GOOD, "m3": GOOD}
    scripted.asked.clear()
    answered = gateway.chat(ask("trio"))
    assert (status, asked) == (answered.status_code, scripted.asked)


@pytest.mark.parametrize("size", [10, 40_000, 900_000])
def test_failures_that_come_before_the_body_has_gone_are_judged_too(
    gateway: Gateway, scripted: ScriptedProvider, size: int
) -> None:
    """Without a length they are judged by their heads, while the request is still on its way out (decision 6)."""
    scripted.at_the_head = answer(b'{"error":{"message":"busy"}}', status=500)
    scripted.answers = dict.fromkeys(("m1", "m2", "m3"), b"")
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answered = list(pool.map(lambda _: gateway.chat(ask("trio", "x" * size)), range(64)))
    finally:
        scripted.at_the_head = None
    assert {503} == {each.status_code for each in answered}
