"""`assay diff`: what differs between two experiments, and whether it matters."""

import sys
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    NATURAL,
    PATH,
    facet_values,
    flag,
    force_option,
    margin_option,
    option,
    place,
    row_options,
)
from assay.cli._output import format_option, show


@verb("diff")
@place("first", metavar="A")
@place("second", metavar="B")
@row_options
@margin_option
@option(
    "--limit",
    "Show this many changed items under each label, and in the data.",
    type=NATURAL,
    default=5,
    show_default=True,
)
@option("-o", "--output", "Write it to this file: .md, .html, .json, .csv or .tex.", type=PATH)
@flag("--exit-code", "Exit with 1 if there is a difference.")
@force_option
@format_option
def command(
    first: str,
    second: str,
    where: tuple[str, ...],
    output: str | None,
    exit_code: bool,
    force: bool,
    form: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what differs between the experiments A and B, the baseline: folders, or files of rows.

    Settings, data, what was served, changed answers, scores with paired intervals, cost and time.
    """
    if output:
        api.checked_suffix(output)
    options |= {
        "metric": options["metric"] or "mean",
        "level": options["level"] or 0.95,
        "where": facet_values(where),
    }
    diff = api.diff(first, second, **options)
    if output:
        api.save(diff, output, force=force)
    if output and not as_json:
        click.echo(f"written to {api.plain(output)}")
    else:
        show(diff, form, as_json=as_json)
    sys.exit(1 if exit_code and not diff.same else 0)
