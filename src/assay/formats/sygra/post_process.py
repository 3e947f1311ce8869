"""`graph_post_process`: what looks at all output records after the run, each with a file of its own.

A processor of the user's gets a list as long as the records are few, and beyond that a sequence that reads them from
disk; one of ours always gets the sequence. One that fails keeps no other from running.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.sygra.eval_utils import MetricCollatorPostProcessor
from assay.formats.sygra.modules import Loader
from assay.formats.sygra.outputs import LARGEST_JSON, Records, json_value
from assay.formats.sygra.scoring import Scoring
from assay.store.files import write_file

_PREVIOUS = "use_previous_output"


class Processor(msgspec.Struct):
    """An entry of `graph_post_process`, resolved."""

    name: str
    made: Any
    params: dict[str, Any]
    where: str
    is_ours: bool

    @property
    def uses_previous(self) -> bool:
        return bool(self.params.get(_PREVIOUS))


class Processed(msgspec.Struct):
    """What one processor did: its file, or why there is none. `report` is its first object, if that is a report."""

    name: str
    file: str = ""
    error: str | None = None
    report: dict[str, Any] | None = None

    @property
    def status(self) -> str:
        if self.error is not None:
            return "failed"
        return "" if self.report is None else str(self.report["evaluation_summary"].get("status", ""))


def bind_processors(entries: Any, load: Loader, source: Path, *, report_keys: str | None) -> list[Processor]:
    """The processors of a graph's YAML, made before anything is spent."""
    where = f"{source}: graph_post_process"
    if entries is not None and not isinstance(entries, list):
        raise UserError("graph_post_process must be a list", where=where)
    return [_bind(entry, load, f"{where}[{n}]", report_keys) for n, entry in enumerate(entries or [])]


def _bind(entry: Any, load: Loader, where: str, report_keys: str | None) -> Processor:
    if isinstance(entry, str):
        entry = {"processor": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("processor"), str):
        raise UserError("an entry names no processor", where=where, fix="write `- processor: dotted.Class`")
    params = entry.get("params")
    if params is not None and not isinstance(params, dict):
        raise UserError("params must be a mapping", where=f"{where}.params")
    made = load(entry["processor"], f"{where}.processor")
    is_ours = str(getattr(made, "__module__", "")).startswith("assay.")
    arguments: dict[str, Any] = dict(params or {})
    accepted = _accepted(made)
    if accepted is not None and _PREVIOUS not in accepted:
        arguments.pop(_PREVIOUS, None)
    if report_keys is not None and is_ours and (accepted is None or "report_keys" in accepted):
        arguments["report_keys"] = report_keys
    try:
        instance = made(**arguments)
    except Exception as error:
        raise UserError(
            f"{entry['processor']} cannot be made: {type(error).__name__}: {error}", where=f"{where}.params"
        ) from error
    if not callable(getattr(instance, "process", None)):
        raise UserError(f"{entry['processor']} has no method `process(data, metadata)`", where=where)
    return Processor(entry["processor"].rpartition(".")[2], instance, dict(params or {}), where, is_ours)


def _accepted(made: Any) -> set[str] | None:
    """The parameters of a constructor; None if it takes any."""
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}


async def run_processors(
    processors: Sequence[Processor],
    records: Sequence[dict[str, Any]],
    output: Path,
    path_of: Callable[[str], Path],
    scoring: Scoring | None = None,
) -> list[Processed]:
    """Run them one after the other; `path_of(name)` is where the file of a processor goes. With `scoring`, a collator's
    report is a view of the rows that it makes."""
    previous: Any = None
    done: list[Processed] = []
    for processor in processors:
        result = Processed(processor.name)
        done.append(result)
        if processor.uses_previous and len(done) > 1 and done[-2].error is not None:
            result.error = f"it needs the output of {done[-2].name}, which failed"
            continue
        before = done[-2].name if processor.uses_previous and len(done) > 1 else ""
        data = previous if before else records
        if scoring is not None and type(processor.made) is MetricCollatorPostProcessor:
            previous = [await scoring.report(processor.made, data, before)]
        else:
            try:
                previous = await asyncio.to_thread(_processed, processor, data, output)
            except Exception as error:  # user code: the records are written, and the others still run
                result.error = f"{type(error).__name__}: {error}"
                continue
        plain = json_value(previous)
        path = path_of(processor.name)
        write_file(path, json.dumps(plain, indent=4).encode())
        result.file = str(path)
        result.report = _report(plain)
    return done


def _processed(processor: Processor, data: Any, output: Path) -> Any:
    if isinstance(data, Records) and not processor.is_ours and len(data) <= LARGEST_JSON:
        data = list(data)
    made = processor.made.process(data, {"output_file": str(output), "params": processor.params})
    made = made if isinstance(made, Sequence | Mapping) else list(made or [])
    json_value(made)
    return made


def _report(plain: Any) -> dict[str, Any] | None:
    first = plain[0] if isinstance(plain, list) and plain else None
    is_report = isinstance(first, dict) and isinstance(first.get("evaluation_summary"), dict) and "results" in first
    return first if is_report else None
