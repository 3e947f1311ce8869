"""What a run would do: `assay plan` and `--dry-run`. Nothing is written into the experiment's folder."""

from collections.abc import Iterator, Sequence

import msgspec

from assay.engine.calls.budget import UNKNOWN_ANSWER
from assay.engine.calls.usage import CALLS, USAGE
from assay.engine.experiment import preflight
from assay.engine.experiment.experiment import Bound, Experiment
from assay.engine.experiment.models import bind_limits
from assay.engine.run.existing import Existing
from assay.engine.run.plan import estimated_tokens, marked
from assay.records import Manifest
from assay.shown import Shown
from assay.store.index import ItemIndex
from assay.tasks.prompt import PromptTask

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
    bound = experiment.bind()
    tasks, samples = bound.tasks, bound.samples
    selection = experiment.selection(tasks)
    shown = {task.name: TaskPlan(task.name, task.model_name) for task in tasks}
    answers = _usual_answers(experiment)
    with experiment.trial_store() as trial:
        experiment.ingest(trial)
        experiment.preflight(bound, trial)
        items = ItemIndex(trial.log("dataset", experiment.id))

        def planned() -> Iterator[tuple[bytes, bool]]:
            for cell, selected in marked(tasks, items, samples, selection):
                if selected:
                    task = shown[cell.task.name]
                    task.cells += 1
                    task.prompt_tokens += estimated_tokens(cell.work)
                    task.answer_tokens += answers.get(cell.task.model_name, UNKNOWN_ANSWER)
                yield cell.key, selected

        existing = Existing(experiment.store, "run", experiment.id)
        found = existing.compare(
            planned(),
            retry_errors=experiment.options.retry_errors,
            fresh=not experiment.config.resume,
        )
        if found is None:
            for _ in planned():
                pass
    counted = list(shown.values())
    selected = sum(task.cells for task in counted)
    missing = selected if found is None else found.missing()
    share = missing / selected if selected else 0.0
    inside = list(_inside(experiment, bound, counted, share))
    return Plan(
        folder=experiment.config.output_dir,
        items=len(items),
        samples=samples,
        planned=len(items) * len(tasks) * samples,
        selected=selected,
        present=selected - missing,
        missing=missing,
        retried=found.retried if found else 0,
        stale=found.stale if found else 0,
        returning=found.returning if found else 0,
        prompt_tokens=round(share * sum(task.prompt_tokens for task in counted)),
        answer_tokens=round(share * sum(task.answer_tokens for task in counted)),
        usd=_usd(experiment, counted, share, inside),
        seconds=_seconds(experiment, counted, share),
        tasks=[task for task in counted if task.cells],
        calls=inside,
        warnings=preflight.warnings(bound.metrics, samples),
    )


def _usual_answers(experiment: Experiment) -> dict[str, int]:
    """Tokens of an answer by model: what the config allows, else what earlier answers had."""
    run = experiment.manifest("run")
    usual: dict[str, int] = {}
    for model, used in (run.metadata.get(USAGE, {}) if run is not None else {}).items():
        if used["responses"]:
            usual[model] = round(used["completion_tokens"] / used["responses"])
    for model in experiment.config.models:
        limit = {**experiment.config.sample_params, **model.inference}.get("max_tokens")
        if isinstance(limit, int) and limit > 0:
            usual[model.name] = min(limit, usual.get(model.name, limit))
    return usual


def _inside(
    experiment: Experiment, bound: Bound, tasks: list[TaskPlan], share: float
) -> Iterator[CallPlan]:
    """What judges would be asked about the missing responses, and what tasks that ask by themselves would: at the rate
    of the last run, else one call of each judge for each response."""
    cells = round(share * sum(task.cells for task in tasks))
    shown = round(share * sum(task.prompt_tokens + task.answer_tokens for task in tasks))
    asking = [task for task in bound.tasks if not isinstance(task, PromptTask)]
    run = experiment.manifest("run")
    for task in asking if experiment.config.models else ():
        as_before = _as_before(run, task.name, cells, len(bound.tasks))
        yield from as_before or ([CallPlan(task.name, "", None)] if run is None else [])
    evaluation = experiment.manifest("evaluation")
    for scorer in bound.scorers:
        as_before = _as_before(evaluation, scorer.name, cells, len(bound.scorers))
        yield from as_before
        for model in () if as_before else scorer.judges:
            repeats = scorer.params.get("repeats", 1) * (
                2 if scorer.of_several and scorer.both_seats else 1
            )
            tokens = shown + cells * JUDGE_PROMPT
            yield CallPlan(
                scorer.name,
                model,
                cells * repeats,
                tokens * repeats,
                cells * repeats * UNKNOWN_ANSWER,
            )


def _as_before(manifest: Manifest | None, owner: str, cells: int, owners: int) -> list[CallPlan]:
    """As many calls for a row as the owner's rows had so far."""
    models = manifest.metadata.get(CALLS, {}).get(owner, {}) if manifest is not None else {}
    rows = sum(manifest.counts.values()) / owners if manifest is not None else 0
    each = cells / rows if rows else 0.0
    return [
        CallPlan(
            owner,
            model,
            *(
                round(each * used[name])
                for name in ("responses", "prompt_tokens", "completion_tokens")
            ),
        )
        for model, used in models.items()
    ]


def _usd(
    experiment: Experiment, tasks: list[TaskPlan], share: float, calls: Sequence[CallPlan] = ()
) -> float | None:
    prices = {name: limits.price for name, limits in bind_limits(experiment.config).items()}
    total = 0.0
    own = [CallPlan(task.name, task.model, *msgspec.structs.astuple(task)[2:]) for task in tasks]
    for part, asked in ((1.0, calls), (share, own)):
        for call in asked:
            price = prices.get(call.model)
            if call.calls is None or (call.calls and price is None):
                return None
            if price is not None:
                total += part * price.cost(call.prompt_tokens, call.answer_tokens)
    return total


def _seconds(experiment: Experiment, tasks: list[TaskPlan], share: float) -> float | None:
    """At the rate of the last run; limits per minute make it longer."""
    run = experiment.manifest("run")
    rate = run.metadata.get("rate") if run is not None else None
    cells = share * sum(task.cells for task in tasks)
    seconds = [cells / rate] if rate else []
    for name, limits in bind_limits(experiment.config).items():
        own = [task for task in tasks if task.model == name]
        if limits.requests_per_minute:
            requests = sum(task.cells for task in own)
            seconds.append(60 * share * requests / limits.requests_per_minute)
        if limits.tokens_per_minute:
            tokens = sum(task.prompt_tokens + task.answer_tokens for task in own)
            seconds.append(60 * share * tokens / limits.tokens_per_minute)
    return max(seconds, default=None)
