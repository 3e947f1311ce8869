"""`assay judge`: labels by people, and how far to believe a judge."""

from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import Verbs
from assay.cli._options import force_option, level_option, trust_option
from assay.cli._output import json_option, shown, tell
from assay.errors import UserError


@click.group("judge", cls=Verbs)
def command() -> None:
    """Labels by people, and how far to believe a judge."""


@command.command("calibrate", short_help="Compare a judge with people's labels.")
@click.argument("path", type=click.Path())
@click.option(
    "--labels",
    type=click.Path(),
    help="People's labels: csv or jsonl; default: labels.jsonl in PATH.",
)
@click.option("--label", default="", help="The judge's label; default: each that a judge gave.")
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    metavar="NAME",
    help="Only this person's; may be repeated.",
)
@click.option(
    "--threshold", type=float, help="The least number that is a pass, where people gave numbers."
)
@level_option
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the resampling; default 0.")
@trust_option
@shown
def calibrate(path: str, labels: str | None, **options: Any) -> Any:
    """Compare the judges of the experiment in PATH with people's labels.

    Labels are rows of item, sample and label (1 or 0, yes or no, pass or fail, a number), and where several models
    answered, model. The calibration is kept in the experiment's manifest.
    """
    return api.calibrate(path, labels, **options)


@command.command("label", short_help="Write answers for people to label to a file.")
@click.argument("path", type=click.Path())
@click.option("--label", default="", help="The label to judge answers by, if there are several.")
@click.option("--annotator", default="", help="Who labels; by default the login name.")
@click.option(
    "--count", type=click.IntRange(min=1), default=50, help="How many you label in all; default 50."
)
@click.option(
    "--random",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.3,
    help="At least this share is chosen at random, the rest because it tells most; default 0.3.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    help="Of the choice; the same for all annotators.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The CSV file.")
@trust_option
@force_option
@json_option
def label(path: str, output: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """Choose answers of the experiment in PATH for a person to label, and write them to a CSV file.

    Fill in its column `label`; `assay judge calibrate PATH --labels FILE` reads it. The review of
    `assay view` needs no file.
    """
    if output is None or output.suffix != ".csv":
        raise UserError(
            "answers are labelled in the browser, or in a CSV file",
            fix=f"use the review of `assay view {path}`, or fill in -o answers.csv for --labels",
        )
    labelling = api.label(path, **options)
    api.write_named(output, api.csv_lines(labelling.COLUMNS, labelling.rows()), force=force)
    tell({"output": str(output), "notes": []}, f"written to {output}", as_json=as_json)
