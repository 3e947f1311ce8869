"""The options that `evaluate` and `aggregate` share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def again_options(function: F) -> F:
    """-c, -o and the rest."""
    for option in (
        click.option("-c", "--config", type=click.Path(), help="The config; default: the folder's own."),
        click.option("-o", "--output-dir", help="The folder to write to; default: the one that was read."),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a dotted key."),
        click.option("--retry-errors", is_flag=True, help="Try what failed again."),
        click.option("--json", "as_json", is_flag=True, help="JSON lines; the last line is the result."),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    ):
        function = option(function)
    return function


def overrides(settings: tuple[str, ...]) -> dict[str, Any]:
    from assay.config import parse_override

    return dict(parse_override(setting) for setting in settings)
