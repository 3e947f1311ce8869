"""`assay aggregate`: metrics from evaluations that are there already."""

from typing import Any

import click

from assay.cli import Command
from assay.cli._again import again_options, overrides
from assay.cli._running import failure_as_event, show


@click.command("aggregate", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@again_options
def command(paths: tuple[str, ...], debug: bool, as_json: bool, settings: tuple[str, ...], **options: Any) -> None:
    """Compute metrics from the evaluations in each PATH, an experiment's folder or any evaluation_results.jsonl.

    Several are taken together; the facet `source` tells them apart.
    """
    from assay import api

    with failure_as_event(as_json):
        result = api.aggregate(paths, overrides=overrides(settings), **options)
        show(result, as_json=as_json, notes=True)
