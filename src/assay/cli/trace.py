"""`assay trace`: one item through all steps."""

import click

from assay.cli import Command


@click.command("trace", cls=Command)
@click.argument("path", type=click.Path())
@click.argument("item_id")
@click.option("--sample", type=click.IntRange(min=0), help="Only this sample, counted from 0.")
@click.option("-m", "--model", help="Only rows of this model.")
@click.option("--full", is_flag=True, help="Do not cut long texts.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object, with whole rows.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(
    path: str, item_id: str, sample: int | None, model: str | None, full: bool, as_json: bool, debug: bool
) -> None:
    """Follow the item ITEM_ID of the experiment in PATH: messages, calls, response, labels, metric rows."""
    from assay.analysis.look.trace import trace

    found = trace(path, item_id, sample=sample, model=model)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from assay.reports.trace_tree import trace_text

    click.echo(trace_text(found, full))
