from pathlib import Path

import pytest

from supervise.lives import Config
from supervise.making import loaded
from zurelay.supervise import machine, starting
from zurelay.supervise.starting import Options


@pytest.mark.parametrize(
    ("given", "ports"),
    [
        pytest.param({}, (8080, 8081), id="as the demo says"),
        pytest.param({"port": 9000}, (9000, 9001), id="the demo moves both"),
        pytest.param({"status_port": 9}, (8080, 9), id="one alone"),
        pytest.param({"port": 9000, "status_port": 9}, (9000, 9), id="each where it was told"),
    ],
)
def test_the_command_line_says_where_to_listen(given: dict[str, int], ports: tuple[int, int]) -> None:
    settings = starting.load(Options(**given), None).settings  # type: ignore[arg-type]  # ports alone are given

    assert (settings.listen.port, settings.status.port) == ports


def test_a_configurations_status_port_stays_when_its_other_port_is_moved(config: Config) -> None:
    settings = starting.load(Options(config=config.path, port=9000), None).settings

    assert (settings.listen.port, settings.status.port) == (9000, config.status)


@pytest.mark.parametrize(
    ("envoys", "ours", "heap"),
    [
        pytest.param(0, 512 << 20, 256 << 20, id="half of what it shares"),
        pytest.param(0, 64 << 30, 2 << 30, id="never more than it can use"),
        pytest.param(1000 << 20, 128 << 20, 800 << 20, id="most of its own"),
        pytest.param(16 << 30, 128 << 20, (16 << 30) * 4 // 5, id="whatever ours is"),
    ],
)
def test_envoys_heap_is_bounded_by_the_memory_that_it_has(
    envoys: int, ours: int, heap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory", lambda: ours)

    assert starting.heap(Options(envoy_memory=envoys)) == heap


@pytest.mark.parametrize(("allowed", "warned"), [(None, False), (128, False), (6, False), (5, True), (2, True)])
def test_an_envoy_that_could_not_watch_its_files_is_warned_of(
    allowed: int | None, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(machine, "watches", lambda: allowed)

    starting.check_watches(loaded(tmp_path, key="A_KEY"))

    assert ["Envoy watches 3 files" in message for message in caplog.messages] == ([True] if warned else [])


def test_the_machine_says_how_much_may_be_watched() -> None:
    limit = machine.watches()

    assert limit is None or limit > 0
