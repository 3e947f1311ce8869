"""`assay judge calibrate`: a judge's verdicts beside people's labels."""

from typing import Any

import click

from assay.cli import Command


@click.command("calibrate", cls=Command)
@click.argument("path", type=click.Path())
@click.option("--labels", type=click.Path(), help="People's labels: csv or jsonl; default: labels.jsonl in PATH.")
@click.option("--label", default="", help="The judge's label; default: each that a judge gave.")
@click.option("--annotator", "annotators", multiple=True, metavar="NAME", help="Only this person's; may be repeated.")
@click.option("--threshold", type=float, help="The least number that is a pass, where people gave numbers.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Of the intervals; default 0.95.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the resampling; default 0.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(path: str, labels: str | None, as_json: bool, debug: bool, **options: Any) -> None:
    """Compare the judges of the experiment in PATH with people's labels.

    Labels are rows of item, sample and label (1 or 0, yes or no, pass or fail, a number), and where several models
    answered, model. What is found is kept in the experiment's manifest.
    """
    from assay.analysis.judge.calibrate import calibrate

    found = calibrate(path, labels, **options)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from rich.console import Console

    from assay.reports.calibration_table import calibration_view

    console = Console()
    console.print(calibration_view(found, console))
