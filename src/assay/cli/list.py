"""`assay list`: list plug-ins of a kind."""

import click
from click.shell_completion import CompletionItem

from assay import api
from assay.cli import Command
from assay.cli._output import format_option, show


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(kind) for kind in api.kinds() if kind.startswith(incomplete)]


@click.command("list", cls=Command)
@click.argument("kind", default="", shell_complete=complete_kind)
@format_option
def command(kind: str, form: str, as_json: bool) -> None:
    """List the plug-ins of a KIND (dataset, prompt, model, task, scorer, metric …), or of every kind."""
    plug_ins = api.list(kind)
    if not as_json:
        show(plug_ins, form)
        return
    import json

    for plug_in in plug_ins:
        click.echo(json.dumps(plug_in._asdict()))
