"""What a configuration asks for: its cells, their keys, and how they compare with existing rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from assay.engine.calls.budget import prompt_tokens, text_tokens
from assay.sdk import (
    Item,
    JsonObject,
    Log,
    Manifest,
    Request,
    Task,
    UserError,
    Work,
    canonical,
    digest,
    response_key,
)
from assay.store.seal import is_unchanged
from assay.usercode import raised


class Cell(msgspec.Struct, gc=False):
    """The engine's unit of work: a task, an item, a sample. `problem` says why the item could not be prepared."""

    task: Task
    item: Item
    sample: int
    work: Work
    key: bytes
    problem: str | None = None


class Selection(msgspec.Struct, frozen=True):
    """What part of the plan runs now; what is kept never depends on it."""

    tasks: frozenset[str] | None = None
    items: int | None = None
    samples: int | None = None

    def takes(self, task: str, item: int = 0, sample: int = 0) -> bool:
        """Return whether a cell, by its task's name, its item's number and its sample, is
        selected."""
        return (
            (self.tasks is None or task in self.tasks)
            and (self.items is None or item < self.items)
            and (self.samples is None or sample < self.samples)
        )

    def cells(self, tasks: Sequence[Task], items: int, samples: int) -> int:
        """Return how many cells are selected of a plan."""
        chosen = sum(self.takes(task.name) for task in tasks)
        return chosen * min(items, self.items or items) * min(samples, self.samples or samples)


def check_tasks(tasks: Sequence[Task]) -> None:
    if not tasks:
        raise UserError("there is nothing to run", fix="name at least one model or task")
    refuse_repeated(tasks, "tasks", "give each model and each template its own name")


def refuse_repeated(parts: Sequence[Any], what: str, fix: str) -> None:
    """Refuse two tasks or scorers of one name."""
    name, count = Counter(part.name for part in parts).most_common(1)[0]
    if count > 1:
        raise UserError(f"two {what} are called {name!r}", fix=fix)


def cells(tasks: Sequence[Task], items: Iterable[Item], samples: int) -> Iterator[Cell]:
    """Every cell, item by item. An item that a task cannot prepare still has its cells: they become error rows."""
    for item in items:
        for task in tasks:
            problem = None
            try:
                work = task.prepare(item)
            except (
                Exception
            ) as error:  # user templates and functions may raise anything; the row will say it
                problem = f"the item cannot be prepared: {raised(error)}"
                work = Work(digest("unprepared", problem.encode()))
            for sample in range(samples):
                key = response_key(item.id, task.name, sample, work.fingerprint)
                yield Cell(task, item, sample, work, key, problem)


def marked_cells(
    tasks: Sequence[Task], items: Iterable[Item], samples: int, selection: Selection
) -> Iterator[tuple[Cell, bool]]:
    """Every cell of the plan, and whether it is selected."""
    number, last = -1, None
    for cell in cells(tasks, items, samples):
        if cell.item is not last:
            number, last = number + 1, cell.item
        yield cell, selection.takes(cell.task.name, number, cell.sample)


def content_hash(dataset: Manifest) -> str:
    """Of a dataset's rows, and of the files that they show."""
    return dataset.digest + dataset.metadata.get("media_hash", "")


def describe(tasks: Sequence[Task], samples: int, dataset_hash: str) -> JsonObject:
    """The plan as a manifest keeps it: enough to recognise it, and to know later what was asked."""
    return {
        "dataset": dataset_hash,
        "samples": samples,
        "tasks": [
            {"name": task.name, "identity": dict(task.identity), "facets": dict(task.facets)}
            for task in tasks
        ],
    }


def plan_digest(plan: JsonObject) -> str:
    """Equal digests mean equal cells with equal keys. Facets count: they are written into the rows."""
    return digest("plan", canonical(plan)).hex()


def is_finished(old: Manifest, wanted: str, rows: Log, retry_errors: bool | None) -> bool:
    """Return whether an earlier run did all of this, and its rows are whole, so that nothing has to
    be rendered or decoded."""
    repeat = old.counts.get("transient", 0) + (old.counts.get("errored", 0) if retry_errors else 0)
    return old.complete and old.digest == wanted and not repeat and is_unchanged(old, rows)


def estimated_tokens(work: Work) -> int:
    """A rough count of the prompt's tokens; 0 where the task has no messages to look at."""
    if isinstance(work.payload, Request):
        return prompt_tokens(work.payload)
    # the first without the bytes of files
    messages = work.messages or getattr(work.payload, "messages", work.payload)
    return text_tokens(messages) if isinstance(messages, list) else 0
