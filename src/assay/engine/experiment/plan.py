"""What a run would do: `assay plan` and `--dry-run`. Nothing is written into the experiment's folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from assay.engine.calls.budget import UNKNOWN_ANSWER
from assay.engine.calls.usage import CALLS, USAGE
from assay.engine.experiment import preflight
from assay.engine.experiment.experiment import BoundConfig, Experiment
from assay.engine.experiment.models import bind_limits
from assay.engine.run.existing import Existing, RowComparison
from assay.engine.run.plan import estimated_tokens, marked_cells
from assay.shown import Shown
from assay.store.index import ItemIndex
from assay.tasks.prompt import PromptTask

_USED = ("responses", "prompt_tokens", "completion_tokens")  # of calls
JUDGE_PROMPT = 200  # tokens of a judge's instructions, before any call has shown them


class TaskPlan(msgspec.Struct):
    """The selected cells of one task, and an estimate of their tokens."""

    name: str
    model: str
    cells: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0


class CallPlan(msgspec.Struct):
    """The calls that a scorer's judges would get, or a task's models: an estimate, null where nobody can know."""

    owner: str
    model: str
    calls: int | None
    prompt_tokens: int = 0
    answer_tokens: int = 0


class Plan(Shown, kw_only=True):
    """Counts of cells: `planned` in the whole plan, `selected` by the flags, of which `present` have rows and
    `missing` would run (`retried` of them because they failed); `stale` rows would be set aside, `returning` ones
    brought back. Tokens, dollars and seconds are estimates for the missing ones; null where nobody can know."""

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
    answer_tokens: int
    usd: float | None
    seconds: float | None
    tasks: list[TaskPlan]
    calls: list[CallPlan] = []
    warnings: list[str] = []


def plan(experiment: Experiment) -> Plan:
    """Return what a run would do."""
    return _Planner(experiment, experiment.bind()).plan()


@dataclass
class _Planner:
    experiment: Experiment
    bound: BoundConfig

    def __post_init__(self) -> None:
        tasks = self.bound.tasks
        self.tasks = {task.name: TaskPlan(task.name, task.model_name) for task in tasks}
        self.share = 0.0  # of the selected cells, that have no row
        self.before = {kind: self.experiment.manifest(kind) for kind in ("run", "evaluation")}

    def plan(self) -> Plan:
        experiment, bound = self.experiment, self.bound
        items, found = self._compare()
        selected = sum(task.cells for task in self.tasks.values())
        missing = selected if found is None else found.missing()
        self.share = missing / selected if selected else 0.0
        calls = [*self._calls_of_tasks(), *self._calls_of_judges()]
        return Plan(
            folder=experiment.config.output_dir,
            items=items,
            samples=bound.samples,
            planned=items * len(bound.tasks) * bound.samples,
            selected=selected,
            present=selected - missing,
            missing=missing,
            retried=found.retried if found else 0,
            stale=found.stale if found else 0,
            returning=found.returning if found else 0,
            prompt_tokens=round(self._missing("prompt_tokens")),
            answer_tokens=round(self._missing("answer_tokens")),
            usd=self._usd(calls),
            seconds=self._seconds(),
            tasks=[task for task in self.tasks.values() if task.cells],
            calls=calls,
            warnings=preflight.warnings(bound.metrics, bound.samples),
        )

    def _missing(self, *names: str, model: str = "") -> float:
        """Return the sum of these fields over the tasks, all or those of a model, for the missing cells."""
        tasks = [task for task in self.tasks.values() if model in ("", task.model)]
        return self.share * sum(getattr(task, name) for task in tasks for name in names)

    def _compare(self) -> tuple[int, RowComparison | None]:
        """Return how many items there are, and how existing rows compare with the plan."""
        experiment = self.experiment
        with experiment.trial_store() as trial:
            experiment.ingest(trial)
            experiment.preflight(self.bound, trial)
            items = ItemIndex(trial.log("dataset", experiment.id))
            cells = self._cells(items)
            found = Existing(experiment.store, "run", experiment.id).compare(
                cells,
                retry_errors=experiment.options.retry_errors,
                fresh=not experiment.config.resume,
            )
            for _ in cells:  # they are counted also where there are no rows
                pass
            return len(items), found

    def _cells(self, items: ItemIndex) -> Iterator[tuple[bytes, bool]]:
        tasks, answers = self.bound.tasks, self._usual_answers()
        selection = self.experiment.selection(tasks)
        for cell, selected in marked_cells(tasks, items, self.bound.samples, selection):
            if selected:
                task = self.tasks[cell.task.name]
                task.cells += 1
                task.prompt_tokens += estimated_tokens(cell.work)
                task.answer_tokens += answers.get(cell.task.model_name, UNKNOWN_ANSWER)
            yield cell.key, selected

    def _usual_answers(self) -> dict[str, int]:
        """Return the tokens of an answer by model: what the config allows, else what earlier answers had."""
        run, config = self.before["run"], self.experiment.config
        usual: dict[str, int] = {}
        for model, used in (run.metadata.get(USAGE, {}) if run is not None else {}).items():
            if used["responses"]:
                usual[model] = round(used["completion_tokens"] / used["responses"])
        for model in config.models:
            limit = {**config.sample_params, **model.inference}.get("max_tokens")
            if isinstance(limit, int) and limit > 0:
                usual[model.name] = min(limit, usual.get(model.name, limit))
        return usual

    def _calls_of_tasks(self) -> Iterator[CallPlan]:
        """Yield what tasks that ask by themselves would be asked for: at the rate of the last run."""
        asking = [task for task in self.bound.tasks if not isinstance(task, PromptTask)]
        for task in asking if self.experiment.config.models else ():
            if self.before["run"] is None:
                yield CallPlan(task.name, "", None)
            else:
                yield from self._as_before("run", task.name, len(self.bound.tasks))

    def _calls_of_judges(self) -> Iterator[CallPlan]:
        """Yield what judges would be asked about the missing responses: at the rate of the last run, else one call of
        each judge for each response."""
        cells = round(self._missing("cells"))
        tokens = round(self._missing("prompt_tokens", "answer_tokens")) + cells * JUDGE_PROMPT
        for scorer in self.bound.scorers:
            as_before = self._as_before("evaluation", scorer.name, len(self.bound.scorers))
            yield from as_before
            seats = 2 if scorer.of_several and scorer.both_seats else 1
            repeats = scorer.params.get("repeats", 1) * seats
            calls = cells * repeats
            for model in () if as_before else scorer.judges:
                answers = calls * UNKNOWN_ANSWER
                yield CallPlan(scorer.name, model, calls, tokens * repeats, answers)

    def _as_before(
        self, kind: Literal["run", "evaluation"], owner: str, owners: int
    ) -> list[CallPlan]:
        """Return as many calls for a row as the owner's rows had so far."""
        manifest = self.before[kind]
        if manifest is None:
            return []
        rows = sum(manifest.counts.values()) / owners
        each = round(self._missing("cells")) / rows if rows else 0.0
        calls: list[CallPlan] = []
        for model, used in manifest.metadata.get(CALLS, {}).get(owner, {}).items():
            counts = [round(each * used[name]) for name in _USED]
            calls.append(CallPlan(owner, model, *counts))
        return calls

    def _usd(self, calls: Sequence[CallPlan]) -> float | None:
        limits = bind_limits(self.experiment.config)
        own = [CallPlan(*msgspec.structs.astuple(task)) for task in self.tasks.values()]
        total = 0.0
        for part, asked in ((1.0, calls), (self.share, own)):
            for call in asked:
                price = limits[call.model].price if call.model in limits else None
                if call.calls is None or (call.calls and price is None):
                    return None
                if price is not None:
                    total += part * price.cost(call.prompt_tokens, call.answer_tokens)
        return total

    def _seconds(self) -> float | None:
        """Return what it takes at the rate of the last run; limits per minute make it longer."""
        run = self.before["run"]
        rate = run.metadata.get("rate") if run is not None else None
        seconds = [self._missing("cells") / rate] if rate else []
        for name, limits in bind_limits(self.experiment.config).items():
            if limits.requests_per_minute:
                requests = self._missing("cells", model=name)
                seconds.append(60 * requests / limits.requests_per_minute)
            if limits.tokens_per_minute:
                tokens = self._missing("prompt_tokens", "answer_tokens", model=name)
                seconds.append(60 * tokens / limits.tokens_per_minute)
        return max(seconds, default=None)
