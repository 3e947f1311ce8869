"""`assay sql`: a query over an experiment's rows."""

import sys
from itertools import islice
from typing import Any

import click

from assay.cli import Command


@click.command("sql", cls=Command)
@click.argument("words", metavar='PATH... "select ..."', nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--rows", type=click.IntRange(min=0), default=200, show_default=True, help="Most rows shown; 0: all.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(words: tuple[str, ...], as_json: bool, as_csv: bool, rows: int, debug: bool) -> None:
    """Ask the tables items, responses, evaluations and metrics of each PATH. Nothing can be written."""
    from assay.analysis.look.sql import ask
    from assay.errors import UserError

    *paths, query = words
    if not paths or (as_json and as_csv):
        what = "name an experiment and a query" if not paths else "--json or --csv, not both"
        raise UserError(what, fix='assay sql output/demo "select count(*) from responses"')
    with ask(paths, query) as answer:
        if as_json:
            _print_json(answer)
        elif as_csv:
            from assay.reports.writers.csv import csv_lines

            for line in csv_lines(answer.columns, answer.tuples()):
                sys.stdout.buffer.write(line)
        else:
            _show(answer, rows)


def _print_json(answer: Any) -> None:
    import json

    import msgspec

    for row in answer.rows():
        try:
            line = msgspec.json.encode(row)
        except (TypeError, OverflowError, ValueError):  # integers beyond 64 bits, types of SQL that JSON lacks
            line = json.dumps(row, default=str, ensure_ascii=False).encode()
        sys.stdout.buffer.write(line + b"\n")


def _show(answer: Any, most: int) -> None:
    """A table; on a terminal that it does not fit, through the pager."""
    from rich.console import Console

    from assay.reports.query_table import query_table

    console = Console()
    values = answer.tuples()
    shown = list(islice(values, most or None))
    table = query_table(answer.columns, shown)
    if console.is_terminal and len(shown) + 4 > console.height:
        with console.pager(styles=True):
            console.print(table)
    else:
        console.print(table)
    if next(values, None) is not None:
        click.echo(f"the first {len(shown):,} rows; --rows 0 shows all, --json and --csv print all", err=True)
