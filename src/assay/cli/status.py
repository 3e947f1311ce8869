"""`assay status`: show who works on an experiment, how fast, at what cost, and what is left."""

import sys
import time

import click

from assay import api
from assay.cli import Command
from assay.cli._output import format_option, show

INTERVAL = 2.0


@click.command("status", cls=Command)
@click.argument("path", type=click.Path())
@click.option(
    "--watch", is_flag=True, help="Look again every two seconds until nobody works on it."
)
@format_option
def command(path: str, watch: bool, form: str, as_json: bool) -> None:
    """Show how the experiment in PATH, a folder or an address, is doing."""
    watching = api.status_watch(path)
    while True:
        status = watching.look()
        if watch and not as_json and sys.stdout.isatty():
            click.clear()
        show(status, form, as_json=as_json)
        if not watch or status.state != "running":
            return
        time.sleep(INTERVAL)
