"""`assay dataset`: keep named, immutable datasets."""

from typing import Any

import click

from assay import api
from assay.cli import Verbs
from assay.cli._options import NATURAL, option, overrides
from assay.cli._output import format_option, json_option, show, tell, with_formats

_repository = option(
    "--repository",
    "Default: $ASSAY_REPOSITORY, else the folder assay-data.",
    default="",
    metavar="DIR",
)


@click.group("dataset", cls=Verbs)
def command() -> None:
    """Keep named, immutable datasets."""


@command.command("add")
@click.argument("source")
@option("--name", "What configs call it.", required=True)
@option("--id", "Its id and folder; by default the name.", default="")
@option("--label", "labels", "A word to find it by; may be repeated.", multiple=True)
@option(
    "--set",
    "settings",
    "A key of `dataset:`, such as fields.id.",
    multiple=True,
    metavar="KEY=VALUE",
)
@_repository
@json_option
def add(source: str, settings: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Store the rows of SOURCE (a file, a pattern, hf:NAME, file.py:function) under a name."""
    show(api.dataset_add(source, settings=overrides(settings), **options), as_json=as_json)


@command.command("ls")
@_repository
@format_option
def ls(repository: str, form: str, as_json: bool) -> None:
    """List the stored datasets."""
    datasets = api.dataset_ls(repository=repository)
    if datasets or as_json:
        show(datasets, form, as_json=as_json)
    else:
        click.echo("no datasets: `assay dataset add FILE --name NAME` stores one")


@command.command("show")
@click.argument("name")
@option("--head", "How many items to print.", type=NATURAL, default=3, show_default=True)
@_repository
@with_formats
def show_dataset(name: str, head: int, repository: str) -> Any:
    """Describe a stored dataset: hash, origin, duplicates, its first items."""
    return api.dataset_show(name, head=head, repository=repository)


@command.command("verify")
@click.argument("name")
@_repository
@json_option
def verify(name: str, repository: str, as_json: bool) -> None:
    """Check that a stored dataset has the bytes that were stored."""
    dataset = api.dataset_verify(name, repository=repository)
    text = f"ok: {name} has its {dataset.items:,} items, hash {dataset.hash}"
    tell(dataset, text, as_json=as_json)
