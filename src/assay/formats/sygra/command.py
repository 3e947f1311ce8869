"""`assay sygra`: run a task folder (`graph_config.yaml` and its Python helpers) with the flags it was written for."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from assay.cli import Command
from assay.sdk import JsonMapping
from assay.text.plain import plain


def _truth(*names: str, default: bool | None = None, **more: Any) -> Any:
    """An option whose value is `True` or `False`, written out; the bare flag means True."""

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> bool | None:
        return default if value is None else value == "True"

    values = click.Choice(["True", "False"], case_sensitive=False)
    return click.option(
        *names, type=values, is_flag=False, flag_value="True", callback=convert, **more
    )


def _json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    try:
        return json.loads(value or "{}")
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", ctx, param) from None


@click.command("sygra", cls=Command)
@click.option(
    "-t", "--task", required=True, help="The task: tasks.a.b, a.b, a/b, or the path of its folder."
)
@click.option(
    "-n",
    "--num-records",
    type=click.IntRange(min=0),
    default=10,
    help="How many records; 0 is all.",
)
@click.option(
    "-si", "--start-index", type=click.IntRange(min=0), default=0, help="The first record's number."
)
@click.option(
    "-b", "--batch-size", type=click.IntRange(min=1), default=25, help="Records in flight at once."
)
@click.option("-od", "--output-dir", help="Where files go; by default the task's folder.")
@click.option("-rn", "--run-name", default="", help="Begins the names of the files.")
@_truth("-owt", "--output-with-ts", default=True, help="Whether file names carry the time.")
@_truth("-r", "--resume", help="False begins anew; otherwise a run resumes.")
@click.option(
    "--output-format",
    type=click.Choice(["json", "jsonl"]),
    help="By default jsonl above 25,000 records.",
)
@click.option(
    "--report-keys",
    type=click.Choice(["name", "field", "seed"]),
    metavar="[name|field]",
    help="How results are named in the report.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="For samplers.")
@click.option(
    "--retry-errors", is_flag=True, help="Try failed records again, permanent errors too."
)
@click.option("--draw", is_flag=False, flag_value="-", metavar="[FILE]", help="Not offered.")
@_truth("-dm", "--disable-metadata", default=False, help="No need: there is no metadata file.")
@_truth("-d", "--debug", default=False, help="Show tracebacks; log to logs/out.log.")
@_truth("-cl", "--clear-logs", default=False, help="Delete logs/out.log first.")
@click.option(
    "-ci",
    "--checkpoint-interval",
    type=click.IntRange(min=1),
    help="No need: each record is saved at once.",
)
@click.option("-ra", "--run-args", callback=_json, help="JSON; nothing reads it.")
@_truth("-ost", "--oasst", help="Not offered.")
@_truth("-q", "--quality", help="Not offered.")
@click.option("--no-progress", is_flag=True, help="No progress display.")
@click.option(
    "--json", "as_json", is_flag=True, help="Events as JSON lines; the last line is the result."
)
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
    from assay.cli._running import FailedResult, run_step
    from assay.formats.sygra.experiment import Options, SygraRun
    from assay.formats.sygra.instead import not_offered

    for name, asked in (("--oasst", oasst), ("--quality", quality), ("--draw", draw)):
        if asked:
            raise not_offered(name)
    run = SygraRun(Options(**options))
    if run_args:
        run.progress.note("--run-args: no part of a task reads them")
    result = run_step(run, as_json=as_json, no_progress=no_progress)
    _show(result, as_json, notes=no_progress)
    if not result.ok:
        raise FailedResult(result.problem)


def _show(result: Any, as_json: bool, notes: bool) -> None:
    if as_json:
        import msgspec

        from assay.reports.progress import emit

        emit({"event": "result", "ok": result.ok, **msgspec.to_builtins(result)})
        return
    from assay.cli._output import print_notes, print_sheet
    from assay.reports.run import failure_lines
    from assay.reports.sheet import Sheet

    print_notes(result.notes if notes else ())
    print_sheet(Sheet([*_parts(result), *failure_lines(result.failures, result.folder)]))
    files = [result.output, *(processed.file for processed in result.processed)]
    for file in filter(None, files):
        click.echo(f"file: {plain(str(file))}")


def _parts(result: Any) -> Iterator[Any]:
    """Yield what a run found, for a person: the reports' numbers, and counts."""
    from assay.reports.sheet import Line

    for processed in result.processed:
        if processed.error is not None:
            yield Line(f"{processed.name} failed: {processed.error}", "bad")
        elif processed.report is not None:
            yield from _report(processed.name, processed.report)
    done = result.total - result.failed
    failed = f", {result.failed:,} failed" if result.failed else ""
    counts = f"records: {result.total:,}, {done:,} done{failed}"
    yield Line(counts, "open" if result.failed else "")


def _report(name: str, report: JsonMapping) -> Iterator[Any]:
    from assay.reports.sheet import Line, Table, columns_of

    summary = report["evaluation_summary"]
    known = [key for key in ("total_records", "scored", "failed") if key in summary]
    counts = ", ".join(f"{key} {summary[key]:,}" for key in known)
    yield Line(f"{name}: {summary.get('status')}, {counts}")
    if rows := list(_rows(report["results"])):
        yield Table(columns_of("<result", "<number", "value"), rows)
    problems = summary.get("errors") or ({"": summary["error"]} if summary.get("error") else {})
    for key, text in problems.items():
        yield Line(f"{key}: {text}".lstrip(": "), "bad")


def _rows(results: JsonMapping) -> Iterator[list[str]]:
    """Yield the numbers of the results; those of single classes stay in the file."""
    for key, payload in results.items():
        numbers = payload if isinstance(payload, Mapping) else {"": payload}
        for name, value in numbers.items():
            if type(value) in (int, float):
                yield [
                    str(key),
                    str(name),
                    f"{value:,}" if isinstance(value, int) else f"{value:.4f}",
                ]
