"""What a run would do: `assay plan` and `--dry-run`. Nothing is written into the experiment's folder."""

from collections.abc import Iterator

import msgspec

from assay.steps.existing import Existing
from assay.steps.experiment import Experiment
from assay.steps.plan import estimated_tokens, marked
from assay.store.index import ItemIndex


class TaskSurvey(msgspec.Struct):
    name: str
    cells: int
    tokens: int


class Survey(msgspec.Struct, kw_only=True):
    """Counts of cells: `planned` in the whole plan, `selected` by the flags, of which `present` have rows and
    `missing` would run (`retried` of them because they failed); `stale` rows would be set aside, `returning` ones
    brought back. `prompt_tokens` is an estimate for the missing ones."""

    folder: str
    items: int
    samples: int
    planned: int
    selected: int
    present: int
    missing: int
    retried: int
    stale: int
    returning: int
    prompt_tokens: int
    tasks: list[TaskSurvey]


def survey(experiment: Experiment) -> Survey:
    _, tasks, samples = experiment.bind_tasks()
    selection = experiment.selection(tasks)
    shown = {task.name: TaskSurvey(task.name, 0, 0) for task in tasks}
    with experiment.trial_store() as trial:
        experiment.ingest(trial)
        items = ItemIndex(trial.log("dataset", experiment.id))

        def planned() -> Iterator[tuple[bytes, bool]]:
            for cell, selected in marked(tasks, items, samples, selection):
                if selected:
                    counted = shown[cell.task.name]
                    counted.cells += 1
                    counted.tokens += estimated_tokens(cell.work)
                yield cell.key, selected

        existing = Existing(experiment.store, "run", experiment.id)
        found = existing.compare(
            planned(), retry_errors=experiment.options.retry_errors, fresh=not experiment.config.resume
        )
        if found is None:
            for _ in planned():
                pass
    selected = sum(task.cells for task in shown.values())
    tokens = sum(task.tokens for task in shown.values())
    missing = selected if found is None else found.missing()
    return Survey(
        folder=str(experiment.folder),
        items=len(items),
        samples=samples,
        planned=len(items) * len(tasks) * samples,
        selected=selected,
        present=selected - missing,
        missing=missing,
        retried=found.retried if found else 0,
        stale=found.stale if found else 0,
        returning=found.returning if found else 0,
        prompt_tokens=round(tokens * missing / selected) if selected else 0,
        tasks=[task for task in shown.values() if task.cells],
    )
