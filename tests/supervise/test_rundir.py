import stat
from pathlib import Path

import pytest

from zurelay.supervise.rundir import RunDirectory, RunDirectoryError, replace, run_directory


def test_a_file_is_written_once_for_each_text(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)

    assert directory.write("a.json", "1")
    first = (tmp_path / "a.json").stat().st_ino
    assert not directory.write("a.json", "1")
    assert (tmp_path / "a.json").stat().st_ino == first
    assert directory.write("a.json", "2")

    assert (tmp_path / "a.json").read_text() == "2"
    assert directory.written("a.json") == "2"


def test_a_file_is_replaced_and_not_written_into(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write("a.json", "1")

    with (tmp_path / "a.json").open() as reader:
        directory.write("a.json", "2")

        assert reader.read() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_files_are_for_the_owner_alone(tmp_path: Path) -> None:
    RunDirectory(tmp_path).write("a.json", "1")

    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


def test_a_removed_file_is_gone_and_can_be_written_again(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write("a.json", "1")

    directory.remove("a.json")
    directory.remove("a.json")

    assert (directory.names, directory.written("a.json")) == ((), None)
    assert directory.write("a.json", "1")


def test_a_temporary_directory_is_for_the_owner_and_goes() -> None:
    with run_directory(None) as directory:
        directory.write("a.json", "1")
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
        assert len(directory.file("worker-127.sock")) <= 107

    assert not directory.path.exists()


def test_a_temporary_directory_is_short_even_where_the_usual_place_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    with run_directory(None) as directory:
        assert len(directory.file("worker-127.sock")) <= 107


def test_a_named_directory_is_made_and_stays(tmp_path: Path) -> None:
    with run_directory(tmp_path / "a" / "run") as directory:
        directory.write("a.json", "1")

    assert (tmp_path / "a" / "run" / "a.json").exists()
    assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o700


def test_a_directory_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with run_directory(tmp_path), pytest.raises(RunDirectoryError, match="another zurelay runs here"):  # noqa: SIM117
        with run_directory(tmp_path):
            pass

    with run_directory(tmp_path):
        pass


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("d" * 120, "too long for Unix sockets", id="too long"),
        pytest.param("file/run", "can't be used as the run directory: Not a directory", id="under a file"),
    ],
)
def test_a_directory_that_can_not_be_used_says_why(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RunDirectoryError, match=message), run_directory(tmp_path / name):
        pass


def test_a_users_file_keeps_its_mode_and_its_symlink(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "keys.yaml"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)

    replace(link, "new\r\n")

    assert link.is_symlink()
    assert real.read_bytes() == b"new\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys.yaml", "real.yaml"]
