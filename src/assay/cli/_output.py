"""How results are shown: to a person in one of several formats, or to a program as JSON."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import click

from assay import api

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("table", "markdown", "latex", "csv", "html")


def format_option(function: F) -> F:
    """--format and --json, of every command that shows a table."""
    form = click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="Of what is shown.")
    return form(click.option("--json", "as_json", is_flag=True, help="JSON with everything, unrounded.")(function))


def show(value: Any, form: str = "table", *, as_json: bool = False, **view: Any) -> None:
    """Print a result; `view` are parameters of its view."""
    if as_json:
        print_json(value)
        return

    print_sheet(api.sheet(value, **view), form)


def print_sheet(sheet: Any, form: str = "table") -> None:
    colour = form == "table" and has_colour()
    click.echo(sheet.form(form, colour=colour), color=colour)


def has_colour() -> bool:
    """Whether standard output is a terminal that shows colours and nobody asked for none."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb")


def only_json(as_json: bool) -> AbstractContextManager[None]:
    """With --json, keep standard output from what user code prints."""
    from assay import api

    return api.for_programs() if as_json else nullcontext()


def print_json(value: Any) -> None:
    """One object on one line; a list is printed as one, too."""
    from assay import api

    api.emit(value)


def print_notes(notes: Any) -> None:
    """What a person should know, on standard error."""
    for note in notes:
        click.echo(f"note: {api.plain(note)}", err=True)
