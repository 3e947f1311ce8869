"""The files of a repository as cases of a reader: a dataset's items, then each run's answers, then the labels.

An answer of the original has the id of its run and of its example; its labels find it by both. What Assay wrote has its
own rows beside the original's fields.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import msgspec

from assay import reading
from assay.engine.experiment.imports.kept import KEPT, labelled, restored
from assay.foreign import ForeignCase, Headline, key_of
from assay.formats.intelligence_layer.aggregations import FileAggregationRepository
from assay.formats.intelligence_layer.datasets import FileDatasetRepository
from assay.formats.intelligence_layer.domain import EvaluationOverview, RunOverview, in_order
from assay.formats.intelligence_layer.evaluations import (
    LABEL,
    FileEvaluationRepository,
    rows_of_original as label_rows,
)
from assay.formats.intelligence_layer.original import FileStore
from assay.formats.intelligence_layer.runs import (
    FileRunRepository,
    rows_of_original as response_rows,
)
from assay.formats.intelligence_layer.types import numbers_in
from assay.sdk import Evaluation, JsonObject, Response, id_hash, safe_name
from assay.store.items import encode_item
from assay.store.keyset import Seen
from assay.store.stores import FolderStore
from assay.store.table.decode import read_rows

FORMAT = "intelligence_layer"


class Author(msgspec.Struct):
    """Whose answers a run has, where Assay wrote it."""

    model_name: str = ""
    task: str = ""
    sample_index: int = 0
    total_samples: int = 1


def author_of(run: RunOverview) -> Author:
    try:
        return msgspec.convert(run.metadata[KEPT], Author)
    except (KeyError, TypeError, msgspec.ValidationError):
        return Author(model_name=run.id, task=run.id)


def results_in(root: Path, kind: str = "", name: str = "") -> list["RepositoryResults"]:
    """Return what is in a folder, by dataset: all, or the run or evaluation (`kind`) of this name."""
    ran: set[RunOverview] = set()
    evaluated: list[EvaluationOverview] = []

    if kind != "runs" and (root / "evaluations").is_dir():
        overviews = FileEvaluationRepository(root).evaluation_overviews()
        evaluated = [each for each in overviews if _is_called(name, each.id)]
        ran.update(*(each.run_overviews for each in evaluated))
    if kind != "evaluations" and (root / "runs").is_dir():
        overviews = FileRunRepository(root).run_overviews()
        ran.update(run for run in overviews if _is_called(name, run.id))
    datasets = sorted({run.dataset_id for run in ran})
    return [
        RepositoryResults(root, id, in_order(ran), evaluated, whole=not name) for id in datasets
    ]


def _files_or_rows(store: Any, kind: Any, id: str, type: Any) -> Iterator[Any]:
    assert isinstance(store, FileStore)
    ours = FolderStore.log(store, kind, id)
    if ours.segments():
        return (row for _, row in read_rows(ours, type))
    return store.original.examples(id)


def file_name(id: str) -> str:
    """The name of an id's file: without a dot, which the original would cut off."""
    name = safe_name(id)
    return safe_name(f"{id}/").replace(".", "-") if "." in name else name


# ---- rows


def response_from(row: JsonObject, run: RunOverview, author: Author) -> Response:
    """An output of the original as a response of ours."""
    (made,) = response_rows(row)
    made.sample_index, made.total_samples = author.sample_index, author.total_samples
    made.sample_id = f"{made.item_id}_sample_{made.sample_index}"
    made.model_name, made.task = author.model_name, author.task
    made.timestamp = run.end.timestamp()
    made.metadata = {"model_id": author.model_name}
    made.key = answer_key(run.id, made.item_id)
    return made


def answer_key(run_id: str, example_id: str) -> str:
    return key_of(FORMAT, run_id, example_id)


def _is_called(name: str, id: str) -> bool:
    return not name or name in (id, safe_name(id), file_name(id))


