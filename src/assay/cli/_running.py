"""What the commands that run steps share: a display while they run, signals, and how a result is shown."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from assay import api
from assay.cli._output import print_notes, show
from assay.errors import RunFailed


class FailedResult(RunFailed):
    """A result was shown, and there is nothing in it, or too little."""


def run_and_show(step: Any, form: str = "table", *, as_json: bool, no_progress: bool) -> None:
    """Run an experiment, or the part of one, and show what came of it to a person or to a program."""
    result = run_step(
        step, lambda stop: api.finish(step, stop), as_json=as_json, no_progress=no_progress
    )
    show_result(result, form, as_json=as_json, notes=no_progress)


def run_step(step: Any, run: Any = None, *, as_json: bool, no_progress: bool) -> Any:
    """Return what `run(stop)`, by default `step.run`, gives; meanwhile `step.progress` is shown,
    and signals are requests to stop."""
    display = "live" if sys.stderr.isatty() else "lines"
    if as_json:
        display = "events"
    if no_progress:
        display = "none"
    return api.watch(step.progress, run or step.run, display)


def show_result(result: Any, form: str = "table", *, as_json: bool, notes: bool) -> None:
    """A result for a program, or for a person; `notes` where no display has shown them."""
    if as_json:
        import msgspec

        ok = not (result.failed or result.too_many_errors)
        api.emit({"event": "result", "ok": ok, **msgspec.to_builtins(result)})
    else:
        print_notes(result.notes if notes else ())
        show(result, form)
    if result.failed:
        raise FailedResult(f"every row of {', '.join(map(repr, result.failed))} is an error")
    if result.too_many_errors:
        raise FailedResult(
            result.too_many_errors,
            fix="--retry-errors runs them again; `max_error_rate: 1` in the config allows any share",
        )


@contextmanager
def failure_as_event() -> Generator[None]:
    """The last line of --json is the result, whatever goes wrong and however early, and user code prints elsewhere."""
    try:
        with api.for_programs():
            yield
    except Exception as error:
        if not isinstance(error, FailedResult):
            api.emit(
                {
                    "event": "result",
                    "ok": False,
                    "error": str(error),
                    "exit_code": getattr(error, "exit_code", 1),
                }
            )
        raise
