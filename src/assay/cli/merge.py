"""`assay merge`: several folders of one plan become one."""

from typing import Any

import click

from assay import api
from assay.cli import Command
from assay.cli._options import trust_option
from assay.cli._output import json_option, print_json, print_notes, print_sheet


@click.command("merge", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", type=click.Path(), required=True, help="The new folder; it must not exist."
)
@click.option(
    "--prefer",
    type=click.Choice(["first", "newest"]),
    help="Which of different rows of one key stays: of the PATH named first, or the one made last; default: refuse.",
)
@trust_option
@json_option
def command(paths: tuple[str, ...], output: str, as_json: bool, **options: Any) -> None:
    """Make one experiment's folder of several PATHs that are parts of one plan: of its items, models or samples.

    Rows that several have alike are taken once. Nothing is written if they disagree about a row, an item or the plan.
    """
    merged = api.merge(paths, output, **options)
    if as_json:
        print_json(merged)
        return
    sheet = api.sheet(merged)
    print_sheet(sheet._replace(notes=()))
    print_notes(sheet.notes)
