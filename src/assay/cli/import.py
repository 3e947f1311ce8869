"""`assay import`: results of other programs become an experiment's folder."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import (
    PATH,
    flag,
    option,
    overrides,
    parameters_option,
    place,
    without_sidecar_option,
)
from assay.cli._output import show_apart
from assay.errors import RunFailed


def _formats() -> str:
    return "Formats: " + "; ".join(
        f"{plug_in.name}: {plug_in.about}" for plug_in in api.list("reader")
    )


@verb("import", more=_formats)
@place("sources", nargs=-1, required=True)
@option("-o", "--output", "The experiment's folder; it is made.", type=PATH, required=True)
@option("--from", "format_name", "The format; default: found out from the files.", default="")
@parameters_option
@without_sidecar_option
@flag("--json", "as_json", "One JSON object for each experiment.")
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
