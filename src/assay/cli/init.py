"""`assay init`: start an experiment from an example."""

from pathlib import Path

import click

from assay import api
from assay.cli import verb
from assay.cli._options import completing
from assay.cli._output import json_option, print_json, print_sheet, tell


@verb("init")
@click.argument("folder", default=".", type=click.Path())
@click.option(
    "--example",
    default="qa",
    show_default=True,
    help="Which one.",
    shell_complete=completing(lambda _: api.examples()),
)
@click.option("--list", "as_list", is_flag=True, help="List the examples.")
@click.option(
    "--skill",
    is_flag=True,
    help="SKILL.md and llms.txt, for coding agents, in place of an example.",
)
@json_option
def command(folder: str, example: str, as_list: bool, skill: bool, as_json: bool) -> None:
    """Put a commented example into FOLDER that runs with the demo model; nothing is overwritten."""
    if as_list:
        print_json(api.examples()) if as_json else print_sheet(api.listing(api.examples()))
        return
    paths = api.init(folder, example=example, skill=skill)
    lines = [f"  {path}" for path in paths]
    if not skill:
        lines.append(f"now: assay run {Path(folder) / 'config.yaml'}")
    files = [api.plain(str(path)) for path in paths]
    tell({"files": files}, "\n".join(lines), as_json=as_json)
