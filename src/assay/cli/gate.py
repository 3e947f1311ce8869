"""`assay gate`: pass or fail an experiment, for CI."""

import sys
from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import facet_values, force_option, row_options
from assay.cli._output import format_option, show
from assay.errors import StoreError, UserError

_BOUNDS = ("min", "max", "max_drop")


@verb("gate")
@click.argument("path", type=click.Path())
@click.option(
    "-c", "--config", type=click.Path(), help="A config with `gates:`; default: the folder's own."
)
@click.option("--min", type=float, help="The least value that passes.")
@click.option("--max", type=float, help="The largest value that passes.")
@click.option(
    "--max-drop",
    type=click.FloatRange(min=0),
    help="The largest drop below the baseline that passes.",
)
@click.option(
    "--baseline", type=click.Path(), default="", help="The experiment that a drop is measured from."
)
@row_options
@click.option("--point", is_flag=True, help="Let the plain number decide, not its interval.")
@click.option(
    "--allow-weak",
    is_flag=True,
    help="Let weak evidence decide, which is inconclusive otherwise.",
)
@click.option(
    "--max-error-rate",
    type=click.FloatRange(0, 1),
    help="More errored rows are inconclusive; default 0.",
)
@click.option(
    "--inconclusive",
    type=click.Choice(["exit", "pass", "fail"]),
    default="exit",
    help="What is inconclusive exits with 4 (the default), 0 or 3.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@force_option
@click.option(
    "--markdown", type=click.Path(path_type=Path), help="Append a Markdown summary to this file."
)
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
