"""Tasks of lm-evaluation-harness as benchmarks: what a config's `benchmarks:` means."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import Any

from assay.formats.lm_eval.asking.data import load, shown_name
from assay.formats.lm_eval.asking.documents import documents, plain
from assay.formats.lm_eval.scoring.measures import entries
from assay.formats.lm_eval.tasks.definition import Definition
from assay.formats.lm_eval.tasks.index import Progress, index
from assay.registry import benchmark
from assay.sdk import AssayError, JsonObject, UserError

_ASKS = {
    "generate_until": "text that the model writes",
    "multiple_choice": "which choice is the most probable",
    "loglikelihood": "how probable a continuation is",
    "loglikelihood_rolling": "how probable whole texts are",
}


def facts_of(definition: Definition) -> dict[str, str]:
    """Facts, by name."""
    split = definition.test_split or definition.validation_split or ""
    facts = {
        "asks": _ASKS[definition.output_type],
        "examples": str(definition.num_fewshot or 0),
        "data": f"{shown_name(definition)}, split {split}",
        **_source(definition, split),
        "scores": ", ".join(entries(definition)),
        "filters": ", ".join(
            str(pipeline.get("name")) for pipeline in definition.filter_list or ()
        ),
        "version": str(definition.metadata.get("version", "")),
    }
    if definition.output_type == "generate_until":
        facts["generation"] = json.dumps(definition.generation_kwargs, ensure_ascii=False)
    if definition.unsafe_code:
        facts["unsafe"] = "runs code that the model writes"
    return facts


def _source(definition: Definition, split: str) -> dict[str, str]:
    """Return how many documents there are, of which revision; or how to bring them."""
    try:
        data = load(definition)
        counted = {
            "documents": f"{len(data.split(split)):,}",
            "revision": data.source.get("revision") or "",
        }
        return {**counted, "read from": data.source.get("origin") or ""}
    except AssayError as error:
        return {"documents": f"not on this machine: {error.what}", "to bring them": error.fix}


def example(definition: Definition) -> str:
    """Return what is asked about the first document."""
    try:
        (document,) = islice(documents(definition, limit=1), 1)
    except (AssayError, ValueError):
        return ""
    if not document.requests:
        return document.error
    first = document.requests[0]
    if first.rolling:
        return first.continuation or ""
    choices = [
        request.continuation for request in document.requests if request.messages == first.messages
    ]
    shown = [f"  {choice!r}" for choice in choices if choice is not None]
    return "\n".join([plain(first.messages), *shown])


@benchmark(name="lm_eval")
class Harness:
    """The collection: an installed lm-eval's tasks, those of `ASSAY_TASKS`, and those of an entry's `include_path`."""

    def config(self, entries: Sequence[JsonObject]) -> JsonObject:
        """The dataset, prompts, scorers and metrics that a config's entries stand for."""
        names = ", ".join(str(entry.get("task")) for entry in entries)
        facets = ["model_name", "benchmark"]
        from assay.formats.lm_eval.chosen import forget, task_folders

        forget()
        folders = task_folders(entries)
        code = {"task_folders": folders} if folders else {}
        trusted = {"params": code} if folders else {}
        consents = [entry.get("unsafe_code") for entry in entries]
        scoring: JsonObject = {**code}
        scoring |= {"sound": True} if any(entry.get("sound") for entry in entries) else {}
        scoring |= {"sandbox": "weak" if "weak" in consents else "closed"} if any(consents) else {}
        data = {"benchmarks": [*entries], **code}
        return {
            "dataset": {"type": "lm_eval.documents", "name": names, "params": data},
            "prompts": [{"name": "benchmark", "requests": "requests"}],
            "evaluation_methods": [
                {"name": "lm_eval", "type": "lm_eval.results", "params": scoring}
            ],
            "metrics": [
                {"name": "benchmark", "type": "lm_eval.aggregate", "facets": facets, **trusted},
                {"name": "group", "type": "lm_eval.groups", "facets": facets[:1], **trusted},
            ],
        }

    def problem(self, entry: JsonObject) -> UserError | None:
        """Why an entry cannot run, as far as names tell."""
        from assay.formats.lm_eval.chosen import chosen_tasks, refuse

        try:
            for task in chosen_tasks([entry]):
                refuse(task)
        except UserError as error:
            return error
        return None

    def listing(
        self, pattern: str, unsupported: bool, include_path: str, progress: Progress | None
    ) -> Iterator[tuple[str, str, str, int | None, str, str]]:
        """Name, kind, how it asks, shots, data, and why it cannot run here."""
        whole = index([include_path] if include_path else [], progress)
        matches = re.compile(
            translate(pattern)
            if any(sign in pattern for sign in "*?[")
            else f".*{re.escape(pattern)}"
        )
        for entry in whole.entries.values():
            if pattern and not matches.match(entry.name):
                continue
            reason = entry.unsupported
            if not unsupported or reason:
                data = f"{entry.dataset_path} {entry.dataset_name}".rstrip()
                yield entry.name, entry.kind, entry.output_type, entry.num_fewshot, data, reason
        for broken in whole.broken if unsupported else ():
            yield broken.file, "file", "", None, "", f"{broken.problem} ({broken.where})"

    def description(
        self, name: str, include_path: str, progress: Progress | None
    ) -> tuple[dict[str, str], str] | None:
        """Facts about a task or a group, and what it asks about its first document; None if there is no such name."""
        from assay.formats.lm_eval.tasks.definitions import definitions, members

        folders = [include_path] if include_path else []
        entry = index(folders, progress).entries.get(name)
        if entry is None:
            return None
        if entry.kind == "class" or entry.unsupported:
            return {"kind": "task", "file": entry.file, "unsupported": entry.unsupported}, ""
        items = members([name], include_path=folders)
        tasks = definitions(items)
        if entry.kind == "task":
            facts = {"kind": "task", "file": entry.file, **facts_of(tasks[0])}
            return _present(facts), "" if "to bring them" in facts else example(tasks[0])
        listed = items[0].members if entry.kind == "group" else items
        numbers = dict.fromkeys(
            str(part.get("metric")) for member in items for part in member.aggregate
        )
        facts = {
            "kind": f"{entry.kind} of {len(tasks):,} tasks",
            "file": entry.file,
            "numbers": ", ".join(numbers),
        }
        return _present({**facts, "members": ", ".join(member.name for member in listed)}), ""

    def pull(
        self,
        names: Sequence[str],
        folder: str,
        include_path: str,
        progress: Callable[[Any], None] | None,
    ) -> list[Any]:
        """Write the data of tasks into a mirror; what is there already stays."""
        from assay.formats.lm_eval.asking.data import pull
        from assay.formats.lm_eval.tasks.definitions import definitions, members

        tasks = definitions(members(names, include_path=[include_path] if include_path else []))
        return pull(tasks, Path(folder), progress)


def _present(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value}
