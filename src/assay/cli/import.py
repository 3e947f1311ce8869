"""`assay import`: results of other programs become an experiment's folder."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import overrides, parameters_option, without_sidecar_option
from assay.cli._output import show_apart
from assay.errors import RunFailed


def _formats() -> str:
    return "Formats: " + "; ".join(
        f"{plug_in.name}: {plug_in.about}" for plug_in in api.list("reader")
    )


@verb("import", more=_formats)
@click.argument("sources", type=click.Path(), nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(), required=True, help="The experiment's folder; it is made."
)
@click.option(
    "--from", "format_name", default="", help="The format; default: found out from the files."
)
@parameters_option
@without_sidecar_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each experiment.")
def command(
    sources: tuple[str, ...],
    output: str,
    settings: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Read SOURCES, folders or files, as items, responses and evaluations of ours."""
    rejected = 0
    for imported in api.import_(sources, output, params=overrides(settings), **options):
        rejected += imported.rejected
        show_apart(imported, [imported], as_json=as_json)
    if rejected:
        what = f"{rejected:,} rows or files of the source could not be read; what is imported is not complete"
        raise RunFailed(
            what, where=", ".join(sources), fix="repair or remove them, and import again"
        )
