"""`assay report`: write what the viewer shows to one file that can be sent."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import PATH, force_option, option, trust_option
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
@option("-o", "--output", "The file; default: `report` with the suffix of the format.", type=PATH)
@option("--format", "form", "Default: the suffix of -o.", type=click.Choice(list(SUFFIXES)))
@option(
    "--samples",
    "To carry, the hardest items first.",
    callback=_samples,
    default="200",
    show_default=True,
    metavar="N|all",
)
@option("--title", "Default: the names of the experiments.", default="")
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
