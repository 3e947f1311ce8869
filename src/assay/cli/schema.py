"""`assay schema`: print the JSON Schema of the config."""

from pathlib import Path

import click

from assay import api
from assay.cli import Command


@click.command("schema", cls=Command)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
def command(output: Path | None) -> None:
    """Print the JSON Schema of a config file, with which editors complete and check it."""
    if output is None:
        click.echo(api.schema(), nl=False)
        return
    api.write_file(output, api.schema().encode())
    click.echo(f"written: {output}")
