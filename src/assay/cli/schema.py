"""`assay schema`: the JSON Schema of the config, made by `python -m assay.config.resolved`; a test compares them."""

from pathlib import Path

import click

from assay.cli import Command


@click.command("schema", cls=Command)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write it to this file.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(output: str | None, debug: bool) -> None:
    """Print the JSON Schema of a config file, with which editors complete and check it."""
    from importlib.resources import files

    text = (files("assay") / "data" / "config.schema.json").read_text(encoding="utf-8").rstrip()
    if output is None:
        click.echo(text)
        return
    from assay.store.files import write_file

    write_file(Path(output), text.encode() + b"\n")
    click.echo(f"written: {output}")
