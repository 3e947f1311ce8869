"""What each command prints with `--json`, as JSON Schema: one document on a line, the last one the result.

The types are those that Python gets from the same verbs; a test runs every command and checks each line.
"""

from importlib import import_module
from typing import Literal

import msgspec

from assay.records import JsonObject
from assay.registry import check_name, formats


class ProgressEvent(msgspec.Struct, kw_only=True):
    """How far a run is: `lanes` has a model's, a scorer's or a step's counts each."""

    event: Literal["progress"]
    step: str
    lanes: list[JsonObject]


class StoppingEvent(msgspec.Struct, kw_only=True):
    """A run was asked to stop, and finishes what is in flight."""

    event: Literal["stopping"]


class ResultEvent(msgspec.Struct, kw_only=True):
    """Stands before the fields of a run's result; `ok` is false if all of a task or a scorer failed."""

    event: Literal["result"]
    ok: bool


class FailureEvent(msgspec.Struct, kw_only=True):
    """The last line of a command that failed: what, where, how to fix it, and the exit code."""

    event: Literal["result"]
    ok: Literal[False]
    error: str
    exit_code: int


class WorkedEvent(ResultEvent, kw_only=True):
    """A worker that has nothing left to take."""

    worker: str
    shards: int


class Written(msgspec.Struct, kw_only=True):
    """A file or folder that was written, and what there is to know about it."""

    output: str
    notes: list[str]


class Validated(msgspec.Struct, kw_only=True):
    """A config that can run, and how many parts of each kind it has."""

    ok: Literal[True]
    warnings: list[str]
    counts: dict[str, int]


class Address(msgspec.Struct, kw_only=True):
    """Where a server listens."""

    address: str


class Files(msgspec.Struct, kw_only=True):
    """What was put into a folder."""

    files: list[str]


_EVENTS = ("reports.outputs:ProgressEvent", "reports.outputs:StoppingEvent")
_RESULT = "+engine.experiment.experiment:Result"  # with the fields of ResultEvent
_OUTPUTS: dict[str, tuple[str, ...]] = {
    "run": (*_EVENTS, _RESULT, "engine.experiment.plan:Plan"),
    "plan": ("engine.experiment.plan:Plan",),
    "validate": ("reports.outputs:Validated",),
    "lock": ("engine.experiment.locks:Locked",),
    "evaluate": (*_EVENTS, _RESULT),
    "aggregate": (_RESULT,),
    "merge": ("engine.experiment.merging.merge:Merged",),
    "compare": (
        "analysis.compare.compare:Comparison",
        "analysis.compare.across:Across",
        "analysis.compare.reference:Referenced",
    ),
    "diff": ("analysis.diff.diff:Diff",),
    "rank": ("analysis.rank.rank:Ranking",),
    "gate": ("analysis.compare.gate:Gated",),
    "judge calibrate": ("analysis.judge.calibrate:Calibrated",),
    "judge label": ("reports.outputs:Written",),
    "view": ("reports.outputs:Address",),
    "report": ("reports.outputs:Written",),
    "verify": ("analysis.verify.verify:Verified",),
    "trace": ("analysis.look.trace:Trace",),
    "ls": ("analysis.look.ls:Listed",),
    "status": ("analysis.look.status:RunStatus",),
    "sql": (),
    "export": ("reports.outputs:Written",),
    "convert": ("analysis.look.convert:Converted",),
    "import": ("engine.experiment.imports.results:Imported",),
    "dataset add": ("analysis.look.dataset:StoredDataset",),
    "dataset ls": ("[analysis.look.dataset:StoredDataset",),
    "dataset show": ("analysis.look.dataset:StoredDataset",),
    "dataset verify": ("analysis.look.dataset:StoredDataset",),
    "benchmarks pull": (),
    "local list": ("[models.local:LocalModel",),
    "local pull": ("models.local:LocalModel",),
    "demo": (*_EVENTS, _RESULT),
    "init": ("reports.outputs:Files",),
    "list": (),
    "show": (),
    "mock-server": (),
    "worker": (*_EVENTS, "reports.outputs:WorkedEvent"),
}
_ANY = {
    "sql": "a row of the answer",
    "list": "a plug-in, a provider, a model or a benchmark",
    "show": "a plug-in or a benchmark",
    "mock-server": "the server's address",
    "benchmarks pull": "a list of benchmarks, each with the problem if its data were not pulled",
}


def commands() -> list[str]:
    """The commands that have `--json`."""
    return [*_OUTPUTS, *formats("command")]


def output_schema(command: str) -> JsonObject:
    """The JSON Schema of each line that a command prints with `--json`."""
    name = command if command in _OUTPUTS else command.partition(" ")[0]
    check_name(name, commands(), "with --json there is no command")
    lines = _OUTPUTS.get(name, (*_EVENTS, f"+formats.{name}.experiment:Result"))
    entries = (*lines, "reports.outputs:FailureEvent", "reports.outputs:ResultEvent")
    types = [_type(entry.lstrip("+[")) for entry in entries]
    refs, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    forms = [
        _form(entry, ref, refs[-1]) for entry, ref in zip(entries[:-1], refs[:-1], strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"each line of `assay {command} --json`",
        "anyOf": [*([{"description": _ANY[name]}] if name in _ANY else []), *forms],
        "$defs": components,
    }


def _form(entry: str, ref: JsonObject, event: JsonObject) -> JsonObject:
    if entry[0] == "+":
        return {"allOf": [event, ref]}
    return {"type": "array", "items": ref} if entry[0] == "[" else ref


def _type(entry: str) -> type:
    module, _, name = entry.partition(":")
    return getattr(import_module(f"assay.{module}"), name)
