"""`assay convert`: write results in another format, and say what it cannot hold."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import (
    flag,
    option,
    overrides,
    parameters_option,
    place,
    without_sidecar_option,
)
from assay.cli._output import show_apart


def _formats() -> str:
    return "Formats that can be written: " + ", ".join(
        sorted({*api.reader.names()} & {*api.writer.names()})
    )


@verb("convert", more=_formats)
@place("source")
@place("target")
@option(
    "--to",
    "The format of TARGET; default: its suffix, without one an experiment's folder.",
    default="",
)
@option(
    "--from", "format_name", "The format of SOURCE; default: found out from the files.", default=""
)
@parameters_option
@without_sidecar_option
@flag("--json", "as_json", "One JSON object for each experiment.")
def command(
    source: str, target: str, settings: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Read SOURCE, in whatever format, and write TARGET, which must not exist. What the format of TARGET has no place
    for is named."""
    for each in api.convert(source, target, params=overrides(settings), **options):
        show_apart(each, [each], as_json=as_json)
