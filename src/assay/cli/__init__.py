"""The command line: one file per command, which parses, calls `assay.api` and prints.

Nothing else of Assay is imported. A command's file is imported only when it is asked for; its first line is its help.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.errors import COMMAND

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The order in which commands are listed. One that is not named here comes last: its file is enough.
ORDER = (
    "run",
    "plan",
    "validate",
    "lock",
    "evaluate",
    "aggregate",
    "merge",
    "compare",
    "diff",
    "rank",
    "gate",
    "judge",
    "view",
    "report",
    "verify",
    "trace",
    "ls",
    "status",
    "sql",
    "export",
    "import",
    "convert",
    "dataset",
    "benchmarks",
    "local",
    "demo",
    "init",
    "list",
    "show",
    "schema",
    "mock-server",
)

# What 0.1 or another tool has, and what to use instead.
GONE = {
    "create-config": "assay init writes an example",
    "eval": "assay run CONFIG --mode evaluation, or assay evaluate FOLDER",
    "list-components": "assay list scorers, assay list metrics",
    "resume": "the same assay run resumes where it stopped",
    "run --dataset": "name it in a config; assay init writes one",
    "run --verbose": "--set logging.level=DEBUG",
    "completion": "the shell asks for it: _ASSAY_COMPLETE=bash_source assay (or zsh_, fish_source)",
    "run --load": "run -j 1 -o ONE, run -j 8 -o EIGHT, then assay compare ONE EIGHT --metric ttft",
    "label --summary": "the review of assay view shows how far people agree",
}


def _files() -> dict[str, Path]:
    """The file of each command: one here, or `command.py` in a format's folder."""
    here = Path(__file__).parent
    files = {
        name[:-3]: here / name
        for name in sorted(os.listdir(here))
        if name.endswith(".py") and name[0] != "_"
    }
    files |= {
        file.parent.name: file for file in sorted((here.parent / "formats").glob("*/command.py"))
    }
    named = {name.replace("_", "-"): file for name, file in files.items()}
    return {name: named[name] for name in (*ORDER, *(name for name in named if name not in ORDER))}


def _about(path: Path) -> str:
    """The first line of a command's file, without the command's own name."""
    with path.open(encoding="utf-8") as file:
        line = file.readline().strip(' "\n')
    about = line.partition("`: ")[2] if line.startswith("`assay ") else line
    return about[:1].upper() + about[1:]


FILES = _files()
COMMANDS = {name: _about(file) for name, file in FILES.items()}


class Commands(click.Group):
    """Lists commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = cmd_name.replace("_", "-")
        if name not in COMMANDS:
            return None
        file = FILES[name]
        package = f"assay.formats.{file.parent.name}" if file.stem == "command" else "assay.cli"
        return import_module(f"{package}.{file.stem}").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from assay import api

            instead = GONE.get(args[0]) or api.nearest(args[0], COMMANDS)
            raise click.UsageError(f"{error.message} {instead}", ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=about)
            for name, about in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


class Command(click.Command):
    """Has `--debug`, which `main` obeys. Long flags may be written with `_` for `-`. `more` is asked for the end of
    the help when that is shown."""

    def __init__(
        self, *arguments: Any, more: Callable[[], str] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.more = more
        if not any("--debug" in parameter.opts for parameter in self.params):
            self.params.append(
                click.Option(["--debug"], is_flag=True, expose_value=False, help="Show tracebacks.")
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, [_with_dashes(argument) for argument in args])
        except click.NoSuchOption as error:
            instead = GONE.get(f"{ctx.info_name} {error.option_name}")
            if instead is None:
                raise
            raise click.UsageError(f"{error.message} {instead}", ctx) from None
        for name, value in ctx.params.items():
            # NaN is not, either
            if isinstance(value, int | float) and not abs(value) <= sys.maxsize:
                raise click.UsageError(
                    f"Invalid value for {flag_name(name)}: {value} is too large, or not a number",
                    ctx,
                )
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx.params.get("as_json"):
            return super().invoke(ctx)
        from assay.cli._running import failure_as_event

        with failure_as_event():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.more is not None:
            formatter.write_paragraph()
            formatter.write_text(self.more())


class Verbs(click.Group):
    """A command whose commands are `Command`s."""

    command_class = Command


def verb(name: str, **options: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return what makes a function a command."""
    return click.command(name, cls=Command, **options)


