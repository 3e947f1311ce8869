"""`assay evaluate`: score responses, again or from elsewhere."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    POSITIVE,
    cluster_options,
    existing_rows_options,
    no_progress_option,
    option,
    overrides,
    paths_argument,
)
from assay.cli._output import format_option
from assay.cli._running import run_and_show
from assay.errors import UserError


@verb("evaluate")
@paths_argument
@existing_rows_options
@format_option
@option("--pairs", "Which matches are played.", type=click.Choice(["all", "active"]), default="all")
@option("--budget", "How many matches, with --pairs active; existing ones count.", type=POSITIVE)
@cluster_options
@no_progress_option
def command(
    paths: tuple[str, ...], pairs: str, form: str, as_json: bool, no_progress: bool, **options: Any
) -> None:
    """Score the responses in PATH, an experiment's folder or any responses.jsonl, then compute the metrics.

    No model is called, unless a scorer calls one. The same command resumes where an earlier one stopped. Several PATHs
    are taken together: their answers meet in matches, and runs that met before do not meet again.
    """
    if (pairs == "active") != (options["budget"] is not None):
        raise UserError(
            "--pairs active and --budget go together", fix="--pairs active --budget 500"
        )
    step = api.evaluation(paths, overrides=overrides(options.pop("settings")), **options)
    run_and_show(step, form, as_json=as_json, no_progress=no_progress)
