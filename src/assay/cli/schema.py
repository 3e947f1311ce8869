"""`assay schema`: print the JSON Schema of the config."""

from pathlib import Path

import click

from assay import api
from assay.cli import Command
from assay.cli._options import force_option


@click.command("schema", cls=Command)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@force_option
def command(output: Path | None, force: bool) -> None:
    """Print the JSON Schema of a config file, with which editors complete and check it."""
    if output is None:
        click.echo(api.schema(), nl=False)
        return
    api.write_named(output, api.schema().encode(), force=force, private=False)
    click.echo(f"written: {api.plain(str(output))}")
