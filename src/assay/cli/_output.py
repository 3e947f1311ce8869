"""How results are shown: to a person in one of several formats, or to a program as JSON."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from shutil import get_terminal_size
from typing import Any

import click

from assay import api
from assay.cli._options import all_of, flag, option

FORMATS = click.Choice(("table", "markdown", "latex", "csv", "html"))
# of every command; `assay schema COMMAND` describes what is printed
json_option = flag("--json", "as_json", "JSON with everything, unrounded.")
format_option = all_of(  # of every command that shows a table
    json_option, option("--format", "form", "Of what is shown.", type=FORMATS, default="table")
)


def show(value: Any, form: str = "table", *, as_json: bool = False, **view: Any) -> None:
    """Print a result; `view` are parameters of its view."""
    if as_json:
        print_json(value)
        return

    print_sheet(api.sheet(value, **view), form)


def with_formats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Show the result of a command, which gets --format and --json."""

    @wraps(function)
    def command(*, form: str, as_json: bool, **options: Any) -> None:
        show(function(**options), form, as_json=as_json)

    return format_option(command)


def show_all(
    values: Sequence[Any], form: str = "table", *, as_json: bool = False, **view: Any
) -> None:
    """Print results of one kind, as JSON each on a line."""
    if not as_json:
        show(values, form, **view)
    for value in values if as_json else ():
        print_json(value)


def print_sheet(sheet: Any, form: str = "table") -> None:
    colour = form == "table" and has_colour()
    click.echo(sheet.form(form, colour=colour), color=colour)


def has_colour() -> bool:
    """Return whether standard output is a terminal that shows colours and nobody asked for none."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    )


def print_json(value: Any) -> None:
    """One object on one line; a list is printed as one, too."""
    api.emit(value)


def tell(value: Any, text: str, *, as_json: bool) -> None:
    """Print a value for a program, or what a person is told instead."""
    if as_json:
        print_json(value)
    else:
        click.echo(api.plain(text))


def show_apart(value: Any, result: Any, *, as_json: bool) -> None:
    """Print the sheet of a result with its notes on standard error, or its value for a program."""
    if as_json:
        print_json(value)
        return
    sheet = api.sheet(result)
    print_sheet(sheet._replace(notes=()))
    print_notes(sheet.notes)


def print_notes(notes: Any) -> None:
    """Print what a person should know, on standard error; a terminal would break lines within
    words."""
    width = get_terminal_size().columns if sys.stderr.isatty() else 0
    for note in notes:
        text = f"note: {api.plain(note)}"
        click.echo(click.wrap_text(text, width) if width else text, err=True)
