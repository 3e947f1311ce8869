"""`assay gate`: pass or fail an experiment, for CI."""

import sys
from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    AMOUNT,
    FILE,
    PATH,
    SHARE,
    facet_values,
    flag,
    force_option,
    option,
    place,
    row_options,
)
from assay.cli._output import format_option, show
from assay.errors import StoreError, UserError

_BOUNDS = ("min", "max", "max_drop")


@verb("gate")
@place("path")
@option("-c", "--config", "A config with `gates:`; default: the folder's own.", type=PATH)
@option("--min", "The least value that passes.", type=float)
@option("--max", "The largest value that passes.", type=float)
@option("--max-drop", "The largest drop below the baseline that passes.", type=AMOUNT)
@option("--baseline", "The experiment that a drop is measured from.", type=PATH, default="")
@row_options
@flag("--point", "Let the plain number decide, not its interval.")
@flag("--allow-weak", "Let weak evidence decide, which is inconclusive otherwise.")
@option("--max-error-rate", "More errored rows are inconclusive; default 0.", type=SHARE)
@option(
    "--inconclusive",
    "What is inconclusive exits with 4 (the default), 0 or 3.",
    type=click.Choice(["exit", "pass", "fail"]),
    default="exit",
)
@option("--junit", "Write JUnit XML to this file.", type=FILE)
@force_option
@option("--markdown", "Append a Markdown summary to this file.", type=FILE)
@format_option
def command(
    path: str,
    inconclusive: str,
    form: str,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Check the experiment in PATH against bounds or a baseline.

    Exits with 0 if it passed, 3 if it failed, 4 if the data cannot tell or are incomplete.
    """
    options["facets"] = facet_values(options.pop("where"))
    bounds = {name: options.pop(name) for name in (*_BOUNDS, "metric", "label", "facets")}
    bounds = {name: value for name, value in bounds.items() if value not in (None, "", {})}
    if bounds and bounds.keys().isdisjoint(_BOUNDS):
        raise UserError(
            f"--{next(iter(bounds))} needs a bound", fix="add --min, --max or --max-drop"
        )
    gated = api.gate(path, **options, **bounds)
    if junit is not None:
        api.write_named(
            junit, api.junit(gated, inconclusive=inconclusive), force=force, private=False
        )
    if markdown is not None:
        _append(gated, markdown)
    show(gated, form, as_json=as_json)
    if form == "table" and not as_json:
        click.echo(f"gate: {gated.outcome}")
    codes = {"pass": 0, "fail": 3} if gated.outcome == "inconclusive" else {}
    sys.exit(codes.get(inconclusive, gated.exit_code))


def _append(gated: Any, markdown: Path) -> None:
    try:
        with markdown.open(
            "a", encoding="utf-8"
        ) as file:  # GitHub's step summary may hold other text
            file.write(api.sheet(gated).form("markdown") + "\n")
    except OSError as error:
        raise StoreError(
            f"the report cannot be written: {error.strerror}", where=str(error.filename)
        ) from error
