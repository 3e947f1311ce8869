"""`assay run`: a config from start to finish, or on from where it stopped."""

from typing import Any

import click

from assay.cli import Command
from assay.cli._options import config_options, experiment_of
from assay.cli._running import failure_as_event, run_and_show


@click.command("run", cls=Command)
@config_options
@click.option(
    "--mode",
    type=click.Choice(["full", "inference", "evaluation"]),
    help="How much of the flow; default full.",
)
@click.option("-j", "--max-concurrency", type=click.IntRange(min=1), help="Calls in flight, per model.")
@click.option("--max-error-rate", type=click.FloatRange(0, 1), help="Fail if a larger share of responses are errors.")
@click.option("--dry-run", is_flag=True, help="Show the plan, do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON lines; the last line is the result.")
@click.option("--no-progress", is_flag=True, help="No progress display.")
def command(debug: bool, dry_run: bool, as_json: bool, no_progress: bool, **options: Any) -> None:
    """Run CONFIG: every model × prompt × item × sample, then scoring and metrics.

    The same command goes on where an earlier one stopped.
    """
    with failure_as_event(as_json):
        experiment = experiment_of(**options)
        if dry_run:
            from assay.cli.plan import show

            show(experiment, as_json)
        else:
            run_and_show(experiment, as_json=as_json, no_progress=no_progress)
