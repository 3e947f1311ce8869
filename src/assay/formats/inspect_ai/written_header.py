"""The header of a log that we write: what the run was, and its numbers, computed as inspect_ai computes them."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np

from assay.engine.experiment.sources import Source
from assay.formats.inspect_ai.header import EXPERIMENT, TASK
from assay.formats.inspect_ai.marks import number_of
from assay.formats.inspect_ai.numbers import Values
from assay.formats.inspect_ai.samples import time_text, value_of
from assay.formats.inspect_ai.shapes import VERSION
from assay.records import Evaluation, Response
from assay.store.keys import digest, id_hash

Row = dict[str, Any]
_MOST_LISTED = 100_000  # items whose ids and reduced scores are listed


class PartOf(Protocol):
    """Whose log it is."""

    @property
    def model(self) -> str: ...

    @property
    def task(self) -> str: ...


class Totals:
    """What the header says about all samples."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.ids: dict[str, None] = {}
        self.items = self.samples = self.completed = 0
        self.epochs = 1
        self.first = self.last = 0.0
        self.usage = [0, 0, 0]
        self.cost: float | None = None
        self.labels: dict[str, Values] = {}
        self.unscored: dict[str, int] = {}
        self.words: set[str] = set()

    def plan(self, response: Response) -> None:
        """Before the samples are written."""
        if len(self.ids) <= _MOST_LISTED:
            self.ids.setdefault(response.item_id)
        self.samples += response.outcome != "skipped"
        self.completed += response.outcome not in ("skipped", "errored")
        self.items += response.sample_index == 0
        self.epochs = max(self.epochs, response.sample_index + 1, response.total_samples)
        begun = response.timestamp - response.inference_time
        self.first = min(self.first or begun, begun) if response.timestamp else self.first
        self.last = max(self.last, response.timestamp)
        counts = (response.prompt_tokens, response.completion_tokens, response.total_tokens)
        self.usage = [total + (count or 0) for total, count in zip(self.usage, counts, strict=True)]
        if response.cost is not None:
            self.cost = (self.cost or 0.0) + response.cost

    def count(self, response: Response, labels: Mapping[str, Evaluation]) -> None:
        """A sample and its scores, by their names."""
        for name, row in labels.items():
            values = self.labels.setdefault(name, Values())
            value = value_of(row)
            number = None if isinstance(value, msgspec.Raw) else number_of(value)[0]
            if number is None:
                self.unscored[name] = self.unscored.get(name, 0) + 1
                continue
            if isinstance(value, (str, bool)):
                self.words.add(name)
            values.items.append(id_hash(response.item_id))
            values.numbers.append(number)

    def scores(self) -> list[Row]:
        """The results of each label."""
        return [self._score(label, values) for label, values in self.labels.items()]

    def _score(self, label: str, values: Values) -> Row:
        numbers = values.reduced("mean")
        name = "accuracy" if label in self.words else "mean"
        error = float(numbers.std(ddof=1)) / len(numbers) ** 0.5 if len(numbers) > 1 else 0.0
        measured = {name: float(numbers.mean()), "stderr": error} if len(numbers) else {}
        return {
            "name": label,
            "scorer": label,
            "scored_samples": len(numbers),
            "unscored_samples": self.unscored.get(label, 0),
            "params": {},
            "metrics": {
                name: {"name": name, "value": value, "params": {}}
                for name, value in measured.items()
            },
        }

    def reductions(self) -> list[Row]:
        """The score of each item, over its epochs."""
        if len(self.ids) > _MOST_LISTED:
            return []
        ids = {id_hash(id): id for id in self.ids}
        made: list[Row] = []
        for label, values in self.labels.items():
            items, place = np.unique(np.frombuffer(values.items, np.uint64), return_inverse=True)
            means = np.bincount(place, np.frombuffer(values.numbers, np.float64)) / np.bincount(
                place
            )
            rows = zip(items.tolist(), means.tolist(), strict=True)
            samples = [
                {"value": value, "history": [], "sample_id": ids[item]}
                for item, value in rows
                if item in ids
            ]
            made.append({"scorer": label, "samples": samples})
        return made


def header_row(source: Source, name: str, part: PartOf, experiment: str, totals: Totals) -> Row:
    """The whole header."""
    run = source.manifest("run")
    config: Row = {"epochs": totals.epochs}
    dataset: Row = {"name": name, "samples": totals.items, "shuffled": False}
    if len(totals.ids) <= _MOST_LISTED:
        dataset |= {"samples": len(totals.ids), "sample_ids": list(totals.ids)}
    id = digest("log", experiment.encode(), part.model.encode(), part.task.encode()).hex()[:22]
    began = time_text(totals.first) or "1970-01-01T00:00:00+00:00"
    ended = time_text(totals.last) or began
    spec: Row = {
        "eval_id": id,
        "run_id": experiment[:22],
        "created": began,
        "task": name,
        "task_id": id,
        "task_version": 0,
        "task_args": {},
        "dataset": dataset,
        "model": part.model,
        "model_args": {},
        "config": config,
        "packages": {},
        "metadata": {EXPERIMENT: experiment, TASK: part.task},
        "scorers": [{"name": label} for label in totals.labels] or None,
    }
    counts = dict(zip(("input_tokens", "output_tokens", "total_tokens"), totals.usage, strict=True))
    usage = {**counts, **({"total_cost": totals.cost} if totals.cost is not None else {})}
    return {
        "version": VERSION,
        "status": "success" if run is None or run.complete else "cancelled",
        "eval": spec,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": totals.samples,
            "completed_samples": totals.completed,
            "scores": totals.scores(),
        },
        "stats": {
            "started_at": began,
            "completed_at": ended,
            "model_usage": {part.model: usage},
            "role_usage": {},
        },
        "invalidated": False,
        "tags": [],
        "metadata": {},
    }
