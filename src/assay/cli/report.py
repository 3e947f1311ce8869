"""`assay report`: write what the viewer shows to one file that can be sent."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import force_option, trust_option
from assay.cli._output import json_option, print_notes, tell

SUFFIXES = {"html": "html", "pdf": "pdf", "markdown": "md"}


def _samples(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    if value == "all":
        return None
    if not value.isdecimal():
        raise click.BadParameter(f"{value!r} is not a number of samples, nor `all`", ctx, param)
    return int(value)


@verb("report")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="The file; default: `report` with the suffix of the format.",
)
@click.option(
    "--format", "form", type=click.Choice(list(SUFFIXES)), help="Default: the suffix of -o."
)
@click.option(
    "--samples",
    callback=_samples,
    default="200",
    show_default=True,
    metavar="N|all",
    help="To carry, the hardest items first.",
)
@click.option("--title", default="", help="Default: the names of the experiments.")
@trust_option
@force_option
@json_option
def command(
    paths: tuple[str, ...], output: str | None, form: str | None, as_json: bool, **options: Any
) -> None:
    """Write a report of the experiments in and below each PATH (by default this folder): one file, no network."""
    output = output or f"report.{SUFFIXES[form or 'html']}"
    notes = api.report(paths or (".",), output, format=form or "", **options)
    print_notes(() if as_json else notes)
    tell({"output": output, "notes": notes}, f"written to {output}", as_json=as_json)
