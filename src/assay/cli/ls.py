"""`assay ls`: list the experiments below a folder."""

import click

from assay import api
from assay.cli import verb
from assay.cli._options import place
from assay.cli._output import format_option, show_all


@verb("ls")
@place("folder", default=".")
@format_option
def command(folder: str, form: str, as_json: bool) -> None:
    """List the experiments in and below FOLDER, with their state, counts and metrics."""
    experiments = api.ls(folder)
    if experiments or as_json:
        show_all(experiments, form, as_json=as_json, root=folder)
    else:
        click.echo(f"no experiments below {api.plain(folder)}")
