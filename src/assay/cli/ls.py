"""`assay ls`: list the experiments below a folder."""

import click

from assay import api
from assay.cli import Command
from assay.cli._output import format_option, print_json, show


@click.command("ls", cls=Command)
@click.argument("folder", default=".", type=click.Path())
@format_option
def command(folder: str, form: str, as_json: bool) -> None:
    """List the experiments in and below FOLDER, with their state, counts and metrics."""
    experiments = api.ls(folder)
    if as_json:
        for listed in experiments:
            print_json(listed)
    elif experiments:
        show(experiments, form, root=folder)
    else:
        click.echo(f"no experiments below {api.plain(folder)}")
