"""`assay gate`: pass or fail an experiment, for CI."""

import sys
from pathlib import Path
from typing import Any

import click

from assay.cli import Command
from assay.cli._rows import facet_values, row_options


@click.command("gate", cls=Command)
@click.argument("path", type=click.Path())
@click.option("-c", "--config", type=click.Path(), help="A config with `gates:`; default: the folder's own.")
@click.option("--min", "minimum", type=float, help="The least value that passes.")
@click.option("--max", "maximum", type=float, help="The largest value that passes.")
@click.option("--max-drop", type=click.FloatRange(min=0), help="The largest drop below the baseline that passes.")
@click.option("--baseline", type=click.Path(), default="", help="The experiment that a drop is measured from.")
@row_options
@click.option("--point", is_flag=True, help="Let the plain number decide, not its interval.")
@click.option("--max-error-rate", type=click.FloatRange(0, 1), help="More errored rows are inconclusive; default 0.")
@click.option(
    "--inconclusive",
    type=click.Choice(["exit", "pass", "fail"]),
    default="exit",
    help="What is inconclusive exits with 4 (the default), 0 or 3.",
)
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Append a Markdown summary to this file.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def command(
    path: str,
    minimum: float | None,
    maximum: float | None,
    max_drop: float | None,
    metric: str | None,
    label: str,
    where: tuple[str, ...],
    debug: bool,
    inconclusive: str,
    junit_file: Path | None,
    markdown: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Check the experiment in PATH against bounds or a baseline.

    Exits with 0 if it passed, 3 if it failed, 4 if the data cannot tell.
    """
    from assay.analysis.compare.gate import EXIT_CODES, gate
    from assay.errors import UserError

    bounds = {"min": minimum, "max": maximum, "max_drop": max_drop}
    given = {name: value for name, value in bounds.items() if value is not None}
    chosen: dict[str, Any] = {"metric": metric, "label": label, "facets": facet_values(where)}
    chosen = {name: value for name, value in chosen.items() if value}
    if chosen and not given:
        raise UserError(f"--{next(iter(chosen))} needs a bound", fix="add --min, --max or --max-drop")
    gated = gate(path, **options, **given, **chosen)
    _write(gated, junit_file, markdown, inconclusive)
    _show(gated, as_json)
    code = EXIT_CODES[gated.outcome]
    sys.exit({"pass": 0, "fail": 3}.get(inconclusive, code) if gated.outcome == "inconclusive" else code)


def _write(gated: Any, junit_file: Path | None, markdown: Path | None, inconclusive: str) -> None:
    from assay.errors import StoreError

    try:
        if junit_file is not None:
            from assay.reports.junit import junit

            junit_file.write_bytes(junit(gated, inconclusive=inconclusive))
        if markdown is not None:
            from assay.reports.gate_table import gate_markdown

            with markdown.open("a", encoding="utf-8") as file:  # GitHub's step summary may hold other text
                file.write(gate_markdown(gated) + "\n")
    except OSError as error:
        raise StoreError(f"the report cannot be written: {error.strerror}", where=str(error.filename)) from error


def _show(gated: Any, as_json: bool) -> None:
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(gated).decode())
        return
    from rich.console import Console

    from assay.reports.gate_table import gate_view

    console = Console()
    console.print(gate_view(gated, console))
    click.echo(f"gate: {gated.outcome}")
