"""`assay export --format ragicamp`: questions, predictions and summaries, three files for each agent of an experiment.

Files are written beside their place and get their names one by one under the folder's lock, so that several exports may
write to one folder at the same time.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from assay.analysis.tables import Export, Tables
from assay.errors import UserError
from assay.formats.ragicamp.files import date_of
from assay.formats.ragicamp.joining import Group, Joining
from assay.formats.ragicamp.merging import document, merge_questions, put_in_place, shared
from assay.formats.ragicamp.names import FileKind, Samples
from assay.formats.ragicamp.rows import Row, counted, prediction_row
from assay.formats.ragicamp.summaries import Scores
from assay.registry import writer
from assay.store.files import store_error, write_file


@writer(name="ragicamp", folder=True)
def ragicamp(
    export: Export, *, samples: Samples = "separate", plain_names: bool = False, dataset: str = "", extras: bool = True
) -> list[str]:
    """RAGiCamp's three files in a folder: a dataset's questions, an agent's predictions and its summary.

    Parameters:
    samples: separate makes each sample index an agent; mean has one prediction a question, with the mean of its scores
    plain_names: agents' files have no dataset in their names even where they replace those of another dataset
    extras: write what RAGiCamp has no field for beside its fields, so that an import gives all rows back
    dataset: the dataset's name; by default the one that it was stored or imported under, else that of its file
    """
    if export.path is None:
        raise UserError("ragicamp writes several files", fix="name a folder with -o")
    name = dataset or dataset_name(export.tables)
    notes: list[str] = []
    joining = Joining(export.tables, samples)
    if joining.matches:
        notes.append(f"{joining.matches:,} evaluations are of matches and have no place in RAGiCamp's files")
    folder = export.path
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(error, folder) from error
    with TemporaryDirectory(prefix=".assay-", dir=folder) as temporary:
        files = _write_agents(joining, Path(temporary), name, samples, extras)
        with shared(folder):
            merge_questions(folder, name, joining.items, notes.append)
            for agent, own in files.items():
                put_in_place(own, folder, agent, name, plain_names=plain_names)
    return notes


def dataset_name(tables: Tables) -> str:
    """What the dataset of an experiment is called."""
    manifest = tables.source.manifest("dataset")
    named: Any = manifest.plan.get("dataset") if manifest else None
    given = cast("Row", named) if isinstance(named, dict) else {}
    path = given.get("path")
    stem = Path(path).name.partition(".")[0] if isinstance(path, str) else ""
    own = manifest.name if manifest else ""
    return own or str(given.get("name") or "") or stem or tables.source.name


def _write_agents(
    joining: Joining, folder: Path, dataset: str, samples: Samples, extras: bool
) -> dict[str, dict[FileKind, Path]]:
    """The files of all agents, not yet under their names."""
    scores = Scores(folder / "scores")
    heads: dict[str, Row] = {}
    files: dict[str, dict[FileKind, Path]] = {}
    for number, group in enumerate(joining.groups()):
        agent = group.agent
        count = len(group.rows) if samples == "separate" else sum(1 for _ in _by_item(joining, group))
        heads[agent.name] = {
            "agent_name": agent.name,
            "dataset_name": dataset,
            "timestamp": date_of(agent.timestamp),
            "num_examples": count,
            "num_errors": group.errors,
            "model_name": agent.model_name,
            "prompt_template": group.template or None,
            "task": agent.task,
            "sample_index": agent.sample_index if samples == "separate" else None,
            "total_samples": agent.total_samples,
        }
        files[agent.name] = {kind: folder / f"{number}_{kind}.json" for kind in ("predictions", "summary")}
        rows = _mean_rows(joining, group, scores) if samples == "mean" else _rows(joining, group, scores, extras)
        write_file(files[agent.name]["predictions"], document(heads[agent.name], "predictions", rows))
    found = scores.statistics()
    for name, head in heads.items():
        statistics = found.get(name, {})
        overall = {metric: entry["mean"] for metric, entry in statistics.items()}
        summary = {**head, "overall_metrics": overall, "metric_statistics": statistics}
        write_file(files[name]["summary"], msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    return files


def _rows(joining: Joining, group: Group, scores: Scores, extras: bool) -> Iterator[Row]:
    for number in map(int, group.rows):  # a list would take five times the memory
        response = joining.response(number)
        evaluations = joining.evaluations(number, str(response.get("key") or ""))
        row = prediction_row(response, joining.question(response), group.agent, evaluations, extras=extras)
        labels = {name: str(evaluation.get("scorer") or "") for name, evaluation in evaluations}
        scores.add(
            group.agent.name,
            row["question_id"],
            ((name, labels[name], score) for name, score in row["metrics"].items()),
        )
        yield row


def _mean_rows(joining: Joining, group: Group, scores: Scores) -> Iterator[Row]:
    """One row an item: its first sample's prediction, all of them as a list, and the means of their scores."""
    for numbers in _by_item(joining, group):
        responses = [joining.response(number) for number in numbers]
        by_metric: dict[str, list[float | None]] = {}
        for number, response in zip(numbers, responses, strict=True):
            for name, evaluation in joining.evaluations(number, str(response.get("key") or "")):
                by_metric.setdefault(name, []).append(counted(evaluation))
        first = prediction_row(responses[0], joining.question(responses[0]), group.agent, [], extras=False)
        means = {name: _mean(values) for name, values in sorted(by_metric.items())}
        scores.add(group.agent.name, first["question_id"], ((name, name, score) for name, score in means.items()))
        yield {
            **{name: first[name] for name in ("question_id", "question", "prediction")},
            "metrics": means,
            "metadata": first["metadata"],
            "predictions": [str(response.get("response") or "") for response in responses],
            "num_samples": len(responses),
        }


def _mean(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _by_item(joining: Joining, group: Group) -> Iterator[list[int]]:
    """The numbers of an agent's responses, those of one item together."""
    import numpy as np

    places = joining.place(group.rows)
    ends = np.flatnonzero(np.append(places[1:] != places[:-1], True)) + 1
    begin = 0
    for end in ends.tolist():
        yield group.rows[begin:end].tolist()
        begin = end
