"""The samples of one task as cases: of a line for each document and filter, a document with its answer comes once, and
the values of each filter. What the harness writes as text (log-probabilities, targets) is what it was again."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from assay import reading
from assay.foreign import REST, ForeignCase, Headline, Rest, json_row
from assay.formats.lm_eval.logs.asked import FIXED, AskedDocument, LoggedAsking, Shape, arguments_of
from assay.formats.lm_eval.logs.files import NONE, TaskReport, TaskSamples
from assay.formats.lm_eval.scorer import label as label_of
from assay.formats.lm_eval.scoring.aggregations import AGGREGATIONS as FUNCTIONS
from assay.formats.lm_eval.scoring.groups import TaskNumbers
from assay.formats.lm_eval.scoring.measures import AGGREGATIONS as NAMES
from assay.sdk import Evaluation, JsonObject, Response, digest, is_number, number_of, rows_of
from assay.store.keyset import Seen

_MOST_KEPT = 50_000
_CLOSE = 1e-9
_OF_TASK = "it is aggregated by a function of the task, which a log does not have"
_AGAIN = "some of its tasks were run again later"


class LoggedValues:
    """The values of one task, by label."""

    def __init__(self, config: JsonObject) -> None:
        entries = rows_of(config.get("metric_list"))
        self._chosen = {str(entry.get("metric")): entry.get("aggregation") for entry in entries}
        self.sums: dict[str, list[Any]] = {}
        self._kept: dict[str, list[Any]] = {}

    def aggregation(self, metric: str) -> str:
        """Its name; for a function of the task, its text."""
        return str(self._chosen.get(metric) or NAMES.get(metric, "mean"))

    def add(self, label: str, metric: str, value: Any, number: float | None) -> None:
        entry = self.sums.get(label)
        if entry is None:
            entry = self.sums[label] = [0, 0.0, self.aggregation(metric) == "mean"]
        entry[0] += 1
        if entry[2] and number is not None:
            entry[1] += number
        elif entry[0] <= _MOST_KEPT:
            self._kept.setdefault(label, []).append(value)

    def mean(self, label: str) -> float | None:
        entry = self.sums.get(label)
        return entry[1] / entry[0] if entry and entry[2] and label not in self._kept else None

    def headline(
        self, metric: str, pipeline: str, value: float | None, stderr: float | None, name: str
    ) -> Headline:
        """A mean is computed from the rows; what is not, here."""
        label = label_of(metric, pipeline)
        aggregation = self.aggregation(metric)
        shown = aggregation if aggregation in FUNCTIONS else "its own"
        made = Headline(
            label=label, metric=shown, value=value, stderr=stderr, where={"benchmark": name}
        )
        count, _, is_mean = self.sums.get(label, (0, 0.0, True))
        if not count:
            made.reason = "no sample has such a value"
        elif is_mean and label not in self._kept:
            made.failed_as = 0.0
        elif count > _MOST_KEPT:
            made.reason = (
                f"there are more than {_MOST_KEPT:,} values, too many to aggregate them here"
            )
        else:
            made.ours, made.reason = self._aggregate(metric, label)
        return made

    def _aggregate(self, metric: str, label: str) -> tuple[float | None, str]:
        function = FUNCTIONS.get(self.aggregation(metric))
        if function is None:
            return None, _OF_TASK
        try:
            return float(function(self._kept[label])), ""
        except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
            return None, f"it cannot be computed from what the log has of its values ({error})"[
                :200
            ]


def group_headlines(
    report: TaskReport, values: Mapping[str, LoggedValues], again: Sequence[str]
) -> list[Headline]:
    """The numbers of groups: the means of their tasks' numbers, by size or of all alike, whichever the harness took; a
    log does not say. `again`: tasks whose rows are of a later run."""
    made: list[Headline] = []
    for group in report.groups:
        tasks = [task for task in report.leaves(group) if task in values]
        for metric, pipeline, value, stderr in report.numbers(group):
            label = label_of(metric, pipeline)
            what = f"mean of {len(tasks)} tasks"
            headline = Headline(
                label=label, metric=what, value=value, stderr=stderr, where={"benchmark": group}
            )
            parts = [
                TaskNumbers(size=report.size(task) or 0, values={(metric, pipeline): number})
                for task in tasks
                if (number := values[task].mean(label)) is not None
            ]
            if not parts or {*tasks} & {*again}:
                headline.reason = _AGAIN if parts else "none of its tasks has samples with a mean"
            else:
                headline.ours = _group_mean(parts, (metric, pipeline), value)
            made.append(headline)
    return made


def _group_mean(parts: Sequence[TaskNumbers], key: tuple[str, str], theirs: float | None) -> float:
    numbers = [part.values[key] for part in parts]
    plain = sum(numbers) / len(numbers)
    size = sum(part.size for part in parts)
    weighted = sum(part.values[key] * part.size for part in parts) / size if size else plain
    return plain if theirs is not None and abs(plain - theirs) <= _CLOSE else weighted


PROMPT = "benchmark"  # the name of the prompt that `assay run TASK` uses
INVALID = "[invalid]"  # what the harness's filters give for an answer in which they find nothing
SCORER = "lm_eval"
_KEY = (1 << 64) - 1
_LONGEST_LIST = 10_000  # characters of a target that is read as a list


class LoggedTask(NamedTuple):
    """What all rows of a task have in common."""

    name: str
    benchmark: str
    model: str
    timestamp: float
    config: JsonObject
    request: str


class _Pipeline:
    """One filter: its labels, and the documents that have been read with it."""

    def __init__(self, name: str, place: bytes, shape: Shape, documents: Seen) -> None:
        self.name = name
        self.mark = digest("filter", place, name.encode()).hex()[:12]
        self.labels = [
            (field, metric, label_of(metric, name))
            for field, metric in shape.columns
            if metric != NONE
        ]
        self.documents = documents


class Samples:
    """A samples file, streamed. `rejected` lines and other odd things are counted on the way."""

    def __init__(self, part: TaskSamples, task: LoggedTask, rest: Rest, odd: Counter[str]) -> None:
        self.part = part
        self.task = task
        self.values = LoggedValues(task.config)
        self.rejected: list[str] = []
        self._rest, self._odd = rest, odd
        self._asking = LoggedAsking(task.config)
        self._shape = Shape(())
        self._answered = Seen()
        self._pipelines: dict[str, _Pipeline] = {}
        self._place = digest("lm_eval", task.model.encode(), task.name.encode())
        facets: JsonObject = {"model_id": task.model, "prompt_template": PROMPT, "sampling": {}}
        self._metadata = {**facets, "benchmark": task.benchmark}
        self._item_metadata = {
            "benchmark": task.benchmark,
            "task": task.name,
            "request": task.request,
        }

    def cases(self) -> Iterator[ForeignCase]:
        """A document comes with its answer and the values of the first filter; other filters' values follow."""
        with reading.opened(self.part.file) as file:
            for number, line in enumerate(file, 1):
                shape, more = self._shape, None
                try:
                    sample = shape.decode(line)
                    is_known = sample.metrics == shape.metrics and (
                        line.isascii() or bool(line.decode())
                    )
                except (ValueError, RecursionError):
                    sample, is_known = None, False
                if not is_known:
                    sample, more = self._read_slowly(line)
                case = None if sample is None else self._case(sample, more)
                if case is not None:
                    yield case
                elif line.strip():
                    self.rejected.append(f"{self.part.file.name}:{number}")

    def _read_slowly(self, line: bytes) -> tuple[Any, JsonObject | None]:
        """A line with other metrics than the last one, unknown fields, or numbers that JSON has not; None for what is
        not a sample."""
        try:
            fields = json_row(line)
            metrics = fields.get("metrics")
            if metrics is None:  # before 0.4.4
                metrics = [
                    name for name, value in fields.items() if name not in FIXED and is_number(value)
                ]
                fields["metrics"] = metrics
            if metrics != self._shape.metrics:
                self._shape = Shape([str(name) for name in metrics])
                self._pipelines = {
                    name: _Pipeline(name, self._place, self._shape, pipeline.documents)
                    for name, pipeline in self._pipelines.items()
                }
            known = self._shape.known
            more = self._rest.of(fields, known, known)
            content = {name: value for name, value in fields.items() if name in known}
            content.setdefault("doc", None)
            content["arguments"] = {
                name: arguments_of(each) for name, each in fields["arguments"].items()
            }
            return msgspec.convert(content, self._shape.kind), more
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None, None

    def _case(self, sample: Any, more: JsonObject | None) -> ForeignCase | None:
        """The case; None if its document has been read with this filter."""
        number, name = sample.doc_id, sample.filter
        pipeline = self._pipelines.get(name)
        if pipeline is None:
            pipeline = _Pipeline(name, self._place, self._shape, Seen())
            self._pipelines[name] = pipeline
        if not pipeline.documents.add(number & _KEY):
            return None
        id = f"{self.task.name}/{number}"
        hashed = b"%b%d %b" % (self._place, number, sample.prompt_hash.encode())
        key = blake2b(hashed, digest_size=16).hexdigest()
        evaluations = self._evaluations(sample, pipeline, id, key)
        if not self._answered.add(number & _KEY):
            return ForeignCase(None, None, evaluations)
        item, response = self._item_and_response(sample, id, key, more)
        return ForeignCase(item, response, evaluations)

    def _item_and_response(
        self, sample: Any, id: str, key: str, rest: JsonObject | None
    ) -> tuple[JsonObject, Response]:
        asked = self._asking.of(sample)
        hashes = ("doc_hash", "prompt_hash", "target_hash")
        source: JsonObject = {name: getattr(sample, name) for name in hashes}
        source |= {**(rest or {}), **asked.more}
        self._odd["empty"] += not asked.text and not asked.is_likelihood
        response = Response(
            item_id=id,
            sample_id=f"{id}_sample_0",
            model_name=self.task.model,
            prompt=asked.prompt,
            response=asked.text,
            timestamp=self.task.timestamp,
            metadata={**self._metadata, REST: source},
            key=key,
            task=f"{self.task.model}/{PROMPT}",
            output=asked.output,
            messages=asked.messages,
        )
        return self._item(sample, id, asked), response

    def _item(self, sample: Any, id: str, asked: AskedDocument) -> JsonObject:
        data = {
            "question": asked.question,
            "doc": sample.doc,
            "requests": asked.requests,
            "choices": asked.choices,
        }
        target = self._target(sample.target, asked.target)
        metadata = {**self._item_metadata, "document": sample.doc_id}
        if isinstance(target, list):
            metadata["multiple_target"] = True
        return {"id": id, "data": data, "ground_truth": target, "metadata": metadata}

    def _target(self, text: Any, column: Any) -> Any:
        """doc_to_target's value, of which the log has the text."""
        if column is not None and str(column) == text:
            return column
        if not isinstance(text, str):
            return text
        if self._asking.has_choices and text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        if text[:1] == "[" and text[-1:] == "]" and len(text) <= _LONGEST_LIST:
            try:
                return ast.literal_eval(text)
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                return text
        return text

    def _evaluations(
        self, sample: Any, pipeline: _Pipeline, id: str, answered: str
    ) -> list[Evaluation]:
        filtered = sample.filtered_resps
        details: JsonObject = {}
        invalid = False
        if filtered and type(filtered[0]) is str and self._asking.generates:
            invalid = filtered[0] == INVALID and filtered.count(INVALID) == len(filtered)
            details = {"filtered": filtered[0] if len(filtered) == 1 else filtered}
        rows: list[Evaluation] = []
        key, count = answered[:20] + pipeline.mark, len(pipeline.labels)
        for at, (field, metric, label) in enumerate(pipeline.labels):
            value = getattr(sample, field)
            if value is UNSET:
                continue
            number = number_of(value)
            self.values.add(label, metric, value, number)
            row = self._evaluation(id, answered, label, value, number)
            row.detailed_results, row.key, row.part = details, key, (at, count)
            if invalid and number == 0:
                row.outcome = "unparsed"
            rows.append(row)
        return rows

    def _evaluation(
        self, id: str, answered: str, label: str, value: Any, number: float | None
    ) -> Evaluation:
        return Evaluation(
            item_id=id,
            sample_id=f"{id}_sample_0",
            label=label,
            model_name=self.task.model,
            passed=None if number is None else number > 0,
            score=number,
            timestamp=self.task.timestamp,
            metadata=self._metadata,
            responses=[answered],
            scorer=SCORER,
            value=value if number is None else None,
        )
