"""The samples of one task as cases: a line for each document and filter becomes a document with its answer once, and the
values of each filter. What the harness writes as text (log-probabilities, targets) is what it was again."""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from assay import reading
from assay.engine.experiment.foreign import REST, Case, Rest
from assay.formats.lm_eval.logs.asked import Asking
from assay.formats.lm_eval.logs.files import Part, is_number
from assay.formats.lm_eval.logs.values import Values
from assay.formats.lm_eval.scorer import label as label_of
from assay.records import Evaluation, Response, tolerant_json
from assay.store.keys import digest
from assay.store.keyset import Seen

PROMPT = "benchmark"  # the name of the prompt that `assay run TASK` uses
INVALID = "[invalid]"  # what the harness's filters give for an answer in which they find nothing
SCORER = "lm_eval"
_LONGEST_LIST = 10_000  # characters of a target that is read as a list
_EMPTY = Raw(b"null")


class Arguments(msgspec.Struct, gc=False):
    """What was asked once: a prompt, and either settings of a generation or a continuation."""

    arg_0: Any
    arg_1: Raw = _EMPTY
    arg_2: Raw = _EMPTY


class Sample(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line; its subclasses have the task's metrics as fields."""

    doc_id: int
    doc: Raw
    arguments: dict[str, Arguments]
    resps: list[list[Any]]
    filtered_resps: list[Any]
    target: Any = ""
    filter: str = "none"
    metrics: list[str] = []
    doc_hash: str = ""
    prompt_hash: str = ""
    target_hash: str = ""


_FIXED = {*Sample.__struct_fields__}


class _Shape:
    """How lines with these metrics are read."""

    def __init__(self, metrics: tuple[str, ...]) -> None:
        own = [name for name in dict.fromkeys(metrics) if name not in _FIXED]
        fields: list[tuple[str, Any, Any]] = [(f"value_{at}", Any, UNSET) for at in range(len(own))]
        names = {f"value_{at}": name for at, name in enumerate(own)}
        self.kind = msgspec.defstruct(
            "Line", fields, bases=(Sample,), rename=names, forbid_unknown_fields=True, gc=False
        )
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(self.kind).decode
        self.names = own
        self.metrics = list(metrics)
        self.fields = [field for field, _, _ in fields]


class Task(NamedTuple):
    """What all rows of a task have in common."""

    name: str
    benchmark: str
    model: str
    timestamp: float
    config: Mapping[str, Any]
    request: str


class Samples:
    """A samples file, streamed. `rejected` lines and other odd things are counted on the way."""

    def __init__(self, part: Part, task: Task, rest: Rest) -> None:
        self.part = part
        self.task = task
        self.values = Values(task.config)
        self.rejected: list[str] = []
        self.empty = 0
        self._rest = rest
        self._asking = Asking(task.config)
        self._shape = _Shape(())
        self._answered, self._scored = Seen(), Seen()
        self._place = digest("lm_eval", task.model.encode(), task.name.encode())
        facets: dict[str, Any] = {"model_id": task.model, "prompt_template": PROMPT, "sampling": {}}
        self._metadata = {**facets, "benchmark": task.benchmark}
        self._item_metadata = {"benchmark": task.benchmark, "task": task.name, "request": task.request}
        self._labels: dict[tuple[str, str], str] = {}

    def cases(self) -> Iterator[Case]:
        with reading.opened(self.part.file) as file:
            for number, line in enumerate(file, 1):
                read = self._read(line)
                if read is not None:
                    case = self._case(*read)
                    if case is not None:
                        yield case
                        continue
                elif not line.strip():
                    continue
                self.rejected.append(f"{self.part.file.name}:{number}")

    def _read(self, line: bytes) -> tuple[Any, dict[str, Any] | None] | None:
        """The line, and fields that are not the harness's; None for what is not a sample."""
        try:
            sample = self._shape.decode(line)
            if sample.metrics == self._shape.metrics:
                return sample, None
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        return self._read_slowly(line)

    def _read_slowly(self, line: bytes) -> tuple[Any, dict[str, Any] | None] | None:
        """A line with other metrics than the last one, unknown fields, or numbers that JSON has not."""
        try:
            fields: Any = tolerant_json(line)
            if not isinstance(fields, dict) or not isinstance(fields.get("metrics", []), list):
                return None
            metrics = fields.get("metrics")
            if metrics is None:  # before 0.4.4
                metrics = [name for name, value in fields.items() if name not in _FIXED and is_number(value)]
                fields["metrics"] = metrics
            if tuple(metrics) != tuple(self._shape.metrics):
                self._shape = _Shape(tuple(map(str, metrics)))
            known = {*_FIXED, *self._shape.names}
            rest = self._rest.of(fields, known, known)
            content = {name: value for name, value in fields.items() if name in known}
            content["doc"] = Raw(msgspec.json.encode(fields.get("doc")))
            arguments = content.get("arguments")
            if isinstance(arguments, dict):
                content["arguments"] = {name: _arguments(each) for name, each in arguments.items()}
            return msgspec.convert(content, self._shape.kind), rest
        except (ValueError, TypeError, msgspec.MsgspecError):
            return None

    def _case(self, sample: Any, rest: dict[str, Any] | None) -> Case | None:
        """None: the same document has been read with this filter."""
        place = b"%d" % sample.doc_id
        key = digest("row", self._place, place, sample.doc_hash.encode(), sample.prompt_hash.encode())
        scored = digest("label", key, sample.filter.encode())
        if not self._scored.add(int.from_bytes(scored[:8], "big")):
            return None
        id = f"{self.task.name}/{sample.doc_id}"
        evaluations = self._evaluations(sample, id, key.hex(), scored.hex())
        if not self._answered.add(int.from_bytes(key[:8], "big")):
            return Case(None, None, evaluations)
        item, response = self._item_and_response(sample, id, key.hex(), rest)
        return Case(item, response, evaluations)

    def _item_and_response(
        self, sample: Any, id: str, key: str, rest: dict[str, Any] | None
    ) -> tuple[dict[str, Any], Response]:
        asked = self._asking.of(sample)
        hashes = {"doc_hash": sample.doc_hash, "prompt_hash": sample.prompt_hash, "target_hash": sample.target_hash}
        source = {**hashes, **(rest or {}), **asked.more}
        data = {"question": asked.question, "doc": sample.doc, "requests": asked.requests, "choices": asked.choices}
        target = self._target(sample.target, asked.target)
        metadata = {**self._item_metadata, "document": sample.doc_id}
        if isinstance(target, list):
            metadata["multiple_target"] = True
        item = {"id": id, "data": data, "ground_truth": target, "metadata": metadata}
        if not asked.text and not asked.is_likelihood:
            self.empty += 1
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
        return item, response

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

    def _evaluations(self, sample: Any, id: str, answered: str, key: str) -> list[Evaluation]:
        filtered = sample.filtered_resps
        details: dict[str, Any] = {}
        invalid = False
        if filtered and isinstance(filtered[0], str) and self._asking.generates:
            details = {"filtered": filtered[0] if len(filtered) == 1 else filtered}
            invalid = all(answer == INVALID for answer in filtered)
        rows: list[Evaluation] = []
        count = len(self._shape.names)
        for at, name in enumerate(self._shape.names):
            value = getattr(sample, self._shape.fields[at])
            if value is UNSET:
                continue
            label = self._label(name, sample.filter)
            number = float(value) if isinstance(value, (int, float)) and abs(value) < float("inf") else None
            unparsed = invalid and number == 0
            self.values.add(label, name, value, number)
            row = Evaluation(
                item_id=id,
                sample_id=f"{id}_sample_0",
                label=label,
                model_name=self.task.model,
                passed=None if number is None else number > 0,
                score=number,
                detailed_results=details,
                timestamp=self.task.timestamp,
                metadata=self._metadata,
                key=key,
                part=(at, count),
                responses=[answered],
                scorer=SCORER,
                outcome="unparsed" if unparsed else "scored",
                value=value if number is None else None,
            )
            rows.append(row)
        return rows

    def _label(self, metric: str, pipeline: str) -> str:
        label = self._labels.get((metric, pipeline))
        if label is None:
            label = self._labels[metric, pipeline] = label_of(metric, pipeline)
        return label


def _arguments(value: Any) -> Any:
    """Arguments whose later parts are JSON text, as a line's are."""
    if not isinstance(value, dict):
        return value
    return {name: part if name == "arg_0" else Raw(msgspec.json.encode(part)) for name, part in value.items()}
