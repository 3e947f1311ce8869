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
@click.option("--all-labels", is_flag=True, help="One table of all labels, the best values marked.")
@click.option("--lower", multiple=True, metavar="LABEL", help="With --all-labels: less is better under this label.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "latex", "csv"]),
    default="table",
    help="Of the text; csv with --all-labels.",
)
def command(
    paths: tuple[str, ...],
    facet: str,
    metric: str | None,
    level: float | None,
    where: tuple[str, ...],
    debug: bool,
    all_labels: bool,
    lower: tuple[str, ...],
    as_json: bool,
    form: str,
    **options: Any,
) -> None:
    """Tell whether the experiments in each PATH differ: folders, or files of evaluation rows.

    The first is the baseline of the others. With --facet: one PATH, then the values to compare, or none for all.
    """
    from assay.analysis.compare.across import across
    from assay.analysis.compare.compare import compare
    from assay.errors import UserError

    if not all_labels and (lower or form == "csv"):
        raise UserError(f"{'--lower' if lower else '--format csv'} is for tables of several labels", fix="--all-labels")
    chosen = {"metric": metric or "mean", "level": level or 0.95, "where": facet_values(where), **options}
    places, values = (paths[:1], paths[1:]) if facet else (paths, ())
    if all_labels:
        only = [options["label"]] if options["label"] else []
        found = across(places, facet=facet, values=values, labels=only, lower=lower, **chosen)
    else:
        found = compare(places, facet=facet, values=values, **chosen)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
    else:
        _show(found, form, all_labels)


def _show(found: Any, form: str, all_labels: bool) -> None:
    from assay.reports import across_table, compare_table

    report, name = (across_table, "across") if all_labels else (compare_table, "compare")
    if form == "table":
        from rich.console import Console

        console = Console()
        console.print(getattr(report, f"{name}_view")(found, console))
    else:
        click.echo(getattr(report, f"{name}_{form}")(found))
