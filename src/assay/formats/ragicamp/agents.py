"""Which files hold whose answers: documents become datasets with agents, whatever generation they are of.

Of one agent on one dataset there may be several files: scored, raw, older. They are read in order of how much they
tell, and a later one adds only what the earlier ones lack.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.formats.ragicamp.files import Document, stem_of, timestamp_of
from assay.formats.ragicamp.rows import Agent, Row

UNKNOWN = "unknown"
GENERATIONS = {
    "five_files": "the old five files",
    "three_files": "the three files",
    "raw": "raw predictions",
    "later": "predictions with a flat summary",
    "folders": "a folder for each experiment",
}
_RANK = ("three_files", "five_files", "folders", "later", "raw")
_DESCRIPTION = (
    "type", "model", "prompt", "retriever", "top_k", "fetch_k", "query_transform", "reranker", "reranker_model",
    "agent_type", "agent",
)  # fmt: skip
_COUNTS = ("num_examples", "agent_name", "dataset_name")
_FOLDER = (
    "results.json",
    "metadata.json",
    "questions.json",
)  # beside the predictions of an experiment's folder
# Where the files of a run tell something, (file, key), the first that does counts.
_EXPERIMENTS = (("head", "experiment"), ("described", "name"))
_NAMES = (
    *(
        ("head", "agent_name"),
        ("results", "agent_name"),
        ("head", "experiment"),
        ("described", "name"),
    ),
    *(("head", "agent"), ("about", "agent_name")),
)
_DATASETS = (
    *(
        ("head", "dataset_name"),
        ("head", "dataset"),
        ("results", "dataset_name"),
        ("described", "dataset"),
    ),
    *(("about", "dataset_name"), ("questions", "dataset")),
)
_TIMES = (
    ("head", "timestamp"),
    ("about", "timestamp"),
    ("described", "started_at"),
    ("described", "timestamp"),
)
_OVERALL = (("about", "overall_metrics"), ("about", "metrics"))


class AgentFile(msgspec.Struct):
    """A file of one agent's answers; `scores` has its metrics where they are in a file of their own, `lists` those that
    a summary holds as one list of values."""

    document: Document
    generation: str
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
    """The datasets that the documents hold, by name."""
    every = list(documents)
    heads = {one.path: one.head for one in every}
    facts = {one.path: one.head for one in every if one.kind == "facts"}
    datasets: dict[str, Found] = {}

    def of(name: str) -> Found:
        return datasets.setdefault(name, Found(name, [], []))

    for one in every:
        if one.kind == "questions":
            of(
                _dataset(one, facts) or one.path.stem.removesuffix("_questions") or UNKNOWN
            ).questions.append(one)
    scores = {}  # JSON before CSV
    for one in sorted(
        (one for one in every if one.kind == "scores"), key=lambda one: one.path.suffix == ".json"
    ):
        scores[one.path.parent, stem_of(one.path)] = one
    files = [_predictions(one, facts, heads, scores) for one in every if one.kind == "predictions"]
    files += [_scores_alone(one, facts) for one in scores.values()]
    only = next(iter(datasets)) if len(datasets) == 1 else UNKNOWN
    for file in files:
        file.dataset = file.dataset or only
        of(file.dataset).agents.append(file)
    for found in datasets.values():
        found.agents = _told_apart(found.agents, root)
        found.problems = [f"{one.path}: {one.problem}" for one in every if one.problem]
    return [datasets[name] for name in sorted(datasets)]


def _predictions(
    document: Document,
    facts: Mapping[Path, Row],
    heads: Mapping[Path, Row],
    scores: dict[tuple[Path, str], Document],
) -> AgentFile:
    head, path = document.head, document.path
    generation = _generation(document)
    beside = _FOLDER if generation == "folders" else ()
    results, metadata, questions = (
        heads.get(path.with_name(name), {}) if name in beside else {} for name in _FOLDER
    )
    told = {
        "head": head,
        "results": _mapping(head.get("results")),
        "described": {**_mapping(results.get("metadata")), **metadata},
        "about": _about(path, facts),
        "questions": questions,
    }
    names = _EXPERIMENTS if beside else _NAMES
    name = str(_first(told, names) or (path.parent.name if beside else stem_of(path)))
    agent = Agent(
        name=name,
        model_name=str(head.get("model_name") or name),
        task=str(head.get("task") or name),
        sample_index=_whole(head.get("sample_index"), 0),
        total_samples=_whole(head.get("total_samples"), 1),
        timestamp=timestamp_of(_first(told, _TIMES), path),
        metadata={
            key: told["described"][key]
            for key in _DESCRIPTION
            if told["described"].get(key) is not None
        },
    )
    overall = results.get("metrics") if beside else told["results"] or _first(told, _OVERALL)
    values = _mapping(overall) or (_numbers(told["about"]) if generation == "later" else {})
    return AgentFile(
        document=document,
        generation=generation,
        dataset=str(_first(told, _DATASETS) or ""),
        agent=agent,
        scores=scores.pop((path.parent, stem_of(path)), None)
        if generation == "five_files"
        else None,
        lists={name: value for name, value in values.items() if isinstance(value, list)},
        overall={
            key: value
            for key, value in values.items()
            if key not in _COUNTS and not isinstance(value, list)
        },
    )


def _numbers(summary: Row) -> Row:
    """The metrics of a flat summary: whatever is a number or a list of them."""
    return {key: value for key, value in summary.items() if isinstance(value, (int, float, list))}


def _generation(document: Document) -> str:
    head, path = document.head, document.path
    if "results" in head:
        return "five_files"
    if "experiment" in head or path.name == "predictions.json":
        return "folders"
    if head.get("status") == "predictions_only" or path.stem.endswith("_predictions_raw"):
        return "raw"
    return "later" if "agent" in head else "three_files"


def _first(told: Mapping[str, Row], places: Iterable[tuple[str, str]]) -> Any:
    """The first value that some file has at one of these places."""
    return next((told[file][key] for file, key in places if told[file].get(key)), None)


def _scores_alone(document: Document, facts: Mapping[Path, Row]) -> AgentFile:
    """Metrics by question without the predictions that they are of."""
    about = {
        **_about(document.path, facts),
        **{key: value for key, value in document.head.items() if value},
    }
    name = str(about.get("agent_name") or stem_of(document.path))
    agent = Agent(name=name, timestamp=timestamp_of(about.get("timestamp"), document.path))
    dataset = str(about.get("dataset_name") or "")
    overall = {
        key: one for key, one in _mapping(about.get("metrics")).items() if not isinstance(one, list)
    }
    return AgentFile(
        document=document, generation="five_files", dataset=dataset, agent=agent, overall=overall
    )


def _about(path: Path, facts: Mapping[Path, Row]) -> Row:
    """What the files beside a run's predictions say about it: JSON before text."""
    stem = stem_of(path)
    names = (
        f"{stem}_metrics.txt",
        f"{stem}_metrics.json",
        f"{stem}_summary.json",
        f"{path.stem}_summary.json",
    )
    about: Row = {}
    for name in names:
        about |= facts.get(path.with_name(name), {})
    return about


def _dataset(document: Document, facts: Mapping[Path, Row]) -> str:
    head = document.head
    beside = facts.get(document.path.with_name("metadata.json"), {}) if "experiment" in head else {}
    return str(head.get("dataset_name") or head.get("dataset") or beside.get("dataset") or "")


def _told_apart(files: list[AgentFile], root: Path) -> list[AgentFile]:
    """Files of one generation that claim to be the same agent are different runs: they get their folders' names."""
    ordered = sorted(
        files,
        key=lambda file: (file.agent.name, _RANK.index(file.generation), str(file.document.path)),
    )
    taken: set[tuple[str, int, str]] = set()
    for file in ordered:
        agent = file.agent
        if (agent.name, agent.sample_index, file.generation) in taken:
            place = file.document.path
            shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name
            file.agent = msgspec.structs.replace(
                agent, name=f"{agent.name} ({shown})", model_name="", task=""
            )
        taken.add((file.agent.name, file.agent.sample_index, file.generation))
    return ordered


def _mapping(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
    )
