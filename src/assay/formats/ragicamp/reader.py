"""RAGiCamp's results as items, responses and evaluations, streamed: the three files, and the old five.

What is odd about the files is counted and reported; only what cannot be told apart is refused. Of one agent on one
dataset there may be the three files and the old five. The three are read first, and the old ones add only what they
lack. Files of RAGiCamp's later versions are refused.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.experiment.dataset import content_stamp
from assay.foreign import Foreign, ForeignCase, Headline, Oddities
from assay.formats.ragicamp.files import RagicampFile, documents, stem_of, timestamp_of
from assay.formats.ragicamp.rows import (
    IDS,
    Agent,
    id_of,
    item_row,
    question_fields,
    read_prediction,
)
from assay.sdk import (
    Evaluation,
    JsonObject,
    UserError,
    as_object,
    digest,
    id_hash,
    number_of,
    reader,
)
from assay.store.keyset import Seen
from assay.text.json_stream import storable

UNKNOWN = "unknown"
_OF_NOTHING = "these are scores of no prediction"
_COUNTS = ("num_examples", "agent_name", "dataset_name")
_LATER_FIELDS = {"experiment", "agent"}  # of questions and predictions


class AgentFile(msgspec.Struct):
    """A file of one agent's answers; `scores` has its metrics where they are in a file of their own, `lists` those that
    a summary holds as one list of values. `is_old`: it is one of the old five files."""

    document: RagicampFile
    is_old: bool
    dataset: str
    agent: Agent
    scores: RagicampFile | None = None
    lists: dict[str, list[Any]] = {}
    overall: JsonObject = {}


def _agent_files(every: Sequence[RagicampFile]) -> list[AgentFile]:
    """Return the files with answers, then the scores that no answers are there for."""
    facts = {one.path: one.head for one in every if one.kind == "facts"}
    per_question = [one for one in every if one.kind == "scores"]
    per_question.sort(key=lambda one: one.path.suffix == ".json")  # JSON before CSV
    scores = {(one.path.parent, stem_of(one.path)): one for one in per_question}
    files = [_agent_file(one, facts, scores) for one in every if one.kind == "predictions"]
    return [*files, *(_agent_file(one, facts, {}) for one in scores.values())]


def _check_version(document: RagicampFile) -> None:
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
    document: RagicampFile,
    facts: Mapping[Path, JsonObject],
    scores: dict[tuple[Path, str], RagicampFile],
) -> AgentFile:
    """Return a file of answers with what the files beside it say. A file of scores stands for answers that are not
    there."""
    head, path = document.head, document.path
    results = as_object(head.get("results"))
    told = _about(path, facts) | _non_empty(results) | _non_empty(head)
    is_old = "results" in head or document.kind == "scores"
    values = results or as_object(told.get("overall_metrics") or told.get("metrics"))
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


def _agent(told: JsonObject, document: RagicampFile) -> Agent:
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


def _non_empty(row: JsonObject) -> JsonObject:
    return {key: value for key, value in row.items() if value}


def _about(path: Path, facts: Mapping[Path, JsonObject]) -> JsonObject:
    """Return what the files beside a run's predictions say about it: JSON before text."""
    stem = stem_of(path)
    about: JsonObject = {}
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


def _whole(value: Any, default: int) -> int:
    return value if type(value) is int and value >= 0 else default


_Address = tuple[str, int]
_ALONE = "only the summary has it: no prediction has such a score"


_SAID = {
    "broken": "what could not be read of the files, {count:,} in all: {first}",
    "unasked": "{count:,} predictions have no question in the questions file: each is its own question, the first is "
    "{first!r}",
    "apart": "{count:,} questions have an id that another question has: they got ids of their own, the first is "
    "{first!r}",
    "unanswered": "{count:,} questions have no prediction: {first}",
    "textless": "{count:,} rows have metrics but no prediction, the first is {first!r}",
    "lists": "{count:,} lists of values in a summary do not have one for each prediction and are left out: {first}",
}
# lists in summaries, and what they hold
_NAMES = {"bleurt_scores": "bleurt", "individual_scores": "llm_judge_score"}


@reader
def ragicamp(path: Path, *, dataset: str = "") -> list[Foreign]:
    """A folder with RAGiCamp's three files or its old five, or one of them.

    Parameters:
    dataset: only the results on this dataset
    """
    return list(results_at(path, dataset=dataset))


def results_at(path: Path, *, dataset: str = "") -> list["RagicampResults"]:
    """Return the results at a path, one for each dataset; none if there is nothing of RAGiCamp's."""
    every = documents(path)
    results: dict[str, RagicampResults] = {}
    for one in every:
        _check_version(one)
    for one in every:
        if one.kind == "questions":
            name = _dataset_of(one)
            results.setdefault(name, RagicampResults(name)).questions.append(one)
    only = next(iter(results)) if len(results) == 1 else UNKNOWN
    for file in _agent_files(every):
        file.dataset = file.dataset or only
        results.setdefault(file.dataset, RagicampResults(file.dataset)).agents.append(file)
    for found in results.values():
        found.agents = _told_apart(found.agents, path)
        found.problems = [f"{one.path}: {one.problem}" for one in every if one.problem]
    return [results[name] for name in sorted(results) if dataset in ("", name)]


