"""The options that `run`, `plan` and `validate` share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def config_options(function: F) -> F:
    """CONFIG (or -c CONFIG), --set, and what narrows a run."""
    for option in (
        click.argument("config", required=False, type=click.Path()),
        click.option("-c", "--config", "config_option", type=click.Path(), help="The config; the same as CONFIG."),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a dotted key."),
        click.option("-o", "--output-dir", help="The experiment's folder."),
        click.option(
            "-m",
            "--model",
            "models",
            multiple=True,
            metavar="MODEL",
            help="Only this model: a name in the config, type:name[@url], or file.py:function.",
        ),
        click.option("--limit", type=click.IntRange(min=0), help="Only the first N items."),
        click.option("--num-samples", type=click.IntRange(min=1), help="Only the first N samples of each item."),
        click.option("--retry-errors", is_flag=True, help="Try permanent errors again, too."),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    ):
        function = option(function)
    return function


def experiment_of(config: str | None, config_option: str | None, settings: tuple[str, ...], **options: Any) -> Any:
    """The experiment that the options describe."""
    from assay import api
    from assay.config import parse_override
    from assay.errors import UserError

    source = config or config_option
    if source is None or (config and config_option):
        raise UserError("name one config", fix="assay run config.yaml")
    overrides = dict(parse_override(setting) for setting in settings)
    return api.experiment(source, overrides=overrides, **options)
