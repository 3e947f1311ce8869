"""`assay merge`: several folders of one plan become one."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import PATH, option, paths_argument, trust_option
from assay.cli._output import json_option, show_apart


@verb("merge")
@paths_argument
@option("-o", "--output", "The new folder; it must not exist.", type=PATH, required=True)
@option(
    "--prefer",
    "Which of different rows of one key stays: of the PATH named first, or the one made last; default: refuse.",
    type=click.Choice(["first", "newest"]),
)
@trust_option
@json_option
def command(paths: tuple[str, ...], output: str, as_json: bool, **options: Any) -> None:
    """Make one experiment's folder of several PATHs that are parts of one plan: of its items, models or samples.

    Rows that several have alike are taken once. Nothing is written if they disagree about a row, an item or the plan.
    """
    merged = api.merge(paths, output, **options)
    show_apart(merged, merged, as_json=as_json)
