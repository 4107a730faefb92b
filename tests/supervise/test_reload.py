import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from supervise.making import text
from zurelay.supervise import reload
from zurelay.supervise.loading import Loaded, load
from zurelay.supervise.polling import until
from zurelay.supervise.reload import Reloader, need_restart
from zurelay.supervise.rollout import RefusedError

KEYS = 'keys: [{{name: {}, digest: "sha256:' + "0" * 64 + '"}}]\n'
CLOSED = text().replace("{require: none}", "{require: key, keys: keys.yaml}")


class Rollout:
    """Puts everything in force at once, unless told to refuse."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.history: list[Loaded] = []
        self.refusals: list[Exception] = []

    async def change(self, loaded: Loaded) -> None:
        if self.refusals:
            raise self.refusals.pop()
        self.loaded = loaded
        self.history.append(loaded)


class Watched:
    """A configuration in a directory, and what watches it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "zurelay.yaml"
        self.rollout = Rollout(self.load())
        self.reloader = Reloader(self.path, self.load, self.rollout)

    def load(self) -> Loaded:
        return load(self.path, {})

    async def becomes(self, text: str) -> None:
        await self.so(lambda: self.rollout.loaded.text == text)

    async def so(self, met: Callable[[], bool]) -> None:
        async def ask() -> bool:
            return met()

        await until(ask, 10)


@pytest.fixture(name="watched")
async def _watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(reload, "_LOOK", 0.02)
    monkeypatch.setattr(reload, "_STILL", 0.02)
    # As Kubernetes mounts a ConfigMap: zurelay.yaml -> ..data/zurelay.yaml, ..data -> ..one
    for name in ("..one", "..two"):
        (tmp_path / name).mkdir()
    (tmp_path / "..one" / "zurelay.yaml").write_text(CLOSED)
    (tmp_path / "..one" / "keys.yaml").write_text(KEYS.format("first"))
    (tmp_path / "..data").symlink_to("..one")
    for name in ("zurelay.yaml", "keys.yaml"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    watched = Watched(tmp_path)
    task = asyncio.create_task(watched.reloader.run())
    yield watched
    task.cancel()
    await asyncio.wait({task})


NEW = CLOSED.replace("1000", "2000")


def edit(watched: Watched) -> None:
    watched.path.write_text(NEW)


def rename_over(watched: Watched) -> None:
    fresh = watched.directory / "fresh"
    fresh.write_text(NEW)
    fresh.rename(watched.path)


def swap_data(watched: Watched) -> None:
    two = watched.directory / "..two"
    (two / "zurelay.yaml").write_text(NEW)
    (two / "keys.yaml").write_text(KEYS.format("first"))
    fresh = watched.directory / "..data_tmp"
    fresh.symlink_to("..two")
    fresh.rename(watched.directory / "..data")


def remove_and_write(watched: Watched) -> None:
    watched.path.unlink()
    watched.path.write_text(NEW)


@pytest.mark.parametrize("how", [edit, rename_over, swap_data, remove_and_write])
async def test_a_change_is_noticed_however_it_is_made(watched: Watched, how: Callable[[Watched], None]) -> None:
    how(watched)

    await watched.becomes(NEW)
    await watched.so(lambda: watched.reloader.results == {"applied": 1, "refused": 0})


async def test_a_change_of_the_keys_alone_is_noticed(watched: Watched) -> None:
    (watched.directory / "keys.yaml").write_text(KEYS.format("second"))

    await watched.so(lambda: [key.name for key in watched.rollout.loaded.keys] == ["second"])


async def test_another_keys_file_is_watched_from_then_on(watched: Watched) -> None:
    other = watched.directory / "other.yaml"
    other.write_text(KEYS.format("second"))
    watched.path.write_text(CLOSED.replace("keys.yaml", "other.yaml"))
    await watched.so(lambda: [key.name for key in watched.rollout.loaded.keys] == ["second"])

    other.write_text(KEYS.format("third"))

    await watched.so(lambda: [key.name for key in watched.rollout.loaded.keys] == ["third"])


async def test_many_changes_in_a_row_end_at_the_last(watched: Watched) -> None:
    for window in range(2000, 2100):
        watched.path.write_text(CLOSED.replace("1000", str(window)))
        await asyncio.sleep(0.002)

    await watched.becomes(CLOSED.replace("1000", "2099"))


async def test_a_file_that_is_written_in_pieces_is_read_when_it_is_whole(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "_STILL", 0.2)

    with watched.path.open("w") as file:
        for piece in NEW.splitlines(keepends=True):
            file.write(piece)
            file.flush()
            await asyncio.sleep(0.03)

    await watched.becomes(NEW)
    assert watched.reloader.results == {"applied": 1, "refused": 0}


async def test_a_bad_change_is_refused_told_and_counted_once(
    watched: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "_RETRY", 1)
    tries = 0

    def counted() -> Loaded:
        nonlocal tries
        tries += 1
        return watched.load()

    monkeypatch.setattr(watched.reloader, "_load", counted)

    watched.path.write_text(NEW.replace("openai", "opnai").replace("context_window", "contex_window"))

    await watched.so(lambda: tries > 3)
    assert watched.reloader.results == {"applied": 0, "refused": 1}
    assert watched.rollout.history == []
    told = [record.getMessage() for record in caplog.records if "line" in record.getMessage()]
    assert len(told) == 3
    assert "did you mean openai?" in told[0]


async def test_a_second_bad_change_is_told_too(watched: Watched) -> None:
    watched.path.write_text("a: 1")
    await watched.so(lambda: watched.reloader.results["refused"] == 1)
    watched.path.write_text("b: 1")
    await watched.so(lambda: watched.reloader.results["refused"] == 2)


async def test_a_bad_change_that_is_taken_back_leaves_all_as_it_was(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watched.path.write_text("a: 1")
    await watched.so(lambda: watched.reloader.results["refused"] == 1)

    watched.path.write_text(CLOSED)

    await watched.so(lambda: "says again what is in force" in caplog.text)
    assert watched.rollout.history == []


async def test_what_was_refused_is_tried_again_when_what_it_lacked_may_have_come(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "_RETRY", 2)
    new = CLOSED.replace("keys.yaml", "late.yaml")
    watched.path.write_text(new)
    await watched.so(lambda: watched.reloader.results["refused"] == 1)

    (watched.directory / "late.yaml").write_text(KEYS.format("late"))

    await watched.becomes(new)


async def test_what_envoy_or_the_workers_refuse_is_tried_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "_RETRY", 2)
    watched.rollout.refusals = [RefusedError("not yet")]

    watched.path.write_text(NEW)

    await watched.becomes(NEW)
    assert watched.reloader.results == {"applied": 1, "refused": 1}


async def test_a_fault_of_ours_does_not_end_the_watch(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.rollout.refusals = [RuntimeError("a fault")]
    watched.path.write_text(NEW)
    await watched.so(lambda: "a fault" in caplog.text)

    newer = NEW.replace("2000", "3000")
    watched.path.write_text(newer)

    await watched.becomes(newer)


@pytest.mark.parametrize(
    ("extra", "lines"),
    [
        ("", []),
        ("workers: 3\n", ["workers changed: it takes effect at the next start"]),
        ("store: {sqlite: other.db}\n", []),
    ],
)
def test_what_needs_a_restart_is_named(tmp_path: Path, extra: str, lines: list[str]) -> None:
    path = tmp_path / "zurelay.yaml"
    path.write_text(text())
    old = load(path, {})
    path.write_text(text(extra=extra))

    assert need_restart(old, load(path, {})) == lines
