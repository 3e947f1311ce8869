"""`assay plan`: show what a run would do, without doing it."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import config_of, config_options
from assay.cli._output import with_formats


@verb("plan")
@config_options
@with_formats
def command(**options: Any) -> Any:
    """Show how many cells there are, how many have rows, how many would run."""
    config, chosen = config_of(**options)
    return api.plan(config, **chosen)
