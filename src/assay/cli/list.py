"""`assay list`: list plug-ins of a kind, providers, or a provider's models."""

import click
from click.shell_completion import CompletionItem

from assay import api
from assay.cli import Command
from assay.cli._output import format_option, show


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(kind) for kind in (*api.kinds(), "providers") if kind.startswith(incomplete)]


def complete_provider(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = [entry.name for entry in api.list("providers")] if ctx.params.get("kind", "").startswith("model") else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("list", cls=Command)
@click.argument("kind", default="", shell_complete=complete_kind)
@click.argument("provider", default="", shell_complete=complete_provider)
@format_option
def command(kind: str, provider: str, form: str, as_json: bool) -> None:
    """List the plug-ins of a KIND (dataset, prompt, model, task, scorer, metric …), or of every kind.

    `providers` are those that a model's name can begin with. `models PROVIDER` asks the provider which models it has;
    PROVIDER may also be a server's address.
    """
    entries = api.list(kind, provider)
    if not as_json:
        show(entries, form)
        return
    import json

    for entry in entries:
        click.echo(json.dumps(entry._asdict()))
