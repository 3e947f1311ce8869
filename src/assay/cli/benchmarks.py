"""`assay benchmarks`: bring the data of benchmarks to a machine without a network."""

import click

from assay import api
from assay.cli import Verbs
from assay.cli._options import include_path_option, option
from assay.cli._output import format_option, show
from assay.errors import RunFailed


@click.group("benchmarks", cls=Verbs)
def command() -> None:
    """Benchmarks by their names: `assay list benchmarks`, `assay show NAME`, `assay run NAME -m MODEL`."""


@command.command("pull")
@click.argument("names", nargs=-1, required=True)
@option("-o", "--output-dir", "The folder that will hold the data.", required=True)
@include_path_option
@format_option
def pull(
    names: tuple[str, ...], output_dir: str, include_path: str | None, form: str, as_json: bool
) -> None:
    """Bring the data of the benchmarks NAMES into a folder: on another machine, set ASSAY_DATA to it.

    The same command resumes where an earlier one stopped. Files that Assay did not write stay as they are.
    """
    results = api.benchmarks_pull(
        names,
        output_dir,
        include_path=include_path or "",
        progress=lambda result: click.echo(
            api.plain(f"{result.name}: {result.problem or 'here'}"), err=True
        ),
    )
    show(results, form, as_json=as_json)
    if all(result.problem for result in results):
        raise RunFailed("nothing was pulled", fix="the lines above say why")
