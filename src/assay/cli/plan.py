"""`assay plan`: what a run would do."""

from typing import Any

import click

from assay.cli import Command
from assay.cli._options import config_options, experiment_of


@click.command("plan", cls=Command)
@config_options
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def command(debug: bool, as_json: bool, **options: Any) -> None:
    """Show how many cells there are, how many have rows, how many would run."""
    show(experiment_of(**options), as_json)


def show(experiment: Any, as_json: bool) -> None:
    from assay.engine.experiment.plan import plan

    found = plan(experiment)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from assay.reports.plan_table import plan_text

    click.echo(plan_text(found))
