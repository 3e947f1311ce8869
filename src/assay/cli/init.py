"""`assay init`: start an experiment from an example."""

from pathlib import Path

from assay import api
from assay.cli import verb
from assay.cli._options import completing, flag, option, place
from assay.cli._output import json_option, print_json, print_sheet, tell


@verb("init")
@place("folder", default=".")
@option(
    "--example",
    "Which one.",
    default="qa",
    show_default=True,
    shell_complete=completing(lambda _: api.examples()),
)
@flag("--list", "as_list", "List the examples.")
@flag("--skill", "SKILL.md and llms.txt, for coding agents, in place of an example.")
@json_option
def command(folder: str, example: str, as_list: bool, skill: bool, as_json: bool) -> None:
    """Put a commented example into FOLDER that runs with the demo model; nothing is overwritten."""
    if as_list:
        print_json(api.examples()) if as_json else print_sheet(api.listing(api.examples()))
        return
    paths = api.init(folder, example=example, skill=skill)
    lines = [f"  {path}" for path in paths]
    if not skill:
        lines.append(f"now: assay run {Path(folder) / 'config.yaml'}")
    files = [api.plain(str(path)) for path in paths]
    tell({"files": files}, "\n".join(lines), as_json=as_json)
