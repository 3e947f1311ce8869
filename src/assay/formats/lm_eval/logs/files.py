"""Which files at a path are the harness's, and which of them belong together: a model's tasks, the newest of each."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from assay import reading
from assay.foreign import files_below, head_of, json_row, unknown_version
from assay.sdk import JsonObject, as_object, is_number, list_of, number_of

_RESULTS = re.compile(rb'\s*\{\s*"results"\s*:\s*\{')
_SAMPLES = re.compile(rb'\s*\{\s*"doc_id"\s*:')
_STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$")
NONE = "bypass"  # the metric of --predict_only, which scores nothing
_MOST_BYTES = 1 << 29  # of a results file
_NEWEST = (0, 4)  # the version whose files are understood
FACTS = (  # of a run, as a manifest keeps them
    "lm_eval_version",
    "git_hash",
    "transformers_version",
    "model_source",
    "system_instruction",
    "chat_template",
    "fewshot_as_multiturn",
    "total_evaluation_time_seconds",
    "date",
    "pretty_env_info",
    "max_length",
)
BY_TASK = ("versions", "n-shot", "higher_is_better", "n-samples", "task_hashes", "group_subtasks")
_KNOWN = {
    *FACTS,
    *BY_TASK,
    "results",
    "groups",
    "configs",
    "config",
    "upper_git_hash",
    "model_name",
    "model_name_sanitized",
    "system_instruction_sha",
    "chat_template_sha",
    "tokenizer_pad_token",
    "tokenizer_eos_token",
    "tokenizer_bos_token",
    "eot_token_id",
    "start_time",
    "end_time",
    "samples",
    "model_name_or_path",
}


class TaskReport:
    """A results file. Its parts are asked for by name; one that is not an object is empty."""

    def __init__(self, file: Path, content: JsonObject) -> None:
        self.file = file
        self.content = content
        self.stamp = stamp_of(file)
        self.results = self.part("results")
        self.groups: dict[str, list[str]] = {
            name: [*map(str, children)]
            for name, given in self.part("group_subtasks").items()
            if (children := list_of(given))
        }

    def part(self, name: str) -> JsonObject:
        return as_object(self.content.get(name))

    def config(self, task: str) -> JsonObject:
        """Return the definition of a task, as it was run."""
        return as_object(self.part("configs").get(task))

    def numbers(self, name: str) -> Iterator[tuple[str, str, float | None, float | None]]:
        """Yield (metric, filter, value, standard error) of a task or a group."""
        entry = as_object(self.results.get(name)) or as_object(self.part("groups").get(name))
        for key, value in entry.items():
            metric, comma, pipeline = key.partition(",")
            if comma and metric != NONE and not metric.endswith("_stderr") and is_number(value):
                error = entry.get(f"{metric}_stderr,{pipeline}")
                yield metric, pipeline, number_of(value), number_of(error)

    def size(self, task: str) -> int | None:
        """Return how many documents were evaluated; None where nothing says it."""
        for place, name in ((self.part("n-samples"), "effective"), (self.results, "sample_len")):
            size = as_object(place.get(task)).get(name)
            if isinstance(size, int):
                return size
        return None

    def leaves(self, group: str) -> list[str]:
        """Return the tasks of a group and of the groups inside, each once."""
        waiting, seen, tasks = [group], {group}, list[str]()
        while waiting:
            name = waiting.pop()
            if name not in self.groups:
                tasks.append(name)
            for child in self.groups.get(name, ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
        return tasks

    @property
    def model(self) -> str:
        return str(
            self.content.get("model_name")
            or self.part("config").get("model")
            or self.file.parent.name
        )

    @property
    def unknown(self) -> list[str]:
        return sorted(self.content.keys() - _KNOWN)


class TaskSamples(NamedTuple):
    """The samples of a task, and the results file of the same run."""

    task: str
    file: Path
    report: TaskReport | None


class LogExperiment:
    """What a model's runs in one folder left: of each task the newest samples."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.model = model
        self.parts: dict[str, TaskSamples] = {}
        self.reports: list[TaskReport] = []
        self.older: list[Path] = []

    def add(self, part: TaskSamples) -> None:
        """Parts come in the order of their time stamps."""
        if part.task in self.parts:
            self.older.append(self.parts[part.task].file)
        self.parts[part.task] = part

    def without_samples(self) -> dict[str, TaskReport]:
        """Return tasks whose newest results have no samples file, with those results."""
        missing: dict[str, TaskReport] = {}
        for report in self.reports:
            for task in report.results.keys() - report.groups.keys():
                part = self.parts.get(task)
                if part is None or part.report is None or part.report.stamp < report.stamp:
                    missing[task] = report
        return missing


