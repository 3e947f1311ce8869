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
    """The files of one dataset."""

    dataset: str
    questions: list[Document] = []
    agents: list[AgentFile] = []

    def documents(self) -> list[Document]:
        parts = [(agent.document, agent.scores) for agent in self.agents]
        return [*self.questions, *(one for pair in parts for one in pair if one is not None)]


def found_in(documents: Iterable[Document], root: Path) -> list[Found]:
    """The datasets that the documents hold, by name."""
    every = list(documents)
    facts = {one.path: one.head for one in every if one.kind == "facts"}
    heads = {one.path: one.head for one in every}
    datasets: dict[str, Found] = {}

    def of(name: str) -> Found:
        return datasets.setdefault(name, Found(name, [], []))

    for one in every:
        if one.kind == "questions":
            of(_dataset(one, facts) or one.path.stem.removesuffix("_questions") or UNKNOWN).questions.append(one)
    scores = {(one.path.parent, stem_of(one.path)): one for one in reversed(every) if one.kind == "scores"}
    scores |= {key: one for key, one in _by_stem(every, "scores").items() if one.path.suffix == ".json"}
    files = [_predictions(one, facts, heads, scores) for one in every if one.kind == "predictions"]
    files += [_scores_alone(one, facts) for one in scores.values()]
    only = next(iter(datasets)) if len(datasets) == 1 else UNKNOWN
    for file in files:
        file.dataset = file.dataset or only
        of(file.dataset).agents.append(file)
    for found in datasets.values():
        found.agents = _told_apart(found.agents, root)
    return [datasets[name] for name in sorted(datasets)]


def _by_stem(documents: Iterable[Document], kind: str) -> dict[tuple[Path, str], Document]:
    return {(one.path.parent, stem_of(one.path)): one for one in documents if one.kind == kind}


def _predictions(
    document: Document,
    facts: Mapping[Path, Row],
    heads: Mapping[Path, Row],
    scores: dict[tuple[Path, str], Document],
) -> AgentFile:
    head, path = document.head, document.path
    results = _mapping(head.get("results"))
    described: Row = {}
    if "results" in head:
        generation = "five_files"
    elif "experiment" in head or path.name == "predictions.json":
        generation = "folders"
        described = {**_mapping(facts.get(path.with_name("results.json"), {}).get("metadata"))}
        described |= facts.get(path.with_name("metadata.json"), {})
    else:
        raw = head.get("status") == "predictions_only" or path.stem.endswith("_predictions_raw")
        generation = "raw" if raw else "later" if "agent" in head else "three_files"
    about = _about(path, facts)
    name = head.get("agent_name") or results.get("agent_name") or head.get("experiment") or described.get("name")
    name = name or head.get("agent") or about.get("agent_name") or stem_of(path)
    dataset = head.get("dataset_name") or head.get("dataset") or results.get("dataset_name")
    dataset = dataset or described.get("dataset") or about.get("dataset_name")
    if generation == "folders":
        name = head.get("experiment") or described.get("name") or path.parent.name
        dataset = dataset or heads.get(path.with_name("questions.json"), {}).get("dataset")
    when = head.get("timestamp") or about.get("timestamp") or described.get("started_at") or described.get("timestamp")
    agent = Agent(
        name=str(name),
        model_name=str(head.get("model_name") or name),
        task=str(head.get("task") or name),
        sample_index=_whole(head.get("sample_index"), 0),
        total_samples=_whole(head.get("total_samples"), 1),
        timestamp=timestamp_of(when, path),
        metadata={key: described[key] for key in _DESCRIPTION if described.get(key) is not None},
    )
    overall = results or _mapping(about.get("overall_metrics") or about.get("metrics"))
    if generation == "folders":
        overall = _mapping(facts.get(path.with_name("results.json"), {}).get("metrics"))
    own = scores.pop((path.parent, stem_of(path)), None) if generation == "five_files" else None
    return AgentFile(
        document=document,
        generation=generation,
        dataset=str(dataset or ""),
        agent=agent,
        scores=own,
        lists={name: value for name, value in overall.items() if isinstance(value, list)},
        overall={key: value for key, value in overall.items() if key not in _COUNTS and not isinstance(value, list)},
    )


def _scores_alone(document: Document, facts: Mapping[Path, Row]) -> AgentFile:
    """Metrics of answers that nobody has any more."""
    about = {**_about(document.path, facts), **{key: value for key, value in document.head.items() if value}}
    name = str(about.get("agent_name") or stem_of(document.path))
    agent = Agent(name=name, timestamp=timestamp_of(about.get("timestamp"), document.path))
    dataset = str(about.get("dataset_name") or "")
    overall = {key: one for key, one in _mapping(about.get("metrics")).items() if not isinstance(one, list)}
    return AgentFile(document=document, generation="five_files", dataset=dataset, agent=agent, overall=overall)


def _about(path: Path, facts: Mapping[Path, Row]) -> Row:
    """What the files beside a run's predictions say about it: JSON before text."""
    stem = stem_of(path)
    names = (f"{stem}_metrics.txt", f"{stem}_metrics.json", f"{stem}_summary.json", f"{path.stem}_summary.json")
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
    ordered = sorted(files, key=lambda file: (file.agent.name, _RANK.index(file.generation), str(file.document.path)))
    taken: set[tuple[str, int, str]] = set()
    for file in ordered:
        agent = file.agent
        if (agent.name, agent.sample_index, file.generation) in taken:
            place = file.document.path
            shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name
            file.agent = msgspec.structs.replace(agent, name=f"{agent.name} ({shown})", model_name="", task="")
        taken.add((file.agent.name, file.agent.sample_index, file.generation))
    return ordered


def _mapping(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
