"""`assay rank`: rank models by the matches between their answers."""

from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import (
    FILE,
    NATURAL,
    cluster_option,
    force_option,
    label_option,
    level_option,
    option,
    trust_option,
)
from assay.cli._output import with_formats


@verb("rank")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@label_option
@option(
    "--by", "Players are the values of this field of the responses.", default="", metavar="FIELD"
)
@option(
    "--method",
    "Default: bradley-terry, with ties.",
    type=click.Choice(["bradley-terry", "elo", "win-rate"]),
    default="bradley-terry",
)
@level_option
@option("--rounds", "Of the bootstrap; default 1,000.", type=click.IntRange(min=100), default=1000)
@option("--seed", "Of resampling and shuffling; default 0.", type=NATURAL, default=0)
@option(
    "--prior", "Virtual matches a player; default: as needed.", type=click.FloatRange(0, 1_000_000)
)
@option(
    "-o",
    "--output",
    "outputs",
    "Write it to a file, too: .json, .csv, .md, .tex or .html; may be repeated.",
    multiple=True,
    type=FILE,
)
@cluster_option
@trust_option
@force_option
@with_formats
def command(paths: tuple[str, ...], outputs: tuple[Path, ...], force: bool, **options: Any) -> Any:
    """Rank the players in the matches of each PATH: experiments' folders, or files of evaluation rows."""
    for path in outputs:  # a name that tells no format is refused before the work
        api.checked_suffix(path)
    ranking = api.rank(paths, **options)
    for path in outputs:
        api.save(ranking, path, force=force)
    return ranking
