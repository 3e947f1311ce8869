"""What the commands that run steps share: a display while they run, signals, and how a result is shown."""

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click


def run_and_show(step: Any, *, as_json: bool, no_progress: bool) -> None:
    """Run an experiment, or the part of one, and show what came of it to a person or to a program."""
    result = run_step(step, as_json=as_json, no_progress=no_progress)
    if step.config.outputs:
        from assay.analysis.look.export import write_outputs

        for note in write_outputs(step.config, result.folder):
            step.progress.note(note)
            if not as_json and not no_progress:
                click.echo(f"note: {note}", err=True)
    show(result, as_json=as_json, notes=no_progress)


def run_step(step: Any, *, as_json: bool, no_progress: bool) -> Any:
    """What `step.run(stop)` gives, with a display of `step.progress` meanwhile and signals as requests to stop."""
    from assay.reports.progress import Events, Lines, Live, Silent

    display = Silent if no_progress else Events if as_json else Live if sys.stderr.isatty() else Lines
    return asyncio.run(_run(step, display(step.progress)))


def show(result: Any, *, as_json: bool, notes: bool) -> None:
    """A result for a program, or for a person; `notes` where no display has shown them."""
    if as_json:
        import msgspec

        from assay.reports.progress import emit

        emit({"event": "result", "ok": True, **msgspec.to_builtins(result)})
    else:
        _show_tables(result, notes)


@contextmanager
def failure_as_event(as_json: bool) -> Generator[None]:
    """The last line of --json is the result, whatever goes wrong and however early."""
    try:
        yield
    except Exception as error:
        if as_json:
            from assay.reports.progress import emit

            emit({"event": "result", "ok": False, "error": str(error), "exit_code": getattr(error, "exit_code", 1)})
        raise


def _show_tables(result: Any, notes: bool) -> None:
    """The metrics, what to know about them, what was used, and where the files are."""
    from rich.console import Console

    from assay.reports.metrics_table import metrics_view, reasons
    from assay.reports.usage_table import usage_table
    from assay.text.plain import plain

    console = Console()
    for note in result.notes if notes else ():
        click.echo(f"note: {plain(note)}", err=True)
    if result.metrics:
        console.print(metrics_view(result.metrics, console))
        for reason in reasons(result.metrics):
            console.print(f"note: {reason}", style="yellow", markup=False)
    else:
        for name, manifest in (("responses", result.run), ("evaluations", result.evaluation)):
            if manifest is not None:
                counts = ", ".join(f"{count:,} {outcome}" for outcome, count in manifest.counts.items())
                console.print(f"{name}: {counts}", markup=False)
    if result.run is not None and result.run.metadata.get("usage"):
        console.print(usage_table(result.run.metadata["usage"]))
    if result.folder:
        click.echo(f"files: {result.folder}")


async def _run(step: Any, display: Any) -> Any:
    from assay.engine.calls.stop import Stop

    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.request)
    async with display:
        return await step.run(stop)
