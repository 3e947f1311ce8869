"""`assay compare`: whether experiments, models or prompts differ."""

from typing import Any

import click

from assay.cli import Command
from assay.cli._rows import facet_values, row_options


@click.command("compare", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--facet", default="", help="Compare the values of this facet within one PATH; values may follow it.")
@row_options
@click.option("--margin", type=click.FloatRange(min=0, min_open=True), help="Differences below it do not matter.")
@click.option("--flips", type=click.IntRange(min=0), help="List so many changed items a pair; default 5 for one pair.")
@click.option("--resamples", type=click.IntRange(min=100), default=10_000, help="Of the bootstrap; default 10,000.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option(
    "--format", "form", type=click.Choice(["table", "markdown", "latex"]), default="table", help="Of the text."
)
def command(
    paths: tuple[str, ...],
    facet: str,
    metric: str | None,
    level: float | None,
    where: tuple[str, ...],
    debug: bool,
    as_json: bool,
    form: str,
    **options: Any,
) -> None:
    """Tell whether the experiments in each PATH differ: folders, or files of evaluation rows.

    The first is the baseline of the others. With --facet: one PATH, then the values to compare, or none for all.
    """
    from assay.analysis.compare import compare

    chosen = {"metric": metric or "mean", "level": level or 0.95, "where": facet_values(where), **options}
    places, values = (paths[:1], paths[1:]) if facet else (paths, ())
    found = compare(places, facet=facet, values=values, **chosen)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
    else:
        _show(found, form)


def _show(found: Any, form: str) -> None:
    from assay.reports.compare_table import compare_latex, compare_markdown, compare_view

    if form == "table":
        from rich.console import Console

        console = Console()
        console.print(compare_view(found, console))
    else:
        click.echo(compare_markdown(found) if form == "markdown" else compare_latex(found))
