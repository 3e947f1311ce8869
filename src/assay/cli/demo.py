"""`assay demo`: run a real evaluation on the embedded model, without a key or a network."""

from pathlib import Path

import click

from assay import api
from assay.cli import verb
from assay.cli._options import no_progress_option, place
from assay.cli._output import json_option, print_notes
from assay.cli._running import run_and_show
from assay.errors import UserError


@verb("demo")
@place("folder", default="output/demo")
@json_option
@no_progress_option
def command(folder: str, as_json: bool, no_progress: bool) -> None:
    """Evaluate two embedded models under two prompts and keep all rows in FOLDER.

    The same command resumes where an earlier one stopped. A folder that holds anything else is
    left alone.
    """
    config, place = api.examples_folder / "demo" / "config.yaml", Path(folder)
    plan = api.plan(config, output_dir=folder)
    if plan.stale or (not plan.present and place.is_dir() and any(place.iterdir())):
        what = "this folder holds something else than the demo"
        raise UserError(what, where=folder, fix="name another: assay demo FOLDER")
    if plan.present:
        print_notes([f"the demo resumes: {plan.present:,} of {plan.planned:,} answers are there"])
    experiment = api.experiment(config, output_dir=folder)
    run_and_show(experiment, as_json=as_json, no_progress=no_progress)
    if not as_json:
        click.echo(api.plain(f"now: assay view {folder}"))
