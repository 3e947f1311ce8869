"""An experiment of Assay's as artefacts of the original.

A model with a prompt and a sample index is a run. The labels of a run's answers are an evaluation, whose results have
the score (or value) of each label; matches are an evaluation of all runs, with the original's `Matches`. Metric rows
are the statistics of one aggregation.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from assay.analysis.look.export import Tables
from assay.analysis.look.joining import Joining
from assay.engine.experiment.imports.kept import KEPT, kept_of
from assay.foreign import free_name
from assay.formats.intelligence_layer.cases import FORMAT, Author, response_from
from assay.formats.intelligence_layer.domain import (
    EvaluationOverview,
    FailedExampleRun,
    RunOverview,
)
from assay.formats.intelligence_layer.types import to_json
from assay.sdk import Item, JsonObject, safe_name
from assay.store.items import decode_item

_OUTCOMES = {1.0: "a_wins", 0.5: "draw", 0.0: "b_wins"}


@dataclass
class Artefact:
    """`examples` are the contents of their files; a dataset has `items` instead."""

    kind: str
    overview: JsonObject
    examples: Iterable[JsonObject] = ()
    items: Iterable[Item] = ()


def artefacts_of(
    tables: Tables, note: Callable[[str], None], *, extras: bool = True
) -> Iterator[Artefact]:
    """The dataset, then the runs, the evaluations, and what was aggregated. With `extras`, answers have what the
    original has no field for beside its fields."""
    manifest = tables.source.manifest("dataset")
    dataset = _plain((manifest.name if manifest else "") or tables.source.name)
    if "items" in tables:
        items = (decode_item(line, place) for place, line in tables.lines("items"))
        yield Artefact(
            "dataset", {"id": dataset, "name": dataset, "labels": [], "metadata": {}}, items=items
        )
    runs = Runs(tables, dataset, extras)
    yield from runs.artefacts()
    evaluations = list(_evaluations(tables, runs, note)) if "evaluations" in tables else []
    yield from evaluations
    if "metrics" in tables:
        last = max((run.last for run in runs.by_address.values()), default=0.0)
        yield _aggregation(tables, f"{dataset}-metrics", _date(last), evaluations)


def _aggregation(tables: Tables, id: str, date: str, evaluations: list[Artefact]) -> Artefact:
    counts: Counter[str] = Counter()
    for evaluation in evaluations:
        counts["successful"] += evaluation.overview["successful_evaluation_count"]
        counts["crashed"] += evaluation.overview["failed_evaluation_count"]
    overview = {
        "evaluation_overviews": [evaluation.overview for evaluation in evaluations],
        "id": id,
        "start": date,
        "end": date,
        "successful_evaluation_count": counts["successful"],
        "crashed_during_evaluation_count": counts["crashed"],
        "description": tables.source.name,
        "statistics": {"metrics": list(tables.rows("metrics"))},
        "labels": [],
        "metadata": {},
    }
    return Artefact("aggregation", overview)


@dataclass
class AuthoredRun:
    """The answers of one address: a model, a task where the model has several, and a sample index."""

    id: str
    description: str
    first: float
    last: float
    ok: int = 0
    failed: int = 0
    author: Author = field(default_factory=Author)


class Runs:
    """The runs in the rows of responses. `by_key` tells the run of a response."""

    def __init__(self, tables: Tables, dataset: str, extras: bool) -> None:
        self._tables, self._dataset, self._extras = tables, dataset, extras
        self.by_address: dict[tuple[str, str, int], AuthoredRun] = {}
        self.by_key: dict[str, AuthoredRun] = {}
        for row in tables.rows("responses"):
            self._add(row)
        models = [model for model, _, sample in self.by_address if not sample]
        taken: set[str] = set()
        for (model, task, sample), run in self.by_address.items():
            parts = (model, task if models.count(model) > 1 else "", str(sample or ""))
            run.author = Author(model, task, sample, run.author.total_samples)
            run.description = " ".join(filter(None, parts)) or "run"
            run.id = free_name(_plain(run.description), taken, "-")
            taken.add(run.id)

    def _add(self, row: JsonObject) -> None:
        time = float(row.get("timestamp") or 0.0)
        run = self.by_address.setdefault(_address(row), AuthoredRun("", "", time, time))
        run.first, run.last = min(run.first, time), max(run.last, time)
        total = int(row.get("total_samples") or 1)
        run.author.total_samples = max(run.author.total_samples, total)
        failed = _is_failed(row)
        run.failed, run.ok = run.failed + failed, run.ok + (not failed)
        if row.get("key"):
            self.by_key[row["key"]] = run

    def artefacts(self) -> Iterator[Artefact]:
        joining = Joining(self._tables) if "items" in self._tables else None
        for address, run in self.by_address.items():
            cases = self._rows(address) if joining is None else _cases(joining, address)
            yield Artefact("run", self.overview(run), self._outputs(cases, run))

    def overview(self, run: AuthoredRun) -> JsonObject:
        return to_json(self._overview(run))

    def _overview(self, run: AuthoredRun) -> RunOverview:
        return RunOverview(
            dataset_id=self._dataset,
            id=run.id,
            start=datetime.fromtimestamp(run.first, UTC),
            end=datetime.fromtimestamp(run.last, UTC),
            failed_example_count=run.failed,
            successful_example_count=run.ok,
            description=run.description,
            metadata={KEPT: msgspec.to_builtins(run.author)} if self._extras else {},
        )

    def of(self, evaluation: JsonObject) -> AuthoredRun | None:
        """The run whose answer a label is about."""
        for key in evaluation.get("responses") or ():
            return self.by_key.get(key)
        model, sample = str(evaluation.get("model_name") or ""), evaluation.get("sample_index") or 0
        runs = [
            run
            for (name, _, index), run in self.by_address.items()
            if (name, index) == (model, sample)
        ]
        return runs[0] if len(runs) == 1 else None

    def _rows(self, address: tuple[str, str, int]) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
        return ((row, []) for row in self._tables.rows("responses") if _address(row) == address)

    def _outputs(
        self, cases: Iterable[tuple[JsonObject, list[JsonObject]]], run: AuthoredRun
    ) -> Iterator[JsonObject]:
        overview = self._overview(run)
        for row, evaluations in cases:
            output: Any = row.get("response") if row.get("output") is None else row["output"]
            if _is_failed(row):
                output = to_json(FailedExampleRun(error_message=str(row.get("error") or "")))
            made: JsonObject = {
                "run_id": run.id,
                "example_id": str(row["item_id"]),
                "output": output,
            }
            if self._extras:
                kept = kept_of(FORMAT, row, response_from(made, overview, run.author), evaluations)
                made[KEPT] = {"evaluations": [], **kept}
            yield made


def _cases(
    joining: Joining, address: tuple[str, str, int]
) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
    """The answers of an address, each with its labels."""
    for series in joining.series():
        if (series.address.model, series.address.task, series.address.sample) == address:
            for response, evaluations in joining.cases(series):
                yield response, [row for _, row in evaluations]


def _result_of(row: JsonObject, label: str, before: JsonObject) -> JsonObject:
    """Return a label as a field of its example's result; of several that failed the first."""
    if row.get("outcome", "scored") == "scored":
        values = [row[name] for name in ("value", "score", "passed") if row.get(name) is not None]
        return {label: next(iter(values), None)}
    error = str(row.get("error") or row.get("outcome"))
    return {"error_message": before.get("error_message", error)}


