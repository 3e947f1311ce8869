"""`assay run`: run a config: inference, scoring, metrics."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    PATH,
    POSITIVE,
    SHARE,
    cluster_options,
    config_of,
    config_options,
    flag,
    no_progress_option,
    option,
)
from assay.cli._output import format_option, show
from assay.cli._running import run_and_show
from assay.cli.local import offer


@verb("run")
@config_options
@option(
    "--mode",
    "How much of the flow; default full.",
    type=click.Choice(["full", "inference", "evaluation"]),
)
@option(
    "-j",
    "--max-concurrency",
    "--max-workers",
    "max_concurrency",
    "Calls in flight, per model.",
    type=POSITIVE,
)
@option("--batch-size", "Calls are not in batches.", type=int, hidden=True, expose_value=False)
@option(
    "--max-error-rate",
    "Fail if a larger share of responses or labels are errors; default 0.1, told at the end.",
    type=SHARE,
)
@flag("--locked", "Refuse to run anything but what `assay lock` wrote down.")
@option(
    "--lock-file", "The lock; default: CONFIG.lock. Implies --locked.", metavar="FILE", type=PATH
)
@cluster_options
@flag("--dry-run", "Show the plan, do nothing.")
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
