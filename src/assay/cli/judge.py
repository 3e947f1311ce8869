"""`assay judge`: label answers by hand, and find out how far to believe a judge. Each command has its own file."""

from importlib import import_module

import click

COMMANDS = {
    "calibrate": "Compare a judge with people's labels.",
    "label": "Label answers in the terminal.",
}


class _Commands(click.Group):
    """Lists commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return import_module(f"assay.cli._judge_{cmd_name}").command if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("judge", cls=_Commands)
def command() -> None:
    """Label answers by hand, and find out how far to believe a judge."""
