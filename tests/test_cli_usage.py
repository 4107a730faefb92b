"""`zurelay usage`: the store's figures in three forms, and what can't be shown."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from zurelay.cli import main
from zurelay.limits import Reservation
from zurelay.store import Spent
from zurelay.store_sqlite import SqliteStore
from zurelay.usage import Usage

CONFIG = """
listen: {port: 8080}
status: {port: 8081}
auth: {require: none}
providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}
models: {m: {routes: [{provider: p, model: m}], context_window: 1000}}
store: {sqlite: spend.db}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "zurelay.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def spent(config: Path) -> Path:
    """A configuration whose store holds two requests."""

    async def settle() -> None:
        store = await SqliteStore.open(str(config.parent / "spend.db"))
        for day, key in (("2026-11-29", "team-a"), ("2026-11-30", "team-b")):
            used = Usage(prompt=10, completion=5, estimated=key == "team-b")
            store.settle(Reservation(day=day), Spent(key=key, model="m", usage=used, usd=Decimal("0.125")))
        await store.close()

    asyncio.run(settle())
    return config


def run(config: Path, *arguments: str) -> Result:
    days = ("--since", "2026-11-29", "--until", "2026-11-30")
    return CliRunner().invoke(main, ["usage", "--config", str(config), *days, *arguments])


def test_a_table_has_rows_a_total_and_notes(spent: Path) -> None:
    done = run(spent, "--by", "key")
    assert [
        ["key", "requests", "failed", "input", "cached", "output", "USD", "ours USD"],
        ["team-a", "1", "0", "10", "0", "5", "0.125000", "0.000000"],
        ["team-b", "1", "0", "10", "0", "5", "0.125000", "0.000000"],
        ["total", "2", "0", "20", "0", "10", "0.250000", "0.000000"],
    ] == [line.split("\t") for line in done.stdout.splitlines()]
    assert "estimates" in done.stderr


def test_json_and_csv_hold_the_same(spent: Path) -> None:
    found = json.loads(run(spent, "--json", "--by", "day,key").stdout)
    assert "0.25" == found["total"]["usd"]
    rows = list(csv.DictReader(io.StringIO(run(spent, "--csv", "--by", "day,key").stdout)))
    assert [row["day"] for row in found["rows"]] == [row["day"] for row in rows] == ["2026-11-29", "2026-11-30"]


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("--by", "nonsense"), 2, "expected some of day, key, workload, model"),
        (("--since", "soon"), 2, "is no day"),
        (("--json", "--csv"), 2, "choose one"),
    ],
)
def test_what_is_not_understood_ends_with_2(spent: Path, arguments: tuple[str, ...], status: int, told: str) -> None:
    done = run(spent, *arguments)
    assert (status, "") == (done.exit_code, done.stdout)
    assert told in done.stderr


def test_a_store_that_is_not_there_and_a_bad_configuration_end_with_1(config: Path) -> None:
    done = run(config)
    assert 1 == done.exit_code
    assert "isn't there" in done.stderr
    config.write_text(CONFIG + "nonsense: 1\n")
    assert 1 == run(config).exit_code
