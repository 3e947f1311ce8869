"""`assay trace`: follow one item through all steps."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import NATURAL, flag, option, place, trust_option
from assay.cli._output import format_option, show


@verb("trace")
@place("path")
@click.argument("item_id")
@option("--sample", "Only this sample, counted from 0.", type=NATURAL)
@option("-m", "--model", "Only rows of this model.")
@flag("--full", "Do not cut long texts.")
@trust_option
@format_option
def command(path: str, item_id: str, full: bool, form: str, as_json: bool, **only: Any) -> None:
    """Follow the item ITEM_ID of the experiment in PATH: messages, calls, response, labels, metric rows."""
    show(api.trace(path, item_id, **only), form, as_json=as_json, full=full)
