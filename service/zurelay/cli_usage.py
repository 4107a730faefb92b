"""The command `zurelay usage`: what was spent, from the store."""
# ruff: noqa: PLC0415  # what a command needs is imported when it runs

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import click

from zurelay.cli_parts import FILE, examples


@click.command(
    epilog=examples(
        "zurelay usage --config zurelay.yaml",
        "zurelay usage --config zurelay.yaml --by key --since 2026-11-01 --until 2026-11-30",
        "zurelay usage --config zurelay.yaml --csv > usage.csv",
    )
)
@click.option("--config", type=FILE, required=True, help="The configuration that names the store.")
@click.option("--by", default="day,key,workload,model", show_default=True, help="What to sum by, with commas between.")
@click.option("--since", metavar="DAY", help="The first day, UTC. Default: the first of this month.")
@click.option("--until", metavar="DAY", help="The last day. Default: today.")
@click.option("--json", "as_json", is_flag=True, help="Print {by, rows, total}; USD are text, as they are exact.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header.")
def usage(config: Path, by: str, since: str | None, until: str | None, as_json: bool, as_csv: bool) -> None:
    """Print spend and tokens by day, key, workload and model.

    Reads the store while the gateway writes to it; the last second may be missing.
    """
    import os

    from zurelay import report, stores, usage_report
    from zurelay.store import StoreError
    from zurelay.supervise import loading

    if as_json and as_csv:
        raise click.UsageError("--json and --csv are two forms of the same: choose one")
    try:
        columns = usage_report.columns(by)
        first, last = usage_report.days(since, until, dt.datetime.now(dt.UTC).date())
        found = loading.load(config, os.environ, elsewhere=True).settings
        rows = usage_report.rows(stores.spending(found.store, first, last), columns)
    except usage_report.UsageError as error:
        raise click.UsageError(str(error)) from None
    except loading.LoadError as error:
        report.problems(error.problems, as_json=False)
        sys.exit(1)
    except StoreError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        report.value(usage_report.as_json(rows, columns))
    elif as_csv:
        click.echo(usage_report.as_csv(rows, columns), nl=False)
    else:
        report.table(usage_report.as_table(rows, columns), usage_report.notes(usage_report.total(rows)))
