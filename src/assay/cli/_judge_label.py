"""`assay judge label`: people's labels, from the keyboard."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from assay.cli import Command


@click.command("label", cls=Command)
@click.argument("path", type=click.Path())
@click.option("--label", default="", help="The label to judge answers by, if there are several.")
@click.option("--annotator", default="", help="Who labels; by default the login name.")
@click.option("--count", type=click.IntRange(min=1), default=50, help="How many you label in all; default 50.")
@click.option(
    "--random",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.3,
    help="At least this share is chosen at random, the rest because it tells most; default 0.3.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the choice; the same for all annotators.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; default PATH/labels.jsonl.")
@click.option("--summary", is_flag=True, help="Only show what is labelled, and how far annotators agree.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(
    path: str, label: str, annotator: str, output: Path | None, summary: bool, debug: bool, **choice: Any
) -> None:
    """Label the answers of the experiment in PATH by hand, without seeing who gave them or what the judge said.

    One key is one label, saved at once: ? shows the keys. The same command goes on where the last session ended.
    """
    from assay.analysis.judge.label_frame import read_frame
    from assay.analysis.judge.label_records import LabelFile, summarise
    from assay.engine.evaluate.people import FILE
    from assay.engine.experiment.sources import find_source
    from assay.reports.label_screen import harmless, summary_text

    source = find_source(path, "evaluation")
    frame = read_frame(source, label)
    file = LabelFile(output or (source.path if source.path.is_dir() else source.path.parent) / FILE)
    if not summary:
        _label(source, frame, file, annotator or _login_name(), **choice)
    click.echo(summary_text(summarise(file, frame.label, ordered=frame.scale is not None), frame))
    if file.path.exists():
        click.echo(f"labels: {harmless(str(file.path))}")


def _label(source: Any, frame: Any, file: Any, annotator: str, *, count: int, random: float, seed: int) -> None:
    from assay.analysis.judge.label_records import chosen_before
    from assay.analysis.judge.label_views import views
    from assay.analysis.judge.labelling import waiting
    from assay.cli._keyboard import Pipe, Terminal
    from assay.cli._label_session import Session

    latest = file.latest(frame.label)
    labelled: dict[Any, set[str]] = {}
    for (address, name), one in latest.items():
        if one.label is not None:
            labelled.setdefault(address, set()).add(name)
    before = chosen_before(frame, (one for (_, name), one in latest.items() if name == annotator))
    left = waiting(frame, labelled, annotator, count=count, random=random, seed=seed)
    seen = views(source, [one.unit for one in (*before, *left)], seed)
    order = [one for one in (*before, *left) if one.unit.address in seen]
    if not left:
        click.echo(f"all {len(before):,} answers of this session are labelled; a larger --count goes on")
        return
    with Terminal() if _has_screen() else Pipe() as keys:
        Session(frame, order, seen, file, annotator).run(keys)


def _has_screen() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _login_name() -> str:
    from getpass import getuser

    from assay.errors import UserError

    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        raise UserError("who labels?", fix="add --annotator NAME: the login has no name here") from None
