"""`assay lock`: write down what determines a config's numbers, for `run --locked`."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import benchmark_options, config_of, settings_option
from assay.cli._output import shown


@verb("lock")
@click.argument("config", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="The lock; default: CONFIG.lock.")
@settings_option
@benchmark_options
@shown
def command(config: str, output: str | None, **options: Any) -> Any:
    """Write what determines the numbers of CONFIG to CONFIG.lock: hashes of data, prompts and code, models with what
    servers reported, versions, seeds, prices.

    Nothing is run. Locking an unchanged config again changes no byte; a file that is not a lock is never replaced.
    """
    source, chosen = config_of(config=config, config_option=None, **options)
    return api.lock(source, output=output, **chosen)
