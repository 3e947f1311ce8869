"""`assay init`: start an experiment from an example."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from assay import api
from assay.cli import Command
from assay.cli._output import json_option, print_json, print_sheet


def complete_example(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=about)
        for name, about in api.examples().items()
        if name.startswith(incomplete)
    ]


@click.command("init", cls=Command)
@click.argument("folder", default=".", type=click.Path())
@click.option(
    "--example", default="qa", show_default=True, help="Which one.", shell_complete=complete_example
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
    if as_json:
        print_json({"files": [api.plain(str(path)) for path in paths]})
        return
    for path in paths:
        click.echo(api.plain(f"  {path}"))
    if not skill:
        click.echo(api.plain(f"now: assay run {Path(folder) / 'config.yaml'}"))
