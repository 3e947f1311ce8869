"""`assay import`: results of other programs become an experiment's folder."""

import click

from assay.cli import Command


@click.command("import", cls=Command)
@click.argument("source", type=click.Path())
@click.option("-o", "--output", type=click.Path(), required=True, help="The experiment's folder; it is made.")
@click.option("--from", "format_name", default="", help="ragicamp …; default: found out from the files.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A parameter of the format.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each dataset.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(source: str, output: str, format_name: str, settings: tuple[str, ...], as_json: bool, debug: bool) -> None:
    """Read SOURCE, a folder or a file, as items, responses and evaluations of ours."""
    import msgspec

    from assay.config import parse_override
    from assay.engine.experiment.import_rows import import_results
    from assay.text.plain import plain

    params = dict(parse_override(setting) for setting in settings)
    for found in import_results(source, output, format_name=format_name, params=params):
        if as_json:
            click.echo(msgspec.json.encode(found).decode())
            continue
        agents = f"of {len(found.agents)} agent{'s' if len(found.agents) != 1 else ''}"
        click.echo(plain(f"{found.dataset}: {found.format}, {', '.join(found.read_from)}"))
        click.echo(f"items: {found.items:,}")
        click.echo(f"responses: {_counts(found.responses)} {agents}")
        click.echo(f"evaluations: {_counts(found.evaluations)}")
        for note in found.notes:
            click.echo(f"note: {plain(note)}", err=True)
        click.echo(f"files: {found.folder}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()) or "none"
