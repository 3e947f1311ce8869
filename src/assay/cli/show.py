"""`assay show`: one plug-in, with its parameters."""

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from assay.cli import Command
from assay.cli.list import complete_kind

if TYPE_CHECKING:
    from assay.cli._described import Described


def complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from assay.cli._described import kinds

    names = {name for plug_ins in kinds().values() for name in plug_ins.names()}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


@click.command("show", cls=Command)
@click.argument("name", shell_complete=complete_name)
@click.option("--kind", help="Where one name is of several kinds.", shell_complete=complete_kind)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object per line.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(name: str, kind: str | None, as_json: bool, debug: bool) -> None:
    """Describe the plug-in NAME, which may also be `file.py:function` or a dotted name."""
    for number, found in enumerate(_found(name, kind)):
        if as_json:
            import json

            click.echo(json.dumps(found.to_dict()))
        else:
            from assay.text.plain import plain

            click.echo(plain(("\n" if number else "") + shown(found)))


def _found(name: str, kind: str | None) -> "list[Described]":
    from assay.cli._described import describe, kind_called, kinds
    from assay.errors import UserError
    from assay.registry import nearest

    if kind is not None:
        return [describe(kind_called(kind), name)]
    known = kinds()
    found = [describe(plug_ins, name) for plug_ins in known.values() if name in plug_ins.names()]
    if not found and "." in name:
        found = [describe(known["scorer"], name)]
        found[0].kind = "function"
    if not found:
        every = {each for plug_ins in known.values() for each in plug_ins.names()}
        raise UserError(f"there is no plug-in {name!r}", fix=nearest(name, every))
    return found


def shown(found: "Described") -> str:
    lines = [f"{found.name} ({found.kind})", ""]
    lines += [f"  {line}".rstrip() for line in found.doc.splitlines()]
    rest = [line for line in found.module_doc.splitlines() if line not in found.doc.splitlines()]
    lines += ["", *(f"  {line}".rstrip() for line in rest)] if rest else []
    arguments = ", ".join(found.engine)
    returns = f" -> {found.returns}" if found.returns else ""
    lines += ["", "signature", f"  ({arguments}{', *, …' if found.parameters else ''}){returns}"]
    lines += ["", "parameters"]
    width = max((len(each["name"]) for each in found.parameters), default=0)
    for each in found.parameters:
        default = "required" if each["required"] else f"default {each['default']}"
        lines.append(f"  {each['name']:{width}}  {each['type']}, {default}")
    if not found.parameters:
        lines.append("  none")
    return "\n".join([*lines, "", f"from {found.origin}"])
