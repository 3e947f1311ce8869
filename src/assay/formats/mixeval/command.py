"""`assay mixeval`: run and score MixEval and MixEval-Hard by their own protocol, and by a better one."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from assay.cli import Command
from assay.cli._options import trust_option
from assay.sdk import JsonObject

F = TypeVar("F", bound=Callable[..., Any])


@click.group("mixeval")
def command() -> None:
    """MixEval and MixEval-Hard: fixed prompts, careful parsing, fair scores."""


_PARSERS = "rule-compat, judge, or file.py:function"
_OPTIONS = (
    click.option(
        "--data",
        required=True,
        help="The data folder, a mixeval-<version> folder, or hf:NAME.",
    ),
    click.option("--version", default="", help="The data's version, such as 2024-08-11."),
    click.option(
        "--benchmark",
        "benchmarks",
        multiple=True,
        default=["mixeval"],
        help="mixeval or mixeval_hard; again.",
    ),
    click.option("-o", "--output-dir", default="", help="Where everything goes."),
    click.option("--parser", default="", help=f"What reads the answers: {_PARSERS}."),
    click.option("--free-form-parser", default="", help="The same for free-form answers."),
    click.option(
        "--multi-choice-parser", default="", help="The same for multiple choice, or rule."
    ),
    click.option(
        "--judge",
        default="",
        metavar="MODEL",
        help="The model that judges: type:name[@url].",
    ),
    click.option(
        "--judge-prompts",
        default="",
        metavar="FILE",
        help="The original's judge_prompts.py.",
    ),
    click.option(
        "--base", is_flag=True, help="Base models: five examples come before each prompt."
    ),
    click.option(
        "--five-shot",
        default="",
        metavar="FILE",
        help="The original's evaluation_prompts.py.",
    ),
    click.option(
        "--trim-base",
        is_flag=True,
        help="Cut off what a base model continued to ask itself.",
    ),
    click.option(
        "--corrections",
        default="",
        metavar="FILE",
        help="Entries to leave out or to correct.",
    ),
    click.option(
        "-j",
        "--max-concurrency",
        type=click.IntRange(min=1),
        help="Calls in flight, per model.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a dotted key.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Replace score and verdict files that Assay did not write.",
    ),
    click.option("--retry-errors", is_flag=True, help="Try what failed again."),
    trust_option,
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Events as JSON lines; the last line is the result.",
    ),
    click.option("--no-progress", is_flag=True, help="No progress display."),
    click.option("--debug", is_flag=True, help="Show tracebacks."),
)  # of both commands


def _options(function: F) -> F:
    """Add the options that both commands take."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@command.command("run", cls=Command)
@_options
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="type:name[@url], or file.py:function.",
)
@click.option("--limit", type=click.IntRange(min=0), help="Only the first N entries.")
@click.option(
    "--layout",
    type=click.Choice(["lines", "array"]),
    default="lines",
    help="Response files: lines, or one list.",
)
def run(**options: Any) -> None:
    """Run models on the entries, write their response files, and score them.

    The same command resumes where an earlier one stopped.
    """
    from assay.formats.mixeval.experiment import MixEvalRun

    _show(options, MixEvalRun)


@command.command("score", cls=Command)
@click.argument("responses", nargs=-1, required=True, type=click.Path())
@_options
@click.option("--judged", is_flag=True, help="From judge_results files, without a call.")
def score(responses: tuple[str, ...], **options: Any) -> None:
    """Score RESPONSES: a model's folder, a folder of such, or the files themselves.

    Without --parser the protocol's own score stands beside a better one.
    """
    from assay.formats.mixeval.experiment import MixEvalScore

    _show(options, partial(MixEvalScore, responses))


def _show(options: JsonObject, make: Callable[[Any], Any]) -> None:
    """Run what the flags describe and show its scores; exit 1 if the input had problems, or all rows of one failed."""
    from assay.cli._options import overrides
    from assay.cli._running import run_step
    from assay.formats.mixeval.plans import MixEvalOptions

    as_json, no_progress = options.pop("as_json"), options.pop("no_progress")
    options.pop("debug")
    settings = overrides(options.pop("settings"))
    step = make(MixEvalOptions(settings=settings, **options))
    result = run_step(step, as_json=as_json, no_progress=no_progress)
    if as_json:
        import msgspec

        from assay.reports.progress import emit

        emit(
            {
                "event": "result",
                "ok": not result.problems and not result.failed,
                **msgspec.to_builtins(result),
            }
        )
    else:
        _show_tables(result, notes=no_progress)
    if result.problems or result.failed:
        sys.exit(1)


def _show_tables(result: Any, notes: bool) -> None:
    from assay.cli._output import print_sheet
    from assay.formats.mixeval.metric import scores_view
    from assay.text.plain import plain

    for note in result.notes if notes else ():
        click.echo(f"note: {plain(note)}", err=True)
    for scored in result.scored:
        if scored.scores:
            print_sheet(
                scores_view(
                    f"{scored.benchmark} {scored.version}", scored.scores, level=scored.level
                )
            )
    for line in result.errors:
        click.echo(f"errors: {plain(line)}")
    for problem in result.problems:
        click.echo(f"problem: {plain(problem)}", err=True)
    if result.failed:
        failed = ", ".join(dict.fromkeys(map(plain, result.failed)))
        click.echo(f"problem: every row of these is an error: {failed}", err=True)
    for folder in dict.fromkeys(folder for scored in result.scored for folder in scored.folders):
        click.echo(f"files: {plain(str(folder))}")