def _with_dashes(argument: str) -> str:
    if not argument.startswith("--") or argument == "--":
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def flag_name(parameter: str) -> str:
    """A parameter's name as a flag."""
    return f"--{parameter.replace('_', '-')}"


def _is_text(word: str) -> bool:
    """Return whether it is UTF-8: what is not could neither be stored in rows nor shown."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wants_tracebacks(words: Sequence[str]) -> bool:
    """`--debug` is a flag; for commands of formats it may take True or False, and have a short
    form."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, _, value = word.partition("=")
        if name == "--debug" or (
            name == "-d" and words[0] in FILES and FILES[words[0]].stem == "command"
        ):
            return (value or following).lower() != "false"
    return False


def _show_tracebacks_of_user_code() -> None:
    import logging

    logger = logging.getLogger("assay.usercode")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(logging.StreamHandler())


def _version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(version_text())
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the versions.",
)
def group() -> None:
    """Find out how good a language model, a prompt or an agent really is."""


def _show_mistake(mistake: click.ClickException) -> None:
    """Print what click has against the words, which it repeats as they are."""
    import io

    from assay import api

    text = io.StringIO()
    mistake.show(text)
    click.echo(api.plain(text.getvalue()), err=True, nl=False)


def _explained_error(error: Exception) -> Exception:
    """Return what the system has against a file as an error of ours; other errors as they are."""
    from assay.errors import StoreError, UserError

    code, name = getattr(error, "errno", 0), str(getattr(error, "filename", None) or "")
    if code == errno.ENAMETOOLONG:
        what = "this name is too long for a file"
        return UserError(what, where=name[:200], fix="name a file")
    if code in (errno.ENOSPC, errno.EDQUOT):
        return StoreError("the disk is full", where=name, fix="free some space and run again")
    return error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a user's mistake is a message and an exit code, with a traceback only for
    --debug."""
    # `list` is a command's module here
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    COMMAND[:] = ["assay", *words]
    debug = _wants_tracebacks(words)
    if debug:
        _show_tracebacks_of_user_code()
    try:
        if unreadable := next((word for word in words if not _is_text(word)), None):
            raise click.UsageError(f"an argument is not UTF-8 text: {unreadable}")
        code = group.main(words, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as mistake:
        _show_mistake(mistake)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        from assay import api
        from assay.errors import AssayError

        if debug:
            import traceback

            click.echo(api.plain(traceback.format_exc()), err=True, nl=False)
        error = _explained_error(error)
        if isinstance(error, AssayError):
            click.echo(f"error: {api.plain(str(error))}", err=True)
            sys.exit(error.exit_code)
        click.echo(
            f"internal error: {type(error).__name__}: {api.plain(str(error))}\n"
            "  fix:   this is a bug in Assay; run again with --debug to see where",
            err=True,
        )
        sys.exit(1)


_LIBRARIES = ("click", "jinja2", "msgspec", "numpy", "pyreqwest", "pyyaml", "rich")
_EXTRAS = (
    "duckdb",
    "datasets",
    "zstandard",
    "jsonschema",
    "pandas",
    "polars",
    "pyarrow",
    "xllamacpp",
)


def version_text() -> str:
    """The versions that explain a difference between two machines."""
    import platform

    from assay import __version__

    python = f"{platform.python_implementation()} {platform.python_version()}"
    lines = [
        f"assay {__version__}",
        f"  python    {python} ({sys.executable})",
        f"  platform  {platform.system()} {platform.release()} {platform.machine()}",
        f"  libraries {_versions(_LIBRARIES)}",
    ]
    extras = _versions(_EXTRAS)
    return "\n".join([*lines, *([f"  extras    {extras}"] if extras else [])])


def _versions(names: Sequence[str]) -> str:
    from importlib.metadata import PackageNotFoundError, version

    found: list[str] = []
    for name in names:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
