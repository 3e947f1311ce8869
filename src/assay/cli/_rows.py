"""What `compare` and `gate` share: which rows, which number, how sure."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def row_options(function: F) -> F:
    for option in (
        click.option("--debug", is_flag=True, help="Show tracebacks."),
        click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the resampling; default 0."),
        click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Of the intervals."),
        click.option("--where", multiple=True, metavar="FACET=VALUE", help="Only rows with this value."),
        click.option("--label", default="", help="The label to look at, if there are several."),
        click.option("--metric", help="mean (the default), pass_rate, pass@k, or another metric."),
    ):
        function = option(function)
    return function


def facet_values(settings: Sequence[str]) -> dict[str, str]:
    """FACET=VALUE pairs."""
    from assay.errors import UserError

    pairs = [setting.partition("=") for setting in settings]
    for facet, equals, value in pairs:
        if not facet or not equals:
            raise UserError(
                f"--where takes FACET=VALUE, got {facet + equals + value!r}", fix="--where model_name=small"
            )
    return {facet: value for facet, _, value in pairs}