def _address(file: AgentFile) -> _Address:
    return file.agent.name, file.agent.sample_index


def _model(file: AgentFile) -> str:
    return file.agent.model_name or file.agent.name


def _dataset_of(questions: RagicampFile) -> str:
    stem = questions.path.stem.removesuffix("_questions")
    return str(questions.head.get("dataset_name") or stem or UNKNOWN)


class RagicampResults:
    """One dataset's questions, and what agents answered. Passes may be made again; each starts from the files."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.questions: list[RagicampFile] = []
        self.agents: list[AgentFile] = []
        self.problems: list[str] = []  # what could not be read of any file that was looked at
        self.odd = Oddities(_SAID)
        self._apart: dict[int, str] = {}
        self._items = 0
        self._sums: dict[_Address, dict[str, list[Any]]] = {}

    @property
    def source(self) -> JsonObject:
        """Return what tells that the files are still those that were read."""
        pairs = ((agent.document, agent.scores) for agent in self.agents)
        files = [*self.questions, *(one for pair in pairs for one in pair if one is not None)]
        stamps = [content_stamp(one.path.absolute()) for one in files]
        return {"format": "ragicamp", "files": stamps}

    @property
    def facts(self) -> JsonObject:
        """Return what the files say beyond rows."""
        agents = self.agents
        said = {file.agent.name: file.overall for file in agents if file.overall}
        forms = {"the old five files" if file.is_old else "the three files" for file in agents}
        return {
            "read_from": sorted(forms) or ["the three files"],
            "agents": sorted({file.agent.name for file in agents}),
            "overall_metrics": said,
        }

    @property
    def rejected(self) -> int:
        """Count the rows and files that could not be read."""
        return self.odd.count("broken")

    def notes(self) -> list[str]:
        return [*self.odd.notes().values()]

    def headlines(self) -> list[Headline]:
        """Each number of the agents' summaries; where failures count as wrong answers in it, so they do in ours."""
        found: list[Headline] = []
        told = {_address(file): file for file in self.agents if file.overall}
        models = Counter((_model(file), file.agent.sample_index) for file in told.values())
        for address, file in told.items():
            where: JsonObject = {"model_name": _model(file)}
            if file.agent.total_samples > 1:
                where["sample_index"] = file.agent.sample_index
            shared = models[_model(file), file.agent.sample_index] > 1
            sums = self._sums.get(address, {})
            for name, value in file.overall.items():
                if type(value) in (int, float):
                    own = sums.get(name)
                    ours = own[0] / own[1] if own is not None and (own[2] or shared) else None
                    reason = _ALONE if own is None else ""
                    line = Headline(label=name, metric="mean", value=float(value), ours=ours)
                    line.where, line.reason = where, reason
                    found.append(line)
        return found

    @property
    def planned(self) -> int | None:
        """Return how many answers the files say that they have; None if one does not say it."""
        said: dict[_Address, int] = {}
        for file in self.agents:
            told = as_object(file.document.head.get("results")) or file.document.head
            counts = (told.get("num_examples"), told.get("num_failed"))
            count = sum(number for number in counts if isinstance(number, int))
            said[_address(file)] = max(said.get(_address(file), 0), count)
        return sum(said.values()) if all(said.values()) else None

    def items(self) -> Iterator[tuple[str, JsonObject]]:
        """(place, dataset row) of every question, those of the questions files first."""
        self.odd = Oddities(_SAID)
        self._apart = {}
        ids, pairs, self._items = Seen(), Seen(), 0
        for place, id, row in self._question_rows():
            of_file, (text, pair) = place is not None, _pair(id, row)
            if not pairs.add(pair):
                continue
            own = id
            if not ids.add(id_hash(id)):
                if not text:
                    continue
                own = self._apart[pair] = f"{id}~{pair:016x}"
                self.odd.note("apart", own)
            elif not of_file and self.questions:
                self.odd.note("unasked", id)
            self._items += 1
            yield place or str(self.agents[0].document.path), item_row(row, own)

    def _question_rows(self) -> Iterator[tuple[str | None, str, JsonObject]]:
        for document in self.questions:
            for place, number, row in document.rows(self._broken):
                yield place, id_of(row, number), row
        for file in self.agents:
            for _, number, row in file.document.rows():
                yield None, id_of(row, number), question_fields(row)

    def cases(self) -> Iterator[ForeignCase]:
        """Every question, then every answer with its evaluations, agent by agent."""
        self._sums = {}
        yield from (ForeignCase(row) for _, row in self.items())
        for problem in self.problems:
            self._broken(problem)
        answered: dict[str, int] = {}
        files: dict[_Address, list[AgentFile]] = {}
        for file in self.agents:
            files.setdefault(_address(file), []).append(file)
        for several in files.values():
            seen = Seen() if len(several) > 1 else None
            for file in several:
                for place, id, row in self._own_rows(file):
                    if seen is not None and not seen.add(id_hash(id)):
                        continue  # a file that tells more had it
                    answered[file.agent.name] = answered.get(file.agent.name, 0) + 1
                    response, evaluations = read_prediction(row, id, file.agent, place)
                    self._add(file, row, evaluations)
                    yield ForeignCase(None, response, evaluations)
        self._find_unanswered(answered)

    def _add(self, file: AgentFile, row: JsonObject, evaluations: Iterable[Evaluation]) -> None:
        """Add up the scores that a prediction shows: the sum, how many they are, and whether one
        does not count as it is shown."""
        metrics = as_object(row.get("metrics"))
        sums = self._sums.setdefault(_address(file), {})
        for evaluation in evaluations:
            shown = metrics.get(evaluation.label)
            if isinstance(shown, (int, float)) and math.isfinite(shown):
                own = sums.setdefault(evaluation.label, [0.0, 0, False])
                own[0] += shown
                own[1] += 1
                own[2] = own[2] or evaluation.outcome != "scored" or evaluation.score != shown

    def _own_rows(self, file: AgentFile) -> Iterator[tuple[str, str, JsonObject]]:
        """(place, id, row) of a file's predictions, one for a question."""
        own = Seen()
        for place, number, row in self._rows(file):
            id = self._id(id_of(row, number), row)
            if not own.add(id_hash(id)):
                what = f"two predictions of {file.agent.name!r} are for {id!r}"
                raise UserError(what, where=place, fix="keep one of them")
            yield place, id, row

    def _find_unanswered(self, answered: dict[str, int]) -> None:
        samples = {file.agent.name: file.agent.total_samples for file in self.agents}
        for name, count in answered.items():
            if count < self._items and samples[name] == 1:
                self.odd.note("unanswered", f"of {name}", self._items - count)

    def _id(self, id: str, row: JsonObject) -> str:
        return self._apart.get(_pair(id, row)[1], id) if self._apart else id

    def _rows(self, file: AgentFile) -> Iterator[tuple[str, int, JsonObject]]:
        rows = file.document.rows(self._broken)
        if file.document.kind == "scores":
            rows = ((place, number, _without_answer(row)) for place, number, row in rows)
        elif file.is_old:
            rows = self._rows_with_scores(file, rows)
        for place, number, row in rows:
            for what, kind in (("metrics", dict), ("evaluations", list)):
                if row.get(what) and not isinstance(row[what], kind):
                    self._broken(
                        f"{place}: {what!r} is not {'an object' if kind is dict else 'a list'}"
                    )
            if row.get("prediction") is None:
                self.odd.note("textless", id_of(row, number))
            yield place, number, row

    def _rows_with_scores(
        self, file: AgentFile, rows: Iterator[tuple[str, int, JsonObject]]
    ) -> Iterator[tuple[str, int, JsonObject]]:
        """The old predictions with their metrics, which are in another file, or as lists in the summary."""
        scores = self._scores_by_number(file.scores)
        lists = {_NAMES.get(name, name): values for name, values in file.lists.items()}
        count = as_object(file.document.head.get("results")).get("num_examples")
        for name, values in list(lists.items()):
            if len(values) != count:
                self.odd.note("lists", name)
                del lists[name]
        for place, number, row in rows:
            metrics = {
                name: values[number] for name, values in lists.items() if number < len(values)
            }
            found = scores.pop(number, ("", {}))[1]
            yield place, number, storable({**row, "metrics": {**metrics, **found}})
        for place, _ in scores.values():
            self._broken(f"{place}: {_OF_NOTHING}")

    def _scores_by_number(self, document: RagicampFile | None) -> dict[int, tuple[str, JsonObject]]:
        """Return the old metrics, each with its place, by the number of their question."""
        found: dict[int, tuple[str, JsonObject]] = {}
        for place, number, row in () if document is None else document.rows(self._broken):
            index = number_of(row.get("question_index"))
            at = number if index is None else int(index)
            if at in found:
                self._broken(f"{place}: {_OF_NOTHING}")
            else:
                found[at] = place, _metrics_of(row)
        return found

    def _broken(self, what: str) -> None:
        self.odd.note("broken", what)


def _metrics_of(row: JsonObject) -> JsonObject:
    return {name: value for name, value in row.items() if name not in (*IDS, "question")}


def _without_answer(row: JsonObject) -> JsonObject:
    kept = {name: row[name] for name in ("question_index", "question") if name in row}
    return {**kept, "metrics": _metrics_of(row)}


def _pair(id: str, row: JsonObject) -> tuple[str, int]:
    """The question's text, and a number for id and text together."""
    text = " ".join(str(row.get("question") or "").split())
    return text, int.from_bytes(
        digest("question", id.encode(), text.encode("utf-8", "replace"))[:8], "big"
    )
