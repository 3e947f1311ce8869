"""`assay rank`: who is best, from matches."""

from pathlib import Path
from typing import Any

import click

from assay.cli import Command


@click.command("rank", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--label", default="", help="The label to look at, if there are several.")
@click.option("--by", default="", metavar="FIELD", help="Players are the values of this field of the responses.")
@click.option(
    "--method",
    type=click.Choice(["bradley-terry", "elo", "win-rate"]),
    default="bradley-terry",
    help="Default: bradley-terry, with ties.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Of the intervals; default 0.95.",
)
@click.option("--rounds", type=click.IntRange(min=100), default=1000, help="Of the bootstrap; default 1,000.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of resampling and shuffling; default 0.")
@click.option("--prior", type=click.FloatRange(min=0), help="Virtual matches a player; default: none unless needed.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write it to a file, too: .json, .csv, .md or .tex; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(paths: tuple[str, ...], outputs: tuple[Path, ...], as_json: bool, debug: bool, **options: Any) -> None:
    """Rank the players in the matches of each PATH: experiments' folders, or files of evaluation rows."""
    from assay.analysis.rank.rank import rank
    from assay.reports.rank_table import rank_view, write_ranking, writer_of

    for path in outputs:
        writer_of(path)
    found = rank(paths, **options)
    for path in outputs:
        write_ranking(found, path)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from rich.console import Console

    console = Console()
    console.print(rank_view(found, console))
