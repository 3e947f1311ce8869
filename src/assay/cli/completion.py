"""`assay completion`: print the shell completion script."""

import click

from assay.cli import Command


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a SHELL; evaluate it in the shell's start-up file."""
    from click.shell_completion import get_completion_class

    from assay.cli import group

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(group, {}, "assay", "_ASSAY_COMPLETE")
    click.echo(script.source_template % script.source_vars())
