"""`assay run`: a config from start to finish, or on from where it stopped."""

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from assay.cli import Command
from assay.cli._options import config_options, experiment_of


@click.command("run", cls=Command)
@config_options
@click.option(
    "--mode",
    type=click.Choice(["full", "inference", "evaluation"]),
    help="How much of the flow; default full.",
)
@click.option("-j", "--max-concurrency", type=click.IntRange(min=1), help="Calls in flight, per model.")
@click.option("--max-error-rate", type=click.FloatRange(0, 1), help="Fail if a larger share of responses are errors.")
@click.option("--dry-run", is_flag=True, help="Show the plan, do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON lines; the last line is the result.")
@click.option("--no-progress", is_flag=True, help="No progress display.")
def command(debug: bool, dry_run: bool, as_json: bool, no_progress: bool, **options: Any) -> None:
    """Run CONFIG: every model × prompt × item × sample, then scoring and metrics.

    The same command goes on where an earlier one stopped.
    """
    with _failure_as_event() if as_json else nullcontext():
        experiment = experiment_of(**options)
        if dry_run:
            from assay.cli.plan import show

            show(experiment, as_json)
        elif as_json:
            _run_for_programs(experiment, no_progress)
        else:
            _run_for_people(experiment, no_progress)


def _run_for_people(experiment: Any, no_progress: bool) -> None:
    from rich.console import Console

    from assay.reports.metrics_table import metrics_view, reasons
    from assay.reports.progress import Lines, Live, Silent
    from assay.reports.usage_table import usage_table

    display = Silent if no_progress else Live if sys.stderr.isatty() else Lines
    result = asyncio.run(_run(experiment, display(experiment.progress)))
    console = Console()
    if result.metrics:
        console.print(metrics_view(result.metrics, console))
        for reason in reasons(result.metrics):
            console.print(f"note: {reason}", style="yellow", markup=False)
    elif result.run is not None:
        counts = ", ".join(f"{count:,} {name}" for name, count in result.run.counts.items())
        console.print(f"responses: {counts}", markup=False)
    if result.run is not None and result.run.metadata.get("usage"):
        console.print(usage_table(result.run.metadata["usage"]))
    click.echo(f"files: {result.folder}")


def _run_for_programs(experiment: Any, no_progress: bool) -> None:
    import msgspec

    from assay.reports.progress import Events, Silent, emit

    result = asyncio.run(_run(experiment, (Silent if no_progress else Events)(experiment.progress)))
    emit({"event": "result", "ok": True, **msgspec.to_builtins(result)})


@contextmanager
def _failure_as_event() -> Generator[None]:
    """The last line of --json is the result, whatever goes wrong and however early."""
    try:
        yield
    except Exception as error:
        from assay.reports.progress import emit

        emit({"event": "result", "ok": False, "error": str(error), "exit_code": getattr(error, "exit_code", 1)})
        raise


async def _run(experiment: Any, display: Any) -> Any:
    from assay.steps.stop import Stop

    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.request)
    async with display:
        return await experiment.run(stop)
