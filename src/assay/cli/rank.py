"""`assay rank`: rank models by the matches between their answers."""

from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    cluster_option,
    force_option,
    label_option,
    level_option,
    trust_option,
)
from assay.cli._output import format_option, show


@verb("rank")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@label_option
@click.option(
    "--by",
    default="",
    metavar="FIELD",
    help="Players are the values of this field of the responses.",
)
@click.option(
    "--method",
    type=click.Choice(["bradley-terry", "elo", "win-rate"]),
    default="bradley-terry",
    help="Default: bradley-terry, with ties.",
)
@level_option
@click.option(
    "--rounds", type=click.IntRange(min=100), default=1000, help="Of the bootstrap; default 1,000."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Of resampling and shuffling; default 0."
)
@click.option(
    "--prior",
    type=click.FloatRange(0, 1_000_000),
    help="Virtual matches a player; default: as needed.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write it to a file, too: .json, .csv, .md, .tex or .html; may be repeated.",
)
@cluster_option
@trust_option
@force_option
@format_option
def command(
    paths: tuple[str, ...],
    outputs: tuple[Path, ...],
    force: bool,
    form: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Rank the players in the matches of each PATH: experiments' folders, or files of evaluation rows."""
    for path in outputs:  # a name that tells no format is refused before the work
        api.checked_suffix(path)
    ranking = api.rank(paths, **options)
    for path in outputs:
        api.save(ranking, path, force=force)
    show(ranking, form, as_json=as_json)
