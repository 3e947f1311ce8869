"""`assay plan`: show what a run would do, without doing it."""

from typing import Any

import click

from assay import api
from assay.cli import Command
from assay.cli._options import config_of, config_options
from assay.cli._output import format_option, show


@click.command("plan", cls=Command)
@config_options
@format_option
def command(form: str, as_json: bool, **options: Any) -> None:
    """Show how many cells there are, how many have rows, how many would run."""
    config, chosen = config_of(**options)
    show(api.plan(config, **chosen), form, as_json=as_json)