class RepositoryResults:
    """What was run and evaluated on one dataset; `whole`: all of it was asked for. Of the runs and
    evaluations in the folder only its own count."""

    def __init__(
        self,
        root: Path,
        dataset: str,
        runs: Sequence[RunOverview],
        evaluations: Sequence[EvaluationOverview],
        *,
        whole: bool,
    ) -> None:
        self.dataset = dataset
        self._root, self._whole_folder = root, whole
        self._run_files, self._evaluation_files = (
            FileRunRepository(root),
            FileEvaluationRepository(root),
        )
        self._runs = [run for run in runs if run.dataset_id == dataset]
        own = set(self._runs)
        self._evaluations = [each for each in evaluations if own & each.run_overviews]
        self._problems: list[str] = []
        self._has_items = True

    @property
    def planned(self) -> int:
        return sum(run.failed_example_count + run.successful_example_count for run in self._runs)

    @property
    def rejected(self) -> int:
        return len(self._problems)

    @property
    def source(self) -> JsonObject:
        """Return what tells that nothing has changed: a hash over all files."""
        content = blake2b(digest_size=16)
        ids = [*(f"runs/{run.id}" for run in self._runs), f"datasets/{self.dataset}"]
        for file in sorted(file for file in self._root.rglob("*") if file.is_file()):
            name = file.relative_to(self._root)
            if name.parts[0] in ("datasets", "runs", "evaluations", "aggregations"):
                content.update(f"{name}\n".encode("utf-8", "replace") + reading.content(file))
        folder = str(self._root.absolute())
        return {"format": FORMAT, "folder": folder, "of": ids, "content": content.hexdigest()}

    @property
    def facts(self) -> JsonObject:
        described = {each.id: each.description for each in (*self._runs, *self._evaluations)}
        return {"agents": [run.id for run in self._runs], "descriptions": described}

    def cases(self) -> Iterator[ForeignCase]:
        self._problems = []
        self._whole = Seen()  # answers that were read with their labels
        self._failed: dict[str, dict[str, Response]] = {}  # by run and example
        datasets = FileDatasetRepository(self._root)
        self._has_items = (self._root / "datasets").is_dir() and (
            datasets.dataset(self.dataset) is not None
        )
        for item in datasets._items(self.dataset) if self._has_items else ():
            row = msgspec.json.decode(encode_item(item))
            if row.get("ground_truth") == row["data"] and isinstance(row["data"], dict):
                del row["ground_truth"]
            yield ForeignCase(row)
        for run in self._runs:
            yield from self._answers(run)
        yield from self._labels()

    def notes(self) -> list[str]:
        notes: list[str] = []
        if not self._has_items:
            notes.append(
                f"the dataset {self.dataset!r} is not in the folder: there are answers without their questions"
            )
        if self._problems:
            notes.append(f"{len(self._problems):,} files cannot be read: {self._problems[0]}")
        asked = self._whole_folder and (self._root / "evaluations").is_dir()
        if asked and (partial := self._evaluation_files.unfinished_ids()):
            notes.append(
                f"{len(partial):,} evaluations were not finished and are left out: {partial[0]!r}"
            )
        if traces := sum(self._run_files.trace_counts(run.id)[1] for run in self._runs):
            notes.append(
                f"{traces:,} traces are left where they are: those of the original are not read"
            )
        return notes

    def headlines(self) -> list[Headline]:
        """Return the numbers of aggregations, which a logic of the user's made."""
        found: list[Headline] = []
        if not (self._root / "aggregations").is_dir():
            return found
        own = {each.id for each in self._evaluations}
        why = "a logic of the user's made it: only its code can say how"
        for overview in FileAggregationRepository(self._root).aggregation_overviews(
            cast("Any", Any)
        ):
            if own.intersection(overview.evaluation_ids):
                found += [
                    Headline(
                        label="", metric=f"{overview.id}.{name}", value=float(value), reason=why
                    )
                    for name, value in numbers_in(overview.statistics)
                    if not isinstance(value, bool)
                ]
        return found

    def _answers(self, run: RunOverview) -> Iterator[ForeignCase]:
        author = author_of(run)
        for row in _files_or_rows(self._run_files.store, "run", run.id, Response):
            if isinstance(row, Response):
                row.model_name = row.task = run.id
                row.key = key_of(FORMAT, run.id, row.key)
                yield ForeignCase(response=row)
                continue
            read = self._row_in(row, "example_id", "output")
            if read is not None:
                response = response_from(read, run, author)
                response, evaluations = restored(FORMAT, read, response, str(row))
                if evaluations is not None:
                    self._whole.add(id_hash(answer_key(run.id, str(read["example_id"]))))
                elif response.outcome == "errored":
                    self._failed.setdefault(run.id, {})[response.item_id] = response
                yield ForeignCase(None, response, evaluations or ())

    def _row_in(self, file: Path, *needed: str) -> JsonObject | None:
        try:
            row: Any = json.loads(reading.content(file))
        except (OSError, ValueError, RecursionError) as error:
            self._problems.append(f"{file}: {error}")
            return None
        if (
            isinstance(row, dict)
            and all(name in row for name in needed)
            and isinstance(row["example_id"], str)
        ):
            return cast("JsonObject", row)
        self._problems.append(f"{file} has no {' and '.join(needed)}")
        return None

    def _labels(self) -> Iterator[ForeignCase]:
        names = _label_names(self._evaluations)
        for overview in self._evaluations:
            runs = [run.id for run in in_order(overview.run_overviews)]
            authors = {run.id: author_of(run) for run in overview.run_overviews}
            failed = {**self._failed.get(runs[0], {})} if len(runs) == 1 else {}
            for row in _files_or_rows(
                self._evaluation_files.store, "evaluation", overview.id, Evaluation
            ):
                rows = [row] if isinstance(row, Evaluation) else self._results(row, overview, runs)
                for made in rows:
                    if made.players is None and len(runs) == 1:
                        self._of_run(
                            made, runs[0], authors[runs[0]], own=isinstance(row, Evaluation)
                        )
                    else:
                        made.responses = []
                    made.label = _label_of(names[overview.id], made)
                    failed.pop(made.item_id, None)
                if rows:
                    yield ForeignCase(evaluations=rows)
            yield from map(partial(_skipped_label, names[overview.id] or LABEL), failed.values())

    def _results(
        self, file: Path, overview: EvaluationOverview, runs: Sequence[str]
    ) -> list[Evaluation]:
        row = self._row_in(file, "example_id", "is_exception", "json_result")
        if row is None:
            return []
        if len(runs) == 1 and id_hash(answer_key(runs[0], row["example_id"])) in self._whole:
            return []
        try:
            made = label_rows(row)
        except (ValueError, TypeError, RecursionError) as error:
            self._problems.append(f"{file}: {error}")
            return []
        for number, each in enumerate(made):
            each.timestamp = overview.end_date.timestamp()
            each.key = key_of(FORMAT, overview.id, each.item_id, number, each.players)
        return _by_number(made, overview.id)

    def _of_run(self, row: Evaluation, run: str, author: Author, *, own: bool) -> None:
        row.model_name = author.model_name
        row.sample_index = author.sample_index or row.sample_index
        row.sample_id = f"{row.item_id}_sample_{row.sample_index}"
        row.responses = (
            [key_of(FORMAT, run, key) for key in row.responses]
            if own
            else [answer_key(run, row.item_id)]
        )


