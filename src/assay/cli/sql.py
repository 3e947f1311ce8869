"""`assay sql`: query an experiment's rows."""

import sys
from shutil import get_terminal_size
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import NATURAL, flag, option, trust_option
from assay.cli._output import format_option, has_colour, print_notes
from assay.errors import UserError


@verb("sql")
@click.argument("words", metavar='PATH... "select ..."', nargs=-1, required=True)
@trust_option
@format_option
@flag("--csv", "as_csv", "The same as --format csv; all rows, as they are read.")
@option("--rows", "Most rows shown; 0: all.", type=NATURAL, default=200, show_default=True)
def command(words: tuple[str, ...], form: str, as_json: bool, as_csv: bool, rows: int) -> None:
    """Ask the tables items, responses, evaluations and metrics of each PATH. Nothing can be written."""
    *paths, query = words
    if not paths or (as_json and as_csv):
        what = "name an experiment and a query" if not paths else "--json or --csv, not both"
        raise UserError(what, fix='assay sql output/demo "select count(*) from responses"')
    with api.ask(paths, query) as answer:
        print_notes(answer.notes)
        if as_json:
            _print_json(answer)
        elif as_csv or form == "csv":
            for line in api.csv_lines(answer.columns, answer.tuples()):
                sys.stdout.buffer.write(line)
        else:
            _show(answer, form, rows)


# integers beyond 64 bits, types of SQL that JSON lacks
def _print_json(answer: Any) -> None:
    import json

    import msgspec

    output = api.program_output().buffer
    for row in answer.rows():
        try:
            line = msgspec.json.encode(row)
        except (TypeError, OverflowError, ValueError):
            line = json.dumps(row, default=str).encode()
        output.write(api.plain_json(line.decode()).encode() + b"\n")


def _show(answer: Any, form: str, most: int) -> None:
    """In another form than a table all rows; on a terminal that it does not fit, through the pager."""
    sheet = api.sheet(answer, most=most if most and form == "table" else None)
    shown = len(sheet.tables[0].rows)
    colour = form == "table" and has_colour()
    text = sheet.form(form, colour=colour)
    if form == "table" and sys.stdout.isatty() and shown + 4 > get_terminal_size().lines:
        click.echo_via_pager(text, color=colour)
    else:
        click.echo(text, color=colour)
    if next(answer.tuples(), None) is not None:
        click.echo(
            f"the first {shown:,} rows; --rows 0 shows all, --json and --csv print all", err=True
        )