def _match(row: JsonObject) -> JsonObject:
    first, second = row["players"]
    payoff = min(_OUTCOMES, key=lambda payoff: abs(payoff - float(row["score"])))
    return {"first_player": first, "second_player": second, "outcome": _OUTCOMES[payoff]}


def _evaluations(tables: Tables, runs: Runs, note: Callable[[str], None]) -> Iterator[Artefact]:
    """An evaluation for each run with labels, and one for the matches of each label."""
    labels: dict[str, tuple[AuthoredRun, dict[str, JsonObject]]] = {}
    matches: dict[str, dict[str, JsonObject]] = {}
    strays = 0
    for row in tables.rows("evaluations"):
        example, label = str(row["item_id"]), str(row.get("label") or "")
        outcome = row.get("outcome", "scored")
        if outcome == "skipped":
            continue
        if row.get("players"):
            of_label = matches.setdefault(label, {})
            played = of_label.setdefault(example, {"comparison_evaluations": []})
            played["comparison_evaluations"] += [_match(row)] if outcome == "scored" else []
        elif (run := runs.of(row)) is None:
            strays += 1
        else:
            result = labels.setdefault(run.id, (run, {}))[1].setdefault(example, {})
            result |= _result_of(row, label, result)
    if strays:
        note(
            f"{strays:,} evaluations are left out: it cannot be told which run's answer they are about"
        )
    if matches:
        note("of matches only players and outcomes are written")
    for run, results in labels.values():
        yield _evaluation(f"{run.id}-labels", [run], runs, results)
    for label, results in matches.items():
        yield _evaluation(_plain(f"{label} matches"), list(runs.by_address.values()), runs, results)


def _evaluation(
    id: str, of: list[AuthoredRun], runs: Runs, results: dict[str, JsonObject]
) -> Artefact:
    """An example whose labels all failed is a failure; one with some of them keeps those."""
    failed = {example for example, result in results.items() if result.keys() == {"error_message"}}
    start, end = min(run.first for run in of), max(run.last for run in of)
    overview = to_json(
        EvaluationOverview(
            run_overviews=frozenset(),
            id=id,
            start_date=datetime.fromtimestamp(start, UTC),
            end_date=datetime.fromtimestamp(end, UTC),
            successful_evaluation_count=len(results) - len(failed),
            failed_evaluation_count=len(failed),
            description=id,
        )
    )
    overview["run_overviews"] = [runs.overview(run) for run in of]
    rows = (
        {
            "evaluation_id": id,
            "example_id": example,
            "is_exception": example in failed,
            "json_result": msgspec.json.encode(result).decode(),
        }
        for example, result in results.items()
    )
    return Artefact("evaluation", overview, list(rows))


def _is_failed(row: JsonObject) -> bool:
    return row.get("outcome") == "errored" or bool(row.get("error"))


def _address(row: JsonObject) -> tuple[str, str, int]:
    return (
        str(row.get("model_name") or ""),
        str(row.get("task") or ""),
        row.get("sample_index") or 0,
    )


def _plain(text: str) -> str:
    """An id that the original can take for a file's name."""
    return safe_name(text).replace(".", "-").replace("~", "-")


def _date(time: float) -> str:
    return to_json(datetime.fromtimestamp(time, UTC))
