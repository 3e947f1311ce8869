"""`assay validate`: check everything that can be known before spending."""

from typing import Any

import click

from assay import api
from assay.cli import Command
from assay.cli._options import config_of, config_options
from assay.cli._output import print_sheet


@click.command("validate", cls=Command)
@config_options
def command(**options: Any) -> None:
    """Check a config, its code, its dataset and its templates, without calling a model."""
    source, chosen = config_of(**options)
    experiment = api.experiment(source, **chosen)
    lines = [f"warning: {warning}" for warning in experiment.validate()]
    config = experiment.config
    lines.append(
        f"ok: {len(config.models) + len(config.tasks)} models or tasks, {max(1, len(config.prompts))} prompts, "
        f"{len(config.evaluation_methods)} evaluation methods, {len(config.metrics)} metrics"
    )
    print_sheet(api.listing(lines))
