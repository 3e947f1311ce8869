"""`assay ls`: the experiments below a folder."""

import click

from assay.cli import Command


@click.command("ls", cls=Command)
@click.argument("folder", default=".", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One JSON object per experiment.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(folder: str, as_json: bool, debug: bool) -> None:
    """List the experiments in and below FOLDER, with their state, counts and metrics."""
    from assay.analysis.look.ls import experiments, listing_text
    from assay.text.plain import plain

    found = experiments(folder)
    if as_json:
        import msgspec

        for one in found:
            click.echo(msgspec.json.encode(one).decode())
    elif found:
        click.echo(plain(listing_text(found, folder)))
    else:
        click.echo(f"no experiments below {plain(folder)}")
