"""`assay status`: show who works on an experiment, how fast, at what cost, and what is left."""

import sys
import time

import click

from assay import api
from assay.cli import verb
from assay.cli._options import flag, place
from assay.cli._output import format_option, show_all

INTERVAL = 2.0


@verb("status")
@place("path")
@flag("--watch", "Look again every two seconds until nobody works on it.")
@format_option
def command(path: str, watch: bool, form: str, as_json: bool) -> None:
    """Show how each experiment in PATH, a folder or an address, is doing."""
    watches = api.status_watches(path)
    while True:
        found = [watching.look() for watching in watches]
        if watch and not as_json and sys.stdout.isatty():
            click.clear()
        show_all(found, form, as_json=as_json)
        if not watch or all(status.state != "running" for status in found):
            return
        time.sleep(INTERVAL)
