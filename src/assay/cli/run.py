"""`assay run`: run a config: inference, scoring, metrics."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import cluster_options, config_of, config_options, no_progress_option
from assay.cli._output import format_option, show
from assay.cli._running import run_and_show
from assay.cli.local import offer


@verb("run")
@config_options
@click.option(
    "--mode",
    type=click.Choice(["full", "inference", "evaluation"]),
    help="How much of the flow; default full.",
)
@click.option(
    "-j",
    "--max-concurrency",
    "--max-workers",
    "max_concurrency",
    type=click.IntRange(min=1),
    help="Calls in flight, per model.",
)
@click.option(
    "--batch-size", type=int, hidden=True, expose_value=False, help="Calls are not in batches."
)
@click.option(
    "--max-error-rate",
    type=click.FloatRange(0, 1),
    help="Fail if a larger share of responses or labels are errors; default 0.1, told at the end.",
)
@click.option(
    "--locked", is_flag=True, help="Refuse to run anything but what `assay lock` wrote down."
)
@click.option(
    "--lock-file",
    metavar="FILE",
    type=click.Path(),
    help="The lock; default: CONFIG.lock. Implies --locked.",
)
@cluster_options
@click.option("--dry-run", is_flag=True, help="Show the plan, do nothing.")
@format_option
@no_progress_option
def command(
    dry_run: bool,
    form: str,
    as_json: bool,
    no_progress: bool,
    locked: bool,
    lock_file: str | None,
    **options: Any,
) -> None:
    """Run CONFIG: every model × prompt × item × sample, then scoring and metrics.

    The same command resumes where an earlier one stopped. With --json events are printed as JSON lines, and the last
    line is the result.
    """
    config, chosen = config_of(**options)
    chosen["locked"] = lock_file or locked
    if dry_run:
        show(api.plan(config, **chosen), form, as_json=as_json)
    else:
        experiment = api.experiment(config, **chosen)
        offer(experiment)
        run_and_show(experiment, form, as_json=as_json, no_progress=no_progress)
