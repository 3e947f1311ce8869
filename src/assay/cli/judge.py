"""`assay judge`: labels by people, and how far to believe a judge."""

from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import Verbs
from assay.cli._options import (
    FILE,
    NATURAL,
    PATH,
    POSITIVE,
    force_option,
    level_option,
    option,
    place,
    trust_option,
)
from assay.cli._output import json_option, tell, with_formats
from assay.errors import UserError


@click.group("judge", cls=Verbs)
def command() -> None:
    """Labels by people, and how far to believe a judge."""


@command.command("calibrate", short_help="Compare a judge with people's labels.")
@place("path")
@option("--labels", "People's labels: csv or jsonl; default: labels.jsonl in PATH.", type=PATH)
@option("--label", "The judge's label; default: each that a judge gave.", default="")
@option(
    "--annotator",
    "annotators",
    "Only this person's; may be repeated.",
    multiple=True,
    metavar="NAME",
)
@option("--threshold", "The least number that is a pass, where people gave numbers.", type=float)
@level_option
@option("--seed", "Of the resampling; default 0.", type=NATURAL, default=0)
@trust_option
@with_formats
def calibrate(path: str, labels: str | None, **options: Any) -> Any:
    """Compare the judges of the experiment in PATH with people's labels.

    Labels are rows of item, sample and label (1 or 0, yes or no, pass or fail, a number), and where several models
    answered, model. The calibration is kept in the experiment's manifest.
    """
    return api.calibrate(path, labels, **options)


@command.command("label", short_help="Write answers for people to label to a file.")
@place("path")
@option("--label", "The label to judge answers by, if there are several.", default="")
@option("--annotator", "Who labels; by default the login name.", default="")
@option("--count", "How many you label in all; default 50.", type=POSITIVE, default=50)
@option(
    "--random",
    "At least this share is chosen at random, the rest because it tells most; default 0.3.",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.3,
)
@option("--seed", "Of the choice; the same for all annotators.", type=NATURAL, default=0)
@option("-o", "--output", "The CSV file.", type=FILE)
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
