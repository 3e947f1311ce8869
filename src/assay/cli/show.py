"""`assay show`: describe a plug-in or a benchmark."""

import click

from assay import api
from assay.cli import verb
from assay.cli._options import completing, include_path_option, option
from assay.cli._output import format_option, print_json, show as show_value
from assay.cli.list import ask_index, complete_kind


def _plug_ins(_: click.Context) -> list[str]:
    return sorted({name for plug_ins in api.kinds().values() for name in plug_ins.names()})


@verb("show")
@click.argument("name", shell_complete=completing(_plug_ins))
@option("--kind", "Where one name is of several kinds.", default="", shell_complete=complete_kind)
@include_path_option
@format_option
def command(name: str, kind: str, include_path: str | None, form: str, as_json: bool) -> None:
    """Describe the plug-in NAME, which may also be `file.py:function` or a dotted name, or the benchmark NAME."""
    described = ask_index(lambda **options: api.show(name, kind=kind, **options), include_path)
    if not as_json:
        show_value(described, form)
        return
    for entry in described:
        print_json(entry.to_dict())
