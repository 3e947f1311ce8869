"""`assay view`: look at experiments in the browser."""

import click

from assay import api
from assay.cli import Command


@click.command("view", cls=Command)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=7860, show_default=True, help="Where to listen; 0: any.")
@click.option("--open/--no-open", "opens", default=True, help="Whether to open the browser.")
def command(paths: tuple[str, ...], port: int, opens: bool) -> None:
    """Look at the experiments in and below each PATH (by default this folder) in the browser."""

    def show(address: str) -> None:
        click.echo(f"{address}\nCtrl+C stops it", err=False)
        if opens:
            import webbrowser

            webbrowser.open(address)

    api.view(paths or (".",), port=port, open=show)
