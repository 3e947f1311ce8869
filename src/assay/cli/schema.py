"""`assay schema`: print the JSON Schema of the config, or of what a command prints."""

import json
from pathlib import Path

import click

from assay import api
from assay.cli import verb
from assay.cli._options import completing, force_option, option
from assay.cli._output import json_option, tell

_complete_command = completing(lambda _: api.output_commands())


@verb("schema")
@click.argument("words", metavar="[COMMAND]", nargs=-1, shell_complete=_complete_command)
@option("-o", "--output", "Write it to this file.", type=click.Path(dir_okay=False, path_type=Path))
@json_option
@force_option
def command(words: tuple[str, ...], output: Path | None, force: bool, as_json: bool) -> None:
    """Print the JSON Schema of a config file, with which editors complete and check it; of COMMAND, that of each line
    which it prints with --json."""
    text = (
        json.dumps(api.output_schema(" ".join(words)), indent=2) + "\n" if words else api.schema()
    )
    if output is None:
        click.echo(text, nl=False)
        return
    api.write_named(output, text.encode(), force=force, private=False)
    tell({"output": str(output), "notes": []}, f"written: {output}", as_json=as_json)
