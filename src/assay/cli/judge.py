"""`assay judge`: label answers by hand, and find out how far to believe a judge."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import Command
from assay.cli._options import LEVEL, trust_option
from assay.cli._output import format_option, json_option, print_json, show
from assay.errors import shown


@click.group("judge")
def command() -> None:
    """Label answers by hand, and find out how far to believe a judge."""


@command.command("calibrate", cls=Command, short_help="Compare a judge with people's labels.")
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
@click.option("--level", type=LEVEL, default=0.95, help="Of the intervals; default 0.95.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the resampling; default 0.")
@trust_option
@format_option
def calibrate(path: str, labels: str | None, form: str, as_json: bool, **options: Any) -> None:
    """Compare the judges of the experiment in PATH with people's labels.

    Labels are rows of item, sample and label (1 or 0, yes or no, pass or fail, a number), and where several models
    answered, model. The calibration is kept in the experiment's manifest.
    """
    show(api.calibrate(path, labels, **options), form, as_json=as_json)


@command.command("label", cls=Command, short_help="Label answers in the terminal.")
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
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The file; default PATH/labels.jsonl."
)
@click.option(
    "--summary", is_flag=True, help="Only show what is labelled, and how far annotators agree."
)
@trust_option
@json_option
def label(path: str, summary: bool, as_json: bool, **options: Any) -> None:
    """Label the answers of the experiment in PATH by hand, without seeing who gave them or what the judge said.

    One key is one label, saved at once: ? shows the keys. The same command resumes where the last session ended.
    """
    labelling = api.label(path, choose=not summary, **options)
    if not summary:
        _session(labelling)
    if as_json:
        print_json(labelling.summary())
        return
    click.echo(api.label_screen.summary_text(labelling.summary(), labelling.frame))
    if labelling.file.path.exists():
        click.echo(f"labels: {api.label_screen.harmless(shown(str(labelling.file.path)))}")


def _session(labelling: Any) -> None:
    from assay.cli._keyboard import Pipe, Terminal
    from assay.cli._label_session import Session

    if not labelling.waiting:
        click.echo(
            f"all {labelling.done:,} answers of this session are labelled; a larger --count adds more"
        )
        return
    with Terminal() if _has_screen() else Pipe() as keys:
        Session(labelling).run(keys)


def _has_screen() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
