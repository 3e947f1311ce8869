"""`assay export`: an experiment's rows in another format."""

from pathlib import Path
from typing import Any

import click

from assay.cli import Command

SUFFIXES = {".md": "markdown", ".ndjson": "jsonl"}


@click.command("export", cls=Command)
@click.argument("path", type=click.Path())
@click.option("-f", "--format", "format_name", help="csv, jsonl, json, parquet, markdown …; default: the suffix of -o.")
@click.option("-t", "--table", default="responses", show_default=True, help="items, responses, evaluations, metrics.")
@click.option("-o", "--output", type=click.Path(), help="The file, or the folder; default: standard output.")
@click.option("--keep-formulas", is_flag=True, help="csv: leave texts alone that a spreadsheet would run.")
@click.option("--plain-names", is_flag=True, help="ragicamp: never a dataset in the names of agents' files.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A parameter of the format.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(
    path: str,
    format_name: str | None,
    table: str,
    output: str | None,
    keep_formulas: bool,
    plain_names: bool,
    settings: tuple[str, ...],
    debug: bool,
) -> None:
    """Write a table of PATH, an experiment's folder or a file of rows, in another format."""
    from assay.analysis.look.export import Export, Tables
    from assay.engine.experiment.sources import find_source
    from assay.errors import UserError
    from assay.registry import check_params, writer
    from assay.text.plain import plain

    suffix = Path(output).suffix if output else ""
    name = format_name or SUFFIXES.get(suffix) or suffix.removeprefix(".")
    if not name:
        raise UserError("name a format", fix=f"--format, one of {', '.join(writer.names())}")
    write = writer.get(name, base=Path.cwd(), where="--format")
    flags = {"keep_formulas": keep_formulas, "plain_names": plain_names}
    params: dict[str, Any] = {flag: True for flag, given in flags.items() if given}
    if settings:
        from assay.config import parse_override

        params |= dict(parse_override(setting) for setting in settings)
    export = Export(Tables(find_source(path)), table, Path(output) if output else None)
    for note in write(export, **check_params(write, params, where="--set")) or ():
        click.echo(f"note: {plain(note)}", err=True)