def experiments_at(path: Path) -> tuple[list[LogExperiment], list[Path]]:
    """Return the experiments, and files that begin like results but cannot be read."""
    files = [*_candidates(path)]
    samples = [file for file in files if _is_samples(head_of(file))]
    reports: list[TaskReport] = []
    broken: list[Path] = []
    for file in files:
        if not _is_report(head_of(file)):
            continue
        content = _content(file)
        if content is None:
            broken.append(file)
        elif {"configs", "versions"} & content.keys():
            reports.append(TaskReport(file, content))
    if path.is_file() and path not in [*samples, *broken, *(report.file for report in reports)]:
        return [], []
    for report in reports:
        _check_version(report)
    return _experiments(reports, samples), broken


def _is_samples(head: bytes) -> bool:
    has_answers = b'"resps"' in head or b"\n" not in head
    return _SAMPLES.match(head) is not None and b'"doc"' in head and has_answers


def _is_report(head: bytes) -> bool:
    return _RESULTS.match(head) is not None and (b'"alias"' in head or b',none"' in head)


def _candidates(path: Path) -> Iterable[Path]:
    """Return the files at a path; of a single file, also those of the same run beside it."""
    if not path.is_file():
        return files_below(path, ".json", ".jsonl")
    head = head_of(path)
    stamp = stamp_of(path) if _SAMPLES.match(head) or _RESULTS.match(head) else ""
    if not stamp:
        return [path]
    wanted = ".json" if _SAMPLES.match(head) else ".jsonl"
    ending = f"_{stamp}{wanted}"
    try:
        beside = sorted(name for name in os.listdir(path.parent) if name.endswith(ending))
    except OSError:
        beside = []
    return [path, *(path.parent / name for name in beside)]


def _experiments(reports: list[TaskReport], samples: list[Path]) -> list[LogExperiment]:
    experiments: dict[tuple[Path, str], LogExperiment] = {}

    def experiment(folder: Path, model: str) -> LogExperiment:
        return experiments.setdefault((folder, model), LogExperiment(folder, model))

    reports = sorted(reports, key=lambda report: (report.stamp, str(report.file)))
    for report in reports:
        experiment(report.file.parent, report.model).reports.append(report)
    for file in sorted(samples, key=lambda file: (stamp_of(file), str(file))):
        near = [report for report in reports if report.file.parent == file.parent]
        part = _task_samples(file, near)
        models = {report.model for report in near}
        model = models.pop() if len(models) == 1 else file.parent.resolve().name
        experiment(file.parent, part.report.model if part.report else model).add(part)
    return list(experiments.values())


def _task_samples(file: Path, near: list[TaskReport]) -> TaskSamples:
    """Return the samples of a task with the newest results of the same run, of those beside them."""
    stamp = stamp_of(file)
    task = file.stem.removesuffix(f"_{stamp}" if stamp else "").removeprefix("samples_")
    own = [report for report in near if stamp in ("", report.stamp) and task in report.results]
    return TaskSamples(task, file, own[-1] if own else None)


def _content(file: Path) -> JsonObject | None:
    try:
        return json_row(reading.content(file)) if file.stat().st_size <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def _check_version(report: TaskReport) -> None:
    version = report.content.get("lm_eval_version")
    numbers = re.match(r"(\d{1,6})\.(\d{1,6})", version) if isinstance(version, str) else None
    if numbers and (int(numbers[1]), int(numbers[2])) > _NEWEST:
        raise unknown_version(
            "a results file of lm-evaluation-harness", version, report.file, report.unknown
        )


def stamp_of(file: Path) -> str:
    match = _STAMP.search(file.stem)
    return match[1] if match else ""
