"""`assay sygra`: run a task folder (`graph_config.yaml` and its Python helpers) with the flags it was written for."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from assay.cli import Command


def _truth(*names: str, default: bool | None = None, **more: Any) -> Any:
    """An option whose value is `True` or `False`, written out; the bare flag means True."""

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> bool | None:
        return default if value is None else value == "True"

    values = click.Choice(["True", "False"], case_sensitive=False)
    return click.option(*names, type=values, is_flag=False, flag_value="True", callback=convert, **more)


def _json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    try:
        return json.loads(value or "{}")
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", ctx, param) from None


@click.command("sygra", cls=Command)
@click.option("-t", "--task", required=True, help="The task: tasks.a.b, a.b, a/b, or the path of its folder.")
@click.option("-n", "--num-records", type=click.IntRange(min=0), default=10, help="How many records; 0 is all.")
@click.option("-si", "--start-index", type=click.IntRange(min=0), default=0, help="The first record's number.")
@click.option("-b", "--batch-size", type=click.IntRange(min=1), default=25, help="Records in flight at once.")
@click.option("-od", "--output-dir", help="Where files go; by default the task's folder.")
@click.option("-rn", "--run-name", default="", help="Begins the names of the files.")
@_truth("-owt", "--output-with-ts", default=True, help="Whether file names carry the time.")
@_truth("-r", "--resume", help="False begins anew; otherwise a run resumes.")
@click.option("--output-format", type=click.Choice(["json", "jsonl"]), help="By default jsonl above 25,000 records.")
@click.option(
    "--report-keys",
    type=click.Choice(["name", "field", "seed"]),
    metavar="[name|field]",
    help="How results are named in the report.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="For samplers and random joins.")
@click.option("--retry-errors", is_flag=True, help="Try failed records again, permanent errors too.")
@click.option("--draw", is_flag=False, flag_value="-", metavar="[FILE]", help="Draw the graph (.svg, .mmd) and stop.")
@_truth("-dm", "--disable-metadata", default=False, help="Write no metadata file.")
@_truth("-d", "--debug", default=False, help="Show tracebacks; log to logs/out.log.")
@_truth("-cl", "--clear-logs", default=False, help="Delete logs/out.log first.")
@click.option("-ci", "--checkpoint-interval", type=click.IntRange(min=1), help="No need: each record is saved at once.")
@click.option("-ra", "--run-args", callback=_json, help="JSON; nothing reads it.")
@_truth("-ost", "--oasst", help="Not offered.")
@_truth("-q", "--quality", help="Not offered.")
@click.option("--no-progress", is_flag=True, help="No progress display.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON lines; the last line is the result.")
def command(
    draw: str | None,
    no_progress: bool,
    as_json: bool,
    checkpoint_interval: int | None,
    run_args: Any,
    oasst: bool | None,
    quality: bool | None,
    **options: Any,
) -> None:
    """Run every record of a task through its graph, then its post-processors.

    The same command resumes an earlier run.
    """
    from assay.cli._running import failure_as_event, run_step
    from assay.errors import UserError
    from assay.formats.sygra.experiment import Options, SygraRun

    with failure_as_event(as_json):
        for name, asked in (("--oasst", oasst), ("--quality", quality)):
            if asked:
                raise UserError(f"{name} is not offered", fix="leave it out; post-process the output file instead")
        if draw is not None:
            _draw(options["task"], draw)
            return
        run = SygraRun(Options(**options))
        if run_args:
            run.progress.note("--run-args: no part of a task reads them")
        result = run_step(run, as_json=as_json, no_progress=no_progress)
    _show(result, as_json, notes=no_progress)
    if not result.ok:
        sys.exit(1)


def _draw(task: str, file: str) -> None:
    from assay.formats.sygra.task import drawn

    text = drawn(task, "svg" if file.endswith(".svg") else "mmd", Path())
    if file == "-":
        click.echo(text)
    else:
        Path(file).write_text(text, "utf-8")
        click.echo(f"drawn: {file}")


def _show(result: Any, as_json: bool, notes: bool) -> None:
    if as_json:
        import msgspec

        from assay.reports.progress import emit

        emit({"event": "result", "ok": result.ok, **msgspec.to_builtins(result)})
        return
    from rich.console import Console

    from assay.formats.sygra.table import report_view
    from assay.text.plain import plain

    console = Console()
    for note in result.notes if notes else ():
        click.echo(f"note: {plain(note)}", err=True)
    for view in report_view(result):
        console.print(view)
    files = [result.output, *(processed.file for processed in result.processed), result.metadata]
    for file in filter(None, files):
        click.echo(f"file: {file}")
