"""The results of lm-evaluation-harness: what its runs of one model left in a folder is one experiment, in rows like
those that `assay run` makes of the same tasks."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from assay.foreign import Foreign, ForeignCase, Headline, without_secrets
from assay.formats.lm_eval.logs.files import (
    BY_TASK,
    FACTS,
    LogExperiment,
    TaskSamples,
    experiments_at,
)
from assay.readers._results import FileResults
from assay.sdk import JsonObject, UserError, number_of, reader

if TYPE_CHECKING:
    from assay.formats.lm_eval.logs.samples import LoggedTask, Samples

_LONGEST_NAME = 60
_MOST_NAMED = 5
_MOST_CONFIG = 1 << 16  # bytes of the tasks' definitions that a manifest keeps whole
_SHORT_CONFIG = (
    "output_type",
    "num_fewshot",
    "repeats",
    "metric_list",
    "dataset_path",
    "dataset_name",
    "test_split",
)


@reader(name="lm_eval")
def lm_eval(path: Path) -> list[Foreign]:
    """A folder that lm-eval wrote with --output_path and --log_samples, or one of its files."""
    experiments, broken = experiments_at(path)
    return [HarnessLog(experiment, broken) for experiment in experiments]


class HarnessLog(FileResults):
    """One model's tasks, streamed file by file."""

    format = "lm_eval"
    said = {
        "empty": "{:,} answers are empty: lm-eval keeps neither refusals nor why an answer ended"
    }

    def __init__(self, experiment: LogExperiment, broken: list[Path]) -> None:
        self.experiment = experiment
        parts = experiment.parts.values()
        files = [part.file for part in parts] + [report.file for report in experiment.reports]
        super().__init__(_name(experiment), *sorted(files))
        self._broken = [file for file in broken if file.parent == experiment.folder]
        sizes = [part.report.size(part.task) or 0 for part in parts if part.report]
        self.planned = sum(sizes) if len(sizes) == len(parts) else None

    def begin(self) -> None:
        super().begin()
        self._read: dict[str, Samples] = {}

    @property
    def facts(self) -> JsonObject:
        """Return what the newest results file says of the model and the run, and each task's own of the task."""
        experiment = self.experiment
        facts: JsonObject = {
            "read_from": ["lm-evaluation-harness"],
            "agents": [experiment.model],
        }
        if experiment.reports:
            newest = experiment.reports[-1]
            told = {name: newest.content.get(name) for name in FACTS}
            facts |= {name: value for name, value in told.items() if value not in (None, "")}
            facts["config"] = without_secrets(_settings(newest.part("config")))
            facts |= {name: newest.content[name] for name in newest.unknown}
        for name in BY_TASK:
            by_task: JsonObject = {}
            for report in experiment.reports:
                by_task |= report.part(name)
            facts[name] = by_task
        facts["configs"] = without_secrets(_configs(experiment))
        return facts

    @property
    def rejected(self) -> int:
        return len(self._broken) + sum(len(samples.rejected) for samples in self._read.values())

    def cases(self) -> Iterator[ForeignCase]:
        from assay.formats.lm_eval.logs.samples import Samples

        self.begin()
        if not self.experiment.parts:
            tasks = ", ".join(sorted(self.experiment.without_samples())[:5])
            raise UserError(
                f"lm-eval wrote no samples of {tasks or 'these tasks'}: there are numbers, and no answers",
                where=str(self.experiment.folder),
                fix="run lm_eval with --log_samples; its numbers are in the results file",
            )
        for part in self.experiment.parts.values():
            samples = self._read[part.task] = Samples(part, self._task(part), self.rest, self.odd)
            yield from samples.cases()

    def _task(self, part: TaskSamples) -> "LoggedTask":
        from assay.formats.lm_eval.chosen import mark, modification
        from assay.formats.lm_eval.logs.samples import LoggedTask

        report = part.report
        entry: JsonObject = {"task": part.task}
        changed: JsonObject = {}
        if report is not None:
            limit = report.part("config").get("limit")
            if isinstance(limit, float) and limit.is_integer():
                limit = int(limit)
            changed["limit"] = limit
            changed["system_instruction"] = report.content.get("system_instruction")
            entry["num_fewshot"] = report.part("n-shot").get(part.task)
        date = report.content.get("date") if report else None
        return LoggedTask(
            name=part.task,
            benchmark=part.task + modification({}, changed),
            model=self.experiment.model,
            timestamp=number_of(date) or 0.0,
            config=report.config(part.task) if report else {},
            request=mark(entry),
        )

    def headlines(self) -> list[Headline]:
        from assay.formats.lm_eval.logs.samples import group_headlines

        made: list[Headline] = []
        for task, samples in self._read.items():
            if samples.part.report is not None:
                numbers = samples.part.report.numbers(task)
                made += [
                    samples.values.headline(*number, samples.task.benchmark) for number in numbers
                ]
        values = {task: samples.values for task, samples in self._read.items()}
        newest = {group: report for report in self.experiment.reports for group in report.groups}
        for report in {id(report): report for report in newest.values()}.values():
            again = [
                task for task, samples in self._read.items() if samples.part.report is not report
            ]
            made += group_headlines(report, values, again)
        return made

    def notes(self) -> list[str]:
        experiment = self.experiment
        lines = [place for samples in self._read.values() for place in samples.rejected]
        missing = sorted(experiment.without_samples())
        older = [file.name for file in experiment.older]
        alone = [part.task for part in experiment.parts.values() if part.report is None]
        unknown = sorted({name for report in experiment.reports for name in report.unknown})
        found = [
            (lines, "{:,} lines are not samples, or come twice, the first is {}", 1),
            (
                missing,
                "the newest results of {:,} tasks have no samples and are left out: {}",
                _MOST_NAMED,
            ),
            (older, "{:,} older samples files of the same tasks are left out: {}", 1),
            (
                alone,
                "there is no results file for the samples of {1}: no number to check",
                _MOST_NAMED,
            ),
            (
                unknown,
                "fields of results that were not understood are in the manifest: {1}",
                len(unknown),
            ),
        ]
        notes = [
            f"{file.name} is damaged: what its results said is not there" for file in self._broken
        ]
        for names, text, most in found:
            if names:
                notes.append(text.format(len(names), ", ".join(names[:most])))
        return [*notes, *super().notes()]


