"""`assay lock`: write down what determines a config's numbers, for `run --locked`."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import PATH, benchmark_options, config_of, option, place, settings_option
from assay.cli._output import with_formats


@verb("lock")
@place("config")
@option("-o", "--output", "The lock; default: CONFIG.lock.", type=PATH)
@settings_option
@benchmark_options
@with_formats
def command(config: str, output: str | None, **options: Any) -> Any:
    """Write what determines the numbers of CONFIG to CONFIG.lock: hashes of data, prompts and code, models with what
    servers reported, versions, seeds, prices.

    Nothing is run. Locking an unchanged config again changes no byte; a file that is not a lock is never replaced.
    """
    source, chosen = config_of(config=config, config_option=None, **options)
    return api.lock(source, output=output, **chosen)