def _skipped_label(label: str, response: Response) -> ForeignCase:
    """Return the label of an answer that failed: the original leaves none, and it would not be counted."""
    row = labelled(FORMAT, response, label)
    row.outcome = "skipped"
    return ForeignCase(evaluations=[row])


def _by_number(rows: list[Evaluation], evaluation_id: str) -> list[Evaluation]:
    """A row for each number of a result that has several; their labels are called by these."""
    value = (
        rows[0].value
        if len(rows) == 1 and rows[0].score is None and rows[0].outcome == "scored"
        else None
    )
    numbers = dict(_flags(cast("JsonObject", value))) if isinstance(value, dict) else {}
    if len(numbers) < 2:
        return rows
    made: list[Evaluation] = []
    for name, number in numbers.items():
        row = msgspec.structs.replace(rows[0], label=name, score=float(number), passed=number > 0)
        row.key = key_of(FORMAT, evaluation_id, row.item_id, name)
        row.value = value if not made else None
        made.append(row)
    return made


def _flags(value: JsonObject) -> Iterator[tuple[str, float]]:
    for name, number in value.items():
        if isinstance(number, (bool, int, float)) and number - number == 0:
            yield name, number


def _label_names(evaluations: Sequence[EvaluationOverview]) -> dict[str, str]:
    """Return the name of each evaluation's labels: plain, unless several are about the same runs."""
    runs = Counter(
        run.id for each in evaluations for run in each.run_overviews if len(each.run_overviews) == 1
    )
    described = Counter(each.description for each in evaluations)
    names: dict[str, str] = {}
    for each in evaluations:
        alone = len(each.run_overviews) != 1 or all(runs[run.id] == 1 for run in each.run_overviews)
        own = each.description if each.description and described[each.description] == 1 else each.id
        names[each.id] = "" if alone else own
    return names


def _label_of(name: str, row: Evaluation) -> str:
    if not name:
        return row.label
    return name if row.label == LABEL else f"{name}.{row.label}"
