"""`assay export --format intelligence_layer`: datasets, runs, evaluations and aggregations, of a repository that the
library filled or of an experiment, in the files of the original, which reads them with its own repositories.

The original takes what follows a dot in an id for a file's suffix: such ids, and those with a slash, get another file
name. The true id stands in the file, so that they are found wherever all examples are read.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from assay.analysis.look.export import WHOLE_ROWS, Export
from assay.formats.intelligence_layer.aggregations import FileAggregationRepository
from assay.formats.intelligence_layer.cases import file_name
from assay.formats.intelligence_layer.datasets import FileDatasetRepository
from assay.formats.intelligence_layer.domain import FailedExampleEvaluation
from assay.formats.intelligence_layer.evaluations import FileEvaluationRepository
from assay.formats.intelligence_layer.experiments import Artefact, artefacts_of
from assay.formats.intelligence_layer.reader import is_repository
from assay.formats.intelligence_layer.runs import FileRunRepository
from assay.formats.intelligence_layer.types import to_json
from assay.sdk import Item, JsonObject, UserError, make_folder, write_file, writer

_JSON: Any = Any  # the type of a value that is read as it is
_OWN = "skipped_evaluation_count"  # a field of our overviews that the original does not have


@writer(
    name="intelligence_layer",
    whole="intelligence_layer",
    repositories=True,
    holds={**WHOLE_ROWS, "items": Item.__struct_fields__, "metrics": None},
)
def intelligence_layer(export: Export, *, extras: bool = True) -> list[str]:
    """The Intelligence Layer's own folder: datasets, runs, evaluations and aggregations, a file for each example.

    Parameters:
    extras: write what the original has no field for beside its fields, so that an import gives all rows back
    """
    if export.path is None:
        raise UserError("intelligence_layer writes several files", fix="name a folder with -o")
    source = export.tables.source
    files = OriginalFiles(export.path)
    if source.folder is not None and is_repository(source.folder):
        if source.folder.resolve() == export.path.resolve():
            raise UserError(
                "a repository cannot be exported into itself", fix="name another folder with -o"
            )
        _write_repository(source.folder, files)
    else:
        export.tables.log("responses")  # an error where there are none
        for artefact in artefacts_of(export.tables, files.more.append, extras=extras):
            files.write_artefact(artefact)
    return files.notes()


class OriginalFiles:
    """The files of the original. One that is there already and says something else is never replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._renamed: dict[str, str] = {}
        self._repeated = 0
        self._counts: dict[str, int] = {}
        self.more: list[str] = []

    def name(self, id: str) -> str:
        """The file's name for an id: without a dot, which the original would cut off."""
        name = file_name(id)
        if name != id:
            self._renamed[id] = name
        return name

    def dataset(self, about: JsonObject, items: Iterable[Item]) -> None:
        name = self.name(about["id"])
        rows = (
            {
                "input": item.data,
                "expected_output": item.ground_truth,
                "id": item.id,
                "metadata": item.metadata or None,
            }
            for item in items
        )
        lines = b"\n".join(msgspec.json.encode(row) for row in rows)
        self._write(f"datasets/{name}/{name}.jsonl", lines)
        self._write(f"datasets/{name}/{name}.json", msgspec.json.encode(about))
        self._count("dataset")

    def write_artefact(self, artefact: Artefact) -> None:
        """A dataset, or an overview and the files of its examples."""
        if artefact.kind == "dataset":
            self.dataset(artefact.overview, artefact.items)
            return
        place = f"{artefact.kind}s/{self.name(artefact.overview['id'])}"
        below = f"{place}/output" if artefact.kind == "run" else place
        if artefact.kind != "aggregation":
            make_folder(self._folder / below)
        seen: set[str] = set()
        for row in artefact.examples:
            self._repeated += row["example_id"] in seen
            if row["example_id"] not in seen:
                self._write(f"{below}/{self.name(row['example_id'])}.json", _json_text(row))
            seen.add(row["example_id"])
        self._write(f"{place}.json", _json_text(_as_original(artefact.overview)))
        self._count(artefact.kind)

    def notes(self) -> list[str]:
        counts = ", ".join(
            f"{count:,} {kind}{'s' * (count != 1)}" for kind, count in self._counts.items()
        )
        notes = [f"{counts or 'nothing'} written to {self._folder}"]
        if self._renamed:
            id, name = next(iter(self._renamed.items()))
            notes.append(
                f"{len(self._renamed):,} ids are not file names to the original, such as {id!r}, which is {name!r}: it "
                "finds them where it reads all examples, not one by its id"
            )
        if self._repeated:
            notes.append(
                f"{self._repeated:,} further results of an example are left out: the original keeps one"
            )
        return [*notes, *self.more]

    def _count(self, kind: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        if path.exists() and path.read_bytes() != content:
            raise UserError(
                "there is another file of this name",
                where=str(path),
                fix="name an empty folder with -o",
            )
        write_file(path, content)


def _write_repository(root: Path, files: OriginalFiles) -> None:
    """Everything that the library's repositories in a folder know, whoever wrote it."""
    datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
    evaluations, aggregations = FileEvaluationRepository(root), FileAggregationRepository(root)
    for id in datasets.dataset_ids():
        files.dataset(to_json(datasets.dataset(id)), datasets._items(id))
    traces = 0
    for id in _ids(root, "runs", runs.run_overview_ids):
        outputs = (to_json(output) for output in runs.example_outputs(id, _JSON))
        files.write_artefact(Artefact("run", to_json(runs.run_overview(id)), outputs))
        traces += sum(runs.trace_counts(id))
    for id in _ids(root, "evaluations", evaluations.evaluation_overview_ids):
        results = (_result(each) for each in evaluations.results(id, _JSON))
        files.write_artefact(
            Artefact("evaluation", to_json(evaluations.evaluation_overview(id)), results)
        )
    unfinished = [*_ids(root, "evaluations", evaluations.unfinished_ids)]
    for id in _ids(root, "aggregations", aggregations.aggregation_overview_ids):
        files.write_artefact(
            Artefact("aggregation", to_json(aggregations.aggregation_overview(id, _JSON)))
        )
    for count, what in ((traces, "traces"), (len(unfinished), "evaluations without results")):
        if count:
            files.more.append(
                f"{count:,} {what} are left out: they are not written for the original"
            )


def _ids(root: Path, folder: str, ids: Any) -> Iterable[str]:
    return ids() if (root / folder).is_dir() else []


def _result(evaluation: Any) -> JsonObject:
    return {
        "evaluation_id": evaluation.evaluation_id,
        "example_id": evaluation.example_id,
        "is_exception": isinstance(evaluation.result, FailedExampleEvaluation),
        "json_result": msgspec.json.encode(to_json(evaluation.result)).decode(),
    }


def _as_original(overview: JsonObject) -> JsonObject:
    """Without the field that only we have, in the overview itself or in those inside it."""
    inside = [_as_original(each) for each in overview.get("evaluation_overviews", [])]
    kept = {name: value for name, value in overview.items() if name != _OWN}
    return {**kept, "evaluation_overviews": inside} if inside else kept


def _json_text(row: JsonObject) -> bytes:
    return msgspec.json.format(msgspec.json.encode(row), indent=2)
