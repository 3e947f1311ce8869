"""`assay export`: write an experiment's rows in another format."""

from typing import Any

import click

from assay import api
from assay.cli import flag_name, verb
from assay.cli._options import (
    PATH,
    force_option,
    option,
    overrides,
    parameters_option,
    place,
    trust_option,
)
from assay.cli._output import json_option, print_json, print_notes
from assay.errors import UserError


def _flags() -> dict[str, list[str]]:
    """The parameters of each format that are true or false; each is a flag as well."""
    flags: dict[str, list[str]] = {}
    for plug_in in api.list("writer"):
        described: Any = api.show(plug_in.name, kind="writer")[0]
        flags[plug_in.name] = [
            parameter["name"] for parameter in described.parameters if parameter["type"] == "bool"
        ]
    return flags


def _formats() -> str:
    flags = {
        name: "".join(f" [{flag_name(flag)}]" for flag in names) for name, names in _flags().items()
    }
    return "Formats, each with its flags: " + ", ".join(
        f"{name}{listed}" for name, listed in flags.items()
    )


@verb(
    "export",
    more=_formats,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@place("path")
@option("-f", "--format", "format_name", "Default: the suffix of -o.", default="")
@option(
    "-t",
    "--table",
    "items, responses, evaluations, metrics, samples.",
    default="responses",
    show_default=True,
)
@option("-o", "--output", "The file, or the folder; default: standard output.", type=PATH)
@trust_option
@force_option
@parameters_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    format_name: str,
    settings: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Write a table of PATH, an experiment's folder or a file of rows, in another format."""
    if as_json and not options["output"]:
        raise UserError(
            "with --json the rows go to a file", fix="name it with -o, or choose --format json"
        )
    notes = api.export(
        path, format_name, params={**_given_flags(ctx), **overrides(settings)}, **options
    )
    if as_json:
        print_json({"output": options["output"], "notes": notes})
    else:
        print_notes(notes)


def _given_flags(ctx: click.Context) -> dict[str, bool]:
    """A format's flags among the words that are not options of the command."""
    if not ctx.args:
        return {}
    flags = {flag_name(name): name for names in _flags().values() for name in names}
    for word in ctx.args:
        if word not in flags:
            if word.startswith("-"):
                raise click.NoSuchOption(word, possibilities=sorted(flags), ctx=ctx)
            raise click.UsageError(f"Got unexpected extra argument ({word})", ctx)
    return {flags[word]: True for word in ctx.args}
