"""`assay list`: the plug-ins there are."""

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from assay.cli import Command

if TYPE_CHECKING:
    from assay.registry import Registry


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from assay.cli._described import kinds

    return [CompletionItem(kind) for kind in kinds() if kind.startswith(incomplete)]


@click.command("list", cls=Command)
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(kind: str | None, as_json: bool, debug: bool) -> None:
    """List the plug-ins of a KIND (dataset, prompt, model, task, scorer, metric …), or of every kind."""
    from assay.cli._described import kind_called, kinds

    for number, plug_ins in enumerate([kind_called(kind)] if kind else kinds().values()):
        found = [(name, *_about(plug_ins, name)) for name in plug_ins.names()]
        if as_json:
            import json

            for name, about, origin in found:
                click.echo(json.dumps({"kind": plug_ins.kind, "name": name, "about": about, "origin": origin}))
            continue
        from assay.text.plain import plain

        width = max((len(name) for name, *_ in found), default=0)
        if not kind:
            click.echo(("\n" if number else "") + click.style(plug_ins.kind, bold=True))
        for name, about, _ in found:
            click.echo(plain(f"{'' if kind else '  '}{name:{width}}  {about}".rstrip()))


def _about(plug_ins: "Registry", name: str) -> tuple[str, str]:
    """First line and origin; a plug-in of somebody else that cannot be imported is listed with its reason."""
    from assay.cli._described import summary

    try:
        return summary(plug_ins, name)
    except Exception as error:  # an entry point runs foreign code when it is loaded
        return f"cannot be loaded: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", ""
