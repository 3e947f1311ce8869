"""`assay init`: a starter that runs at once, copied from the examples that come with Assay."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from assay.cli import Command

EXAMPLES = Path(__file__).parents[1] / "examples"
DEFAULT = "qa"


def complete_example(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=about) for name, about in examples().items() if name.startswith(incomplete)]


@click.command("init", cls=Command)
@click.argument("folder", default=".", type=click.Path())
@click.option("--example", default=DEFAULT, show_default=True, help="Which one.", shell_complete=complete_example)
@click.option("--list", "as_list", is_flag=True, help="List the examples.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(folder: str, example: str, as_list: bool, debug: bool) -> None:
    """Put a commented example into FOLDER that runs with the demo model; nothing is overwritten."""
    if as_list:
        width = max(map(len, examples()))
        for name, about in examples().items():
            click.echo(f"{name:{width}}  {about}")
        return
    for path in start(Path(folder), example):
        click.echo(f"  {path}")
    click.echo(f"now: assay run {Path(folder) / 'config.yaml'}")


def examples() -> dict[str, str]:
    """Name and first comment of each example."""
    found = sorted(path for path in EXAMPLES.iterdir() if (path / "config.yaml").is_file())
    return {path.name: (path / "config.yaml").read_text("utf-8").partition("\n")[0].lstrip("# ") for path in found}


def start(folder: Path, example: str) -> list[Path]:
    """Copy an example; its Python files are stored with a further `.txt`, so that no tool takes them for ours."""
    from assay.errors import UserError
    from assay.registry import nearest
    from assay.store.files import store_error

    if example not in examples():
        raise UserError(f"there is no example {example!r}", fix=nearest(example, examples()))
    files = {folder / path.name.removesuffix(".txt" if ".py" in path.name else ""): path for path in _files(example)}
    there = [path for path in files if path.exists() or path.is_symlink()]
    if there:
        names = ", ".join(repr(path.name) for path in there)
        raise UserError(f"{names} would be overwritten", where=str(folder), fix="name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, source in files.items():
            with open(path, "xb") as file:
                file.write(source.read_bytes())
    except OSError as error:
        raise store_error(error, folder) from error
    return list(files)


def _files(example: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / example).iterdir() if path.is_file())