def _name(experiment: LogExperiment) -> str:
    """The model, as the harness names its folder, with the outermost groups and the tasks that are in none."""
    tasks = [*experiment.parts] or sorted(experiment.without_samples())
    groups = experiment.reports[-1].groups if experiment.reports else {}
    inside = {child for children in groups.values() for child in children}
    names = [name for name in [*groups, *tasks] if name not in inside]
    named = "-".join(names)
    if len(named) > _LONGEST_NAME:
        named = f"{names[0][:_LONGEST_NAME]}-and-{len(names) - 1}-more"
    return "-".join(filter(None, [experiment.model.replace("/", "__"), named]))


def _settings(config: JsonObject) -> JsonObject:
    """Older versions write arguments as one text, `name=value,…`."""
    given = config.get("model_args")
    if not isinstance(given, str):
        return config
    pairs = [pair.partition("=") for pair in given.split(",")]
    return {**config, "model_args": {name.strip(): value for name, _, value in pairs if name}}


def _configs(experiment: LogExperiment) -> JsonObject:
    """The definitions as they were run; of very long ones what decides about numbers."""
    parts = experiment.parts.values()
    configs = {part.task: part.report.config(part.task) for part in parts if part.report}
    if len(msgspec.json.encode(configs)) <= _MOST_CONFIG:
        return configs
    return {task: _short_config(config) for task, config in configs.items()}


def _short_config(config: JsonObject) -> JsonObject:
    short = {name: config[name] for name in _SHORT_CONFIG if name in config}
    return {**short, "shortened": True}
