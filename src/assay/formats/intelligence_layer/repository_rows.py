"""The rows of a repository as the files of one experiment. Runs are models: their names are the runs' ids, which the
players of matches have as well."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from assay.errors import UserError
from assay.formats.intelligence_layer.dataset_files import FileDatasetRepository
from assay.formats.intelligence_layer.domain import EvaluationOverview, RunOverview, in_order
from assay.formats.intelligence_layer.evaluations import FileEvaluationRepository
from assay.formats.intelligence_layer.runs import FileRunRepository
from assay.records import ROWS_FILE, Evaluation, Response
from assay.store.files import safe_name, write_file
from assay.store.items import encode_item
from assay.store.keys import response_key
from assay.store.repair import read_rows


def write_rows(root: Path, folder: str, name: str, target: Path) -> bool:
    """Those of the run or evaluation of this folder, or of all of them; False where there is none."""
    runs, evaluations = FileRunRepository(root), FileEvaluationRepository(root)
    chosen = list(evaluations.evaluation_overviews()) if folder != "runs" and (root / "evaluations").is_dir() else []
    chosen = [each for each in chosen if _is(each.id, name)]
    ran = {run for each in chosen for run in each.run_overviews}
    if folder != "evaluations" and (root / "runs").is_dir():
        ran |= {run for run in runs.run_overviews() if _is(run.id, name)}
    if not ran and not chosen:
        return False
    datasets = {run.dataset_id for run in ran}
    if len(datasets) > 1:
        raise UserError(
            f"this repository has results on {len(datasets)} datasets",
            where=str(root),
            fix="name the folder of a run or of an evaluation in it",
        )
    for dataset in datasets:
        _write_items(FileDatasetRepository(root), dataset, target)
    _write_responses(runs, in_order(ran), target)
    _write_evaluations(evaluations, chosen, target)
    return True


def _is(id: str, name: str) -> bool:
    return not name or name in (id, safe_name(id))


def _write_items(datasets: FileDatasetRepository, dataset: str, target: Path) -> None:
    if datasets.dataset(dataset) is not None:
        lines = (encode_item(item) + b"\n" for item in datasets._items(dataset))
        write_file(target / ROWS_FILE["dataset"], lines)


def _write_responses(repository: FileRunRepository, runs: Iterable[RunOverview], target: Path) -> None:
    def lines() -> Iterator[bytes]:
        for run in runs:
            for _, row in read_rows(repository.store.log("run", run.id), Response):
                row.model_name = row.task = run.id
                row.key = response_key(row.item_id, run.id, row.sample_index, row.key.encode()).hex()
                yield msgspec.json.encode(row) + b"\n"

    write_file(target / ROWS_FILE["run"], lines())


def _write_evaluations(
    repository: FileEvaluationRepository, evaluations: Iterable[EvaluationOverview], target: Path
) -> None:
    def lines() -> Iterator[bytes]:
        for overview in evaluations:
            runs = [run.id for run in overview.run_overviews]
            for _, row in read_rows(repository.store.log("evaluation", overview.id), Evaluation):
                if row.players is None and len(runs) == 1:
                    row.model_name = runs[0]
                row.responses = []  # the keys of the rows here are others
                yield msgspec.json.encode(row) + b"\n"

    write_file(target / ROWS_FILE["evaluation"], lines())
