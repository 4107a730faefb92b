import datetime as dt

import pytest

from zurelay import report
from zurelay.model import Key
from zurelay.problems import Problem
from zurelay.supervise.loading import FileProblem

KEYS = (
    Key(name="a", digest=bytes(32), models=("gpt-*", "zurelay-auto")),
    Key(name="b", digest=bytes(32), disabled=True),
    Key(name="c", digest=bytes(32), expires=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
)


@pytest.fixture(name="terminal")
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("terminal")
def test_keys_are_a_table_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report.keys(KEYS, as_json=False)

    out = capsys.readouterr().out
    assert "┃" in out
    assert [word for word in ("gpt-* zurelay-auto", "disabled", "expired", "2020-01-01") if word not in out] == []


@pytest.mark.usefixtures("terminal")
def test_problems_are_in_colour_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report.problems((FileProblem("a.yaml", Problem(3, "x.y", "is [red]wrong[/red]")),), as_json=False)

    err = capsys.readouterr().err
    assert "\x1b[" in err
    assert "line 3: x.y: is [red]wrong[/red]" in err


def test_long_problems_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    report.problems((FileProblem("a.yaml", Problem(3, "x", "long " * 50)),), as_json=False)

    assert capsys.readouterr().err.splitlines()[0] == "a.yaml: line 3: x: " + "long " * 50
