"""Which files hold whose answers: documents become datasets with agents.

Of one agent on one dataset there may be the three files and the old five. The three are read first, and the old ones
add only what they lack. Files of RAGiCamp's later versions are refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.errors import UserError
from assay.formats.ragicamp.files import Document, stem_of, timestamp_of
from assay.formats.ragicamp.rows import Agent, Row

UNKNOWN = "unknown"
_COUNTS = ("num_examples", "agent_name", "dataset_name")
_LATER_FIELDS = {"experiment", "agent"}  # of questions and predictions


class AgentFile(msgspec.Struct):
    """A file of one agent's answers; `scores` has its metrics where they are in a file of their own, `lists` those that
    a summary holds as one list of values. `is_old`: it is one of the old five files."""

    document: Document
    is_old: bool
    dataset: str
    agent: Agent
    scores: Document | None = None
    lists: dict[str, list[Any]] = {}
    overall: Row = {}


class Found(msgspec.Struct):
    """The files of one dataset; `problems` is what could not be read of any file that was looked at."""

    dataset: str
    questions: list[Document] = []
    agents: list[AgentFile] = []
    problems: list[str] = []

    def documents(self) -> list[Document]:
        parts = [(agent.document, agent.scores) for agent in self.agents]
        return [*self.questions, *(one for pair in parts for one in pair if one is not None)]


def found_in(documents: Iterable[Document], root: Path) -> list[Found]:
    """Return the datasets that the documents hold, by name."""
    every = list(documents)
    for one in every:
        _check_version(one)
    datasets: dict[str, Found] = {}

    def of(name: str) -> Found:
        return datasets.setdefault(name, Found(name, [], []))

    for one in every:
        if one.kind == "questions":
            named = one.head.get("dataset_name") or one.path.stem.removesuffix("_questions")
            of(str(named or UNKNOWN)).questions.append(one)
    only = next(iter(datasets)) if len(datasets) == 1 else UNKNOWN
    for file in _agent_files(every):
        file.dataset = file.dataset or only
        of(file.dataset).agents.append(file)
    for found in datasets.values():
        found.agents = _told_apart(found.agents, root)
        found.problems = [f"{one.path}: {one.problem}" for one in every if one.problem]
    return [datasets[name] for name in sorted(datasets)]


def _agent_files(every: Sequence[Document]) -> list[AgentFile]:
    """Return the files with answers, then the scores that no answers are there for."""
    facts = {one.path: one.head for one in every if one.kind == "facts"}
    per_question = [one for one in every if one.kind == "scores"]
    per_question.sort(key=lambda one: one.path.suffix == ".json")  # JSON before CSV
    scores = {(one.path.parent, stem_of(one.path)): one for one in per_question}
    files = [_agent_file(one, facts, scores) for one in every if one.kind == "predictions"]
    return [*files, *(_agent_file(one, facts, {}) for one in scores.values())]


def _check_version(document: Document) -> None:
    """Refuse a file of a RAGiCamp after the three files."""
    head, name = document.head, document.path.name
    if name.endswith("_summary.json"):
        later = "agent_name" in head and not head.keys() & {"overall_metrics", "metric_statistics"}
    elif "results" in head or document.kind not in ("questions", "predictions"):
        later = False
    else:
        later = bool(head.keys() & _LATER_FIELDS) or name.endswith("_checkpoint.json")
    if (later and not document.problem) or name.endswith("_predictions_raw.json"):
        raise UserError(
            "this file is of a later RAGiCamp than the three files, which are read",
            where=str(document.path),
            fix="move it elsewhere, or import its answers as a CSV table of samples",
        )


def _agent_file(
    document: Document, facts: Mapping[Path, Row], scores: dict[tuple[Path, str], Document]
) -> AgentFile:
    """Return a file of answers with what the files beside it say. A file of scores stands for answers that are not
    there."""
    head, path = document.head, document.path
    results = _mapping(head.get("results"))
    told = _about(path, facts) | _filled(results) | _filled(head)
    is_old = "results" in head or document.kind == "scores"
    values = results or _mapping(told.get("overall_metrics") or told.get("metrics"))
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    return AgentFile(
        document=document,
        is_old=is_old,
        dataset=str(told.get("dataset_name") or ""),
        agent=_agent(told, document),
        scores=scores.pop((path.parent, stem_of(path)), None) if is_old else None,
        lists=lists,
        overall={key: values[key] for key in values if key not in (*_COUNTS, *lists)},
    )


def _agent(told: Row, document: Document) -> Agent:
    """Return whose answers a document holds, by what it and the files beside it tell."""
    head, path = document.head, document.path
    name = str(told.get("agent_name") or stem_of(path))
    return Agent(
        name=name,
        model_name=str(head.get("model_name") or name),
        task=str(head.get("task") or name),
        sample_index=_whole(head.get("sample_index"), 0),
        total_samples=_whole(head.get("total_samples"), 1),
        timestamp=timestamp_of(told.get("timestamp"), path),
        template=str(head.get("prompt_template") or ""),
    )


def _filled(row: Row) -> Row:
    return {key: value for key, value in row.items() if value}


def _about(path: Path, facts: Mapping[Path, Row]) -> Row:
    """What the files beside a run's predictions say about it: JSON before text."""
    stem = stem_of(path)
    about: Row = {}
    for ending in ("metrics.txt", "metrics.json", "summary.json"):
        about |= facts.get(path.with_name(f"{stem}_{ending}"), {})
    return about


def _told_apart(files: list[AgentFile], root: Path) -> list[AgentFile]:
    """Files of one form that claim to be the same agent are different runs: they get their folders' names."""
    ordered = sorted(
        files, key=lambda file: (file.agent.name, file.is_old, str(file.document.path))
    )
    taken: set[tuple[str, int, bool]] = set()
    for file in ordered:
        agent = file.agent
        if (agent.name, agent.sample_index, file.is_old) in taken:
            place = file.document.path
            shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name
            file.agent = msgspec.structs.replace(
                agent, name=f"{agent.name} ({shown})", model_name="", task=""
            )
        taken.add((file.agent.name, file.agent.sample_index, file.is_old))
    return ordered


def _mapping(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    return value if type(value) is int and value >= 0 else default
