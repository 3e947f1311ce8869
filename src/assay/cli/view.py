"""`assay view`: look at experiments in the browser."""

import os
import sys

import click

from assay import api
from assay.cli import verb
from assay.cli._options import PORT, flag, option, trust_option
from assay.cli._output import json_option, tell


@verb("view")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@option("--port", "Where to listen; 0: any.", type=PORT, default=7860, show_default=True)
@option("--open/--no-open", "opens", "Whether to open the browser.", default=True)
@option("--annotator", "Who labels answers; by default the page asks.", default="")
@flag("--debug", "Show tracebacks.")
@trust_option
@json_option
def command(
    paths: tuple[str, ...], port: int, opens: bool, annotator: str, debug: bool, as_json: bool
) -> None:
    """Look at the experiments in and below each PATH (by default this folder) in the browser.

    A small server on this machine shows them until Ctrl+C; nothing is sent anywhere.
    """

    def show(address: str) -> None:
        opened = opens and _open(address)
        ask = "" if opened else "open this address in a browser; "
        text = f"{address}\n{ask}Ctrl+C stops the server"
        tell({"address": address}, text, as_json=as_json)

    api.view(paths or (".",), port=port, annotator=annotator, open=show, debug=debug)


def _open(address: str) -> bool:
    """Return whether a browser was opened. Without a screen only one of the terminal could be, over
    what is printed here."""
    screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not screen:
        return False
    import webbrowser

    return webbrowser.open(address)
