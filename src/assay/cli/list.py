"""`assay list`: list plug-ins of a kind, providers, a provider's models, or benchmarks."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import completing, flag, include_path_option
from assay.cli._output import format_option, print_json, show
from assay.errors import UserError

complete_kind = completing(lambda _: (*api.kinds(), "providers", "benchmarks"))


def _providers(ctx: click.Context) -> Iterator[str]:
    if ctx.params.get("kind", "").startswith("model"):
        yield from (entry.name for entry in api.list("providers"))


@verb("list")
@click.argument("kind", default="", shell_complete=complete_kind)
@click.argument("name", default="", shell_complete=completing(_providers))
@include_path_option
@flag("--unsupported", "Only benchmarks that cannot run here, with the reason.")
@format_option
def command(
    kind: str, name: str, include_path: str | None, unsupported: bool, form: str, as_json: bool
) -> None:
    """List the plug-ins of a KIND (dataset, prompt, model, task, scorer, metric …), or of every
    kind.

    `providers` are those that a model's name can begin with. `models NAME` asks a provider which models it has;
    NAME may also be a server's address. `benchmarks NAME` are those with NAME in theirs; it may be a pattern with `*`.
    """
    if kind in ("benchmark", "benchmarks"):
        entries = ask_index(
            lambda **options: api.benchmarks_list(name, unsupported=unsupported, **options),
            include_path,
        )
    elif unsupported or include_path:
        raise UserError(
            "--unsupported and --include-path are about benchmarks", fix="assay list benchmarks"
        )
    else:
        entries = api.list(kind, name)
    if not entries:
        click.echo("none", err=True)
    elif not as_json:
        show(entries, form)
        return
    for entry in entries:
        print_json(entry._asdict())


def ask_index(ask: Any, include_path: str | None) -> Any:
    """Return what an index of benchmarks answers, with a display while it is made, which is once
    for an installation."""
    options = {"include_path": include_path or ""}
    if not sys.stderr.isatty():
        return ask(**options)
    from assay.cli._progress import bar

    with bar("reading task files, once") as progress:
        return ask(**options, progress=progress)
