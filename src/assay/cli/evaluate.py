"""`assay evaluate`: score responses that are there already."""

from typing import Any

import click

from assay.cli import Command
from assay.cli._again import again_options, overrides
from assay.cli._running import failure_as_event, run_and_show


@click.command("evaluate", cls=Command)
@click.argument("path", type=click.Path())
@again_options
@click.option("--no-progress", is_flag=True, help="No progress display.")
def command(
    path: str, debug: bool, as_json: bool, no_progress: bool, settings: tuple[str, ...], **options: Any
) -> None:
    """Score the responses in PATH, an experiment's folder or any responses.jsonl, then compute the metrics.

    No model is called, unless a scorer calls one. The same command goes on where an earlier one stopped.
    """
    from assay.steps.again import Rescoring

    with failure_as_event(as_json):
        step = Rescoring(path, overrides=overrides(settings), **options)
        run_and_show(step, as_json=as_json, no_progress=no_progress)
