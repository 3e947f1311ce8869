"""The evaluation and the metrics of a run, by the engine's Evaluator and Aggregator; a report is a view of the rows.

Every column of unit-metric results is a label: what the collators of the task read, and what the graph's own unit
metrics wrote. A collator that reads the output of another post-processor has that one's rows scored, each as a sample
of the item whose id it has.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, Unpack, cast

import msgspec
import numpy as np
import yaml

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import BoundMetric, bind_metric
from assay.engine.calls.executor import Shared
from assay.engine.evaluate.bind import BoundScorer, bind_scorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment.preflight import LOOKED_AT
from assay.engine.experiment.trust import write_config
from assay.formats.sygra.data import INDEX, id_text
from assay.formats.sygra.eval_utils import MetricCollatorPostProcessor
from assay.formats.sygra.exchange import is_result
from assay.formats.sygra.metric import Census, CollatorReport, Entry, report_over
from assay.formats.sygra.outputs import json_value
from assay.formats.sygra.scorer import unit_result
from assay.formats.sygra.types import Row
from assay.sdk import Group, Kind, Log, MetricRow, Response, Values, digest
from assay.store.memory_log import MemoryLog
from assay.store.stores import FlatStore
from assay.store.table.columns import Table
from assay.store.table.decode import read_rows


class RunStore(FlatStore):
    """A run's folder. `scored` are the rows that stand for the responses while they are scored."""

    scored: Log | None = None

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return (
            self.scored
            if self.scored is not None and kind == "run" and not name
            else super().log(kind, id, name)
        )


class Scoring:
    """`columns` are those of the output record that the graph's own unit metrics write; `base` is the folder that
    names of user code count from."""

    def __init__(
        self,
        store: RunStore,
        columns: Sequence[str],
        *,
        name: str,
        base: Path,
        **shared: Unpack[Shared],
    ) -> None:
        self._store = store
        self._name = name
        self._base = base
        self._shared = shared
        self._scorers: dict[str, BoundScorer] = {}
        self._metrics: dict[str, BoundMetric] = {}
        self._made_by: dict[str, list[bytes]] = {}
        self._own = list(columns)
        self._order: Any = None
        self._is_evaluated = False

    async def report(
        self, collator: MetricCollatorPostProcessor, records: Sequence[Any], processor: str
    ) -> Row:
        """The collator's report over the graph's records, or over those that `processor` made from them."""
        made, style = collator.entries()
        census = Census(made)
        try:
            await asyncio.to_thread(deque, map(census.add, records), 0)
        except Exception as error:  # user code made them
            return census.fatal(error)
        if processor and not await asyncio.to_thread(
            self._take, processor, records, census.columns
        ):
            if progress := self._shared.get("progress"):
                progress.note(
                    f"the rows of {processor} name no item by their `id`: they are reported, and not stored"
                )
            return await asyncio.to_thread(report_over, made, style, records)
        names = self._include(made, census, processor)
        rows = await self._metric_rows() if names else {}
        return CollatorReport(
            made, style, census, {key: rows[name] for key, name in names.items() if name in rows}
        ).shown()

    async def finish(self) -> None:
        """Evaluate what no collator asked for."""
        if self._own and not self._is_evaluated:
            await self._metric_rows()

    def _include(self, made: Sequence[Entry], census: Census, processor: str) -> dict[str, str]:
        """The names of the entries' metrics, by their keys."""
        names: dict[str, str] = {}
        for entry in made:
            if entry.metric is None or entry.problem or entry.field not in census.names:
                continue
            label = self._score(entry.label, entry.field, entry.copied, processor)
            name = entry.key
            while name in self._metrics:
                name += "'"
            names[entry.key] = name
            bound = msgspec.structs.replace(entry.bound(name, str(self._base)), include=[label])
            self._metrics[name] = self._in_order(bound)
        return names

    def _score(self, label: str, column: str, copied: Mapping[str, str], processor: str) -> str:
        """The label that the column's rows have."""
        params = {"column": column, "metadata": dict(copied), "processor": processor}
        params = {key: value for key, value in params.items() if value}
        bound = self._scorers.get(label)
        if bound is not None and bound.params != params:
            label = f"{label} of {processor or 'the graph'}"
        self._scorers[label] = bind_scorer(unit_result, name=label, params=params)
        return label

    async def _metric_rows(self) -> dict[str, MetricRow]:
        """The metric rows by name, after all that was included is scored."""
        if not self._made_by:
            for column in self._own:
                self._score(column, column, {}, "")
        counted = {label for bound in self._metrics.values() for label in bound.include}
        metrics = dict(self._metrics)
        for label in self._scorers.keys() - counted:
            name = f"{label}-accuracy"
            metrics.setdefault(name, bind_metric(name=name, type="sygra.accuracy", include=[label]))
        self._keep_config(metrics)
        id = self._store.id
        self._store.scored = self._rows_to_score() if self._made_by else None
        evaluator = Evaluator(self._store, **self._shared)
        scorers = list(self._scorers.values())
        try:
            await evaluator.evaluate_async([id], scorers, id=id, name=self._name, dataset=id)
        finally:
            self._store.scored = None
        self._is_evaluated = True
        rows = await Aggregator(self._store).aggregate_async(
            [id], list(metrics.values()), id=id, name=self._name
        )
        return {row["metric_name"]: row for row in rows}

    def _keep_config(self, metrics: Mapping[str, BoundMetric]) -> None:
        """Return what `assay aggregate` computes again, in the words of a config."""
        scorers = [
            {"name": entry.name, "type": "sygra.unit_result", "params": entry.params}
            for entry in self._scorers.values()
        ]
        measured = [
            {
                "name": entry.name,
                "type": entry.type,
                "params": entry.params,
                "labels": {"include": entry.include},
            }
            for entry in metrics.values()
        ]
        config = {"name": self._name, "evaluation_methods": scorers, "metrics": measured}
        text = yaml.safe_dump(json_value(config), sort_keys=False, allow_unicode=True)
        write_config(self._store.folder, text.encode())

    def _in_order(self, bound: BoundMetric) -> BoundMetric:
        """The metric, given its rows in the order of the records: the engine sorts them by the hashes of their items,
        but a payload names classes as they occur, and a user's metric may look at neighbours."""
        inner: Callable[..., Values] = bound.function

        @wraps(inner)
        def measure(group: Group, **params: Any) -> Values:
            return inner(_in_order_of(group, self._places()), **params)

        return msgspec.structs.replace(bound, function=measure)

    def _places(self) -> Any:
        """The number of the record that each item is, items in the order of their hashes."""
        if self._order is None:
            items = Table([self._store.log("dataset", self._store.id)], {"id": "id"}, item=True)
            self._order = np.argsort(items["id"], kind="stable").astype(np.int32)
        return self._order

    def _take(self, processor: str, records: Sequence[Any], columns: Sequence[str]) -> bool:
        """Return whether each record names its item: then it is scored as a sample of that. Without
        columns nothing is."""
        if not columns:
            return True
        responses = self._responses()
        samples: Counter[str] = Counter()
        lines: list[bytes] = []
        for record in cast("list[Any]", json_value(list(records))):
            id = record.get("id", record.get(INDEX)) if isinstance(record, dict) else None
            row = responses.get(id_text(id))
            if row is None:
                return False
            number = samples[row.item_id]
            samples[row.item_id] += 1
            lines.append(msgspec.json.encode(_sample(row, record, number, processor, columns)))
        self._made_by[processor] = lines
        return True

    def _responses(self) -> dict[str, Response]:
        """Return the responses by the ids of their items, and by those of the records."""
        answered = (row for _, row in read_rows(self._store.log("run", self._store.id), _Answered))
        responses = {row.item_id: Response(**msgspec.structs.asdict(row)) for row in answered}
        for _, item in read_rows(self._store.log("dataset", self._store.id), _ItemRecord):
            if item.id in responses:
                responses.setdefault(id_text(item.data.get("id")), responses[item.id])
        return responses

    def _rows_to_score(self) -> MemoryLog:
        log = MemoryLog()
        if any("processor" not in scorer.params for scorer in self._scorers.values()):
            for _, line in self._store.log("run", self._store.id).scan():
                log.append(line + b"\n")
        for lines in self._made_by.values():
            log.append(b"".join(line + b"\n" for line in lines))
        return log


def result_columns(records: Iterable[Row], known: Iterable[str]) -> list[str]:
    """Return the known columns, and those that have results of unit metrics in the first records,
    whoever made them."""
    names = dict.fromkeys(known)
    for record in islice(records, LOOKED_AT):
        names |= dict.fromkeys(name for name, value in record.items() if is_result(value))
    return list(names)


class _ItemRecord(msgspec.Struct, gc=False):
    id: str
    data: Row = {}


class _Answered(msgspec.Struct, gc=False):
    """Of a response, what the rows that a post-processor made from it have as well."""

    item_id: str
    model_name: str = ""
    metadata: Row = {}
    error: str | None = None
    key: str = ""
    task: str = ""
    outcome: Any = "ok"


def _sample(
    row: Response, record: Row, number: int, processor: str, columns: Sequence[str]
) -> Response:
    has_result = any(isinstance(record.get(column), dict) for column in columns)
    return msgspec.structs.replace(
        row,
        sample_id=f"{row.item_id}_sample_{number}",
        sample_index=number,
        metadata={**row.metadata, "processor": processor},
        key=digest("sample", row.key.encode(), b"%d" % number).hex() if number else row.key,
        outcome="ok" if has_result else row.outcome,
        error=None if has_result else row.error,
        output=record,
    )


def _in_order_of(group: Group, places: Any) -> Group:
    order = np.lexsort((group.sample, places[group.item]))
    return msgspec.structs.replace(
        group,
        item=group.item[order],
        sample=group.sample[order],
        passed=group.passed[order],
        score=group.score[order],
        columns={
            name: [values[at] for at in order.tolist()] for name, values in group.columns.items()
        },
    )
