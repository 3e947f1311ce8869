"""A log of OpenAI evals as items, answers and labels: a sample with its events is one case."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from assay import reading
from assay.foreign import (
    REST,
    Foreign,
    ForeignCase,
    Headline,
    content_id,
    evaluation_of,
    failure,
    files_below,
    head_of,
    json_row,
    key_of,
    seconds_of,
    without_secrets,
)
from assay.readers._results import FileResults, first_filled, response_of, without_empty
from assay.sdk import (
    Evaluation,
    JsonObject,
    Response,
    as_object,
    id_hash,
    list_of,
    number_of,
    reader,
)
from assay.store.table.columns import Growing
from assay.store.table.decode import row_decoder
from assay.store.table.join import group_rows

_FIRST = b'{"spec"'
_NAMED = "metrics"


class _Line(msgspec.Struct, gc=False):
    """What the first pass looks at."""

    sample_id: str | None = None
    type: str = ""
    final_report: Any = msgspec.UNSET
    spec: Any = msgspec.UNSET


class LoggedEvent(NamedTuple):
    """An event of a sample; `rest` has fields that no version of evals writes."""

    type: str
    data: JsonObject
    created_at: str
    rest: JsonObject


_FIELDS = {"run_id", "event_id", "sample_id", "type", "data", "created_by", "created_at"}


def _event(file: IO[bytes], offset: int) -> tuple[str, LoggedEvent] | None:
    if file.tell() != offset:
        file.seek(offset)
    try:
        row = json_row(file.readline())
    except (ValueError, RecursionError):
        return None  # the file has changed meanwhile
    data = row.get("data")
    event = LoggedEvent(
        str(row.get("type")),
        data if isinstance(data, dict) else {"data": data},
        str(row.get("created_at", "")),
        {name: value for name, value in row.items() if name not in _FIELDS},
    )
    return str(row.get("sample_id")), event


def spec_in(head: bytes) -> JsonObject | None:
    """The run that a file says it is a log of; None for other files. A first line beyond the head is not one."""
    if not head.startswith(_FIRST):
        return None
    try:
        spec = as_object(json_row(head.partition(b"\n")[0]).get("spec"))
    except (ValueError, RecursionError):
        return None
    return spec if {"completion_fns", "eval_name", "run_id"} <= spec.keys() else None


MATCH = "match"
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_PLACED = {"sampling", MATCH, "metrics", "function_call", "cond_logp", "error"}
_KNOWN = _PLACED | {"pick_option", "raw_sample", "embedding", "extra"}
_STDS = ("boostrap_std", "bootstrap_std")
_DRAWN = "the spread of the means of random halves: it is drawn anew each time"
_ELSEWHERE = "a log does not say how this is computed"


@reader(name="openai_evals")
def openai_evals(path: Path) -> list[Foreign]:
    """A log that `oaieval` wrote, or a folder with some."""
    found = [
        (file, spec_in(head_of(file))) for file in files_below(path, ".jsonl", ".json", ".log")
    ]
    return [EvalsRun(file, spec) for file, spec in found if spec is not None]


class EvalsRun(FileResults):
    """One run, read in two passes over its file."""

    format = "openai_evals"
    said = {
        "unfinished": "there is no final report: the run was stopped, and samples are missing",
        "rejected": "{:,} lines are not events, the first is line {first:,}",
        "unanswered": "{:,} samples have no sampling event: their answers are not in the log",
        "again": "{:,} samples ask what another one asks: they are further samples of it",
    }

    def __init__(self, file: Path, spec: JsonObject) -> None:
        self.spec = spec
        self.model = ",".join(map(str, list_of(spec.get("completion_fns")))) or "unknown"
        self._scorer = str(spec.get("base_eval") or spec.get("eval_name"))
        named = f"{self.model.replace('/', '__')}-{spec.get('eval_name') or 'eval'}"
        super().__init__(named, file)

    def begin(self) -> None:
        super().begin()
        self._report: JsonObject | None = None
        self._lines: list[int] = []  # that are not events
        self._types: Counter[str] = Counter()
        self._metric = ""  # the first one that a sample has
        self._samples, self._offsets = Growing("id"), Growing("int")
        self._tokens: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()

    @property
    def facts(self) -> JsonObject:
        facts: JsonObject = {
            "read_from": ["OpenAI evals"],
            "agents": [self.model],
            "spec": without_secrets(self.spec),
        }
        return {**facts, "final_report": self._report, "events": dict(self._types)}

    @property
    def rejected(self) -> int:
        return len(self._lines)

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        self._index()
        for sample, events in self._groups():
            yield self._case(sample, events)
        count, unfinished = len(np.unique(self._samples.numbers)), self._report is None
        # at least one sample is missing
        self.planned = count + 1 if unfinished and count else None
        odd: dict[str, int] = {"unfinished": unfinished, "again": self.repeats.again.total()}
        self.odd.update(odd, rejected=self.rejected, first=sum(self._lines[:1]))

    def _index(self) -> None:
        """The first pass."""
        decode = row_decoder(_Line)
        offset = 0
        with reading.opened(self.files[0]) as file:
            for number, text in enumerate(file, 1):
                try:
                    self._note(decode(text), text, number, offset)
                except (ValueError, RecursionError):
                    if text.strip():
                        self._lines.append(number)
                offset += len(text)

    def _note(self, line: _Line, text: bytes, number: int, offset: int) -> None:
        if line.final_report is not msgspec.UNSET:
            self._report = as_object(line.final_report)
        elif line.sample_id is not None and line.type:
            self._samples.append(id_hash(line.sample_id))
            self._offsets.append(offset)
            self._types[line.type] += 1
            if line.type == _NAMED and not self._metric:
                self._metric = next(iter(as_object(json_row(text).get("data"))), "")
        elif line.spec is msgspec.UNSET:
            self._lines.append(number)

    def _groups(self) -> Iterator[tuple[str, list[LoggedEvent]]]:
        """Each sample's id and events, in the order of their first events."""
        groups = group_rows(self._samples.numbers)
        first = groups.first[groups.of_row]
        order = np.argsort(first, kind="stable")
        begins = np.flatnonzero(np.diff(first[order], prepend=-1, append=-1))
        offsets = self._offsets.numbers[order]
        with reading.opened(self.files[0]) as file:
            for begin, end in pairwise(begins.tolist()):
                events = [_event(file, offset) for offset in offsets[begin:end].tolist()]
                present = [event for event in events if event is not None]
                if present:
                    yield present[0][0], [event for _, event in present]

    def _case(self, sample: str, events: Sequence[LoggedEvent]) -> ForeignCase:
        by_type: dict[str, list[JsonObject]] = defaultdict(list)
        for event in events:
            by_type[event.type].append(event.data)
            self.rest.unknown.update(f"{event.type}.{name}" for name in event.rest)
            if event.type not in _KNOWN:
                self.rest.unknown[f"events of type {event.type}"] += 1
        asked = [*by_type["sampling"], *by_type["cond_logp"], *by_type["pick_option"]]
        prompt = asked[0].get("prompt") if asked else None
        matches = by_type[MATCH]
        expected = matches[0].get("expected") if matches else None
        id = content_id(prompt, expected) if asked else content_id(sample)
        data: JsonObject = {"question": _last_text(prompt), "input": prompt}
        item: JsonObject = {"id": id, "data": data, "ground_truth": expected, "metadata": {}}
        response = self._response(sample, id, by_type)
        response.timestamp = seconds_of(events[-1].created_at, UTC) or 0.0
        response.metadata[REST] = {"sample_id": sample, **_rest_of(events)}
        return ForeignCase(item, response, self._evaluations(response, by_type))

    def _response(self, sample: str, id: str, by_type: dict[str, list[JsonObject]]) -> Response:
        samplings = by_type["sampling"]
        last: JsonObject = samplings[-1] if samplings else {}
        prompt, texts = last.get("prompt"), _texts(last.get("sampled"))
        output = _output(samplings, by_type["cond_logp"], texts)
        self.odd["unanswered"] += not samplings and not output
        errors = [f"{one.get('type')}: {one.get('message')}" for one in by_type["error"]]
        return response_of(
            id,
            self.model,
            self.repeats.count(id),
            "".join(texts[:1]),
            total_samples=1,
            prompt=_last_text(prompt),
            metadata={"model_id": self.model},
            key=key_of("openai_evals", self.spec.get("run_id"), sample),
            task=self.model,
            output=output or None,
            messages=_messages(prompt),
            tool_calls=[_call(call) for call in by_type["function_call"]] or None,
            served_model=first_filled(last, ["model"]) or None,
            **self._usage(samplings),
            **failure("; ".join(errors) or None),
        )

    def _usage(self, samplings: Sequence[JsonObject]) -> Mapping[str, int]:
        sums: Counter[str] = Counter()
        for sampling in samplings:
            usage = as_object(sampling.get("usage"))
            sums.update({name: usage[name] for name in _USAGE if isinstance(usage.get(name), int)})
        self._tokens.update(sums)
        return sums

    def _evaluations(
        self, response: Response, by_type: dict[str, list[JsonObject]]
    ) -> list[Evaluation]:
        made: list[Evaluation] = []
        for match in by_type[MATCH]:
            details = {name: value for name, value in match.items() if name != "correct"}
            made.append(self._evaluation(response, MATCH, match.get("correct"), details))
        for metrics in by_type["metrics"]:
            made += [self._evaluation(response, *metric, {}) for metric in metrics.items()]
        main_label = MATCH if MATCH in self._types else self._metric
        if not made and response.outcome == "errored" and main_label:
            failed = failure(response.error)
            made = [evaluation_of(response, main_label, scorer=self._scorer, **failed)]
        for at, row in enumerate(made):
            row.key, row.part = key_of("openai_evals.label", response.key), (at, len(made))
        return made

    def _evaluation(
        self, response: Response, label: str, value: Any, details: JsonObject
    ) -> Evaluation:
        number = number_of(value)
        if number is not None:
            self._labels[label] += 1
        return evaluation_of(
            response,
            label,
            passed=None if number is None else number > 0.5,
            score=number,
            detailed_results=details,
            scorer=self._scorer,
            value=value if number is None else None,
        )

    def headlines(self) -> list[Headline]:
        """Of the final report: means of labels by name, `accuracy` otherwise of the matches, and token counts."""
        made: list[Headline] = []
        for name, value in (self._report or {}).items():
            label = name if self._labels[name] else MATCH
            headline = Headline(label=label, metric=name, value=number_of(value), reduce="none")
            tokens = name.removeprefix("usage_")
            if name != tokens and tokens in _USAGE:
                headline.label, headline.metric = "usage", tokens
                headline.ours = float(self._tokens[tokens])
            elif name in _STDS:
                headline.reason = _DRAWN
            elif not self._labels[name] and not (name == "accuracy" and self._labels[MATCH]):
                headline.label, headline.reason = name, _ELSEWHERE
            if name == tokens or tokens in _USAGE:
                made.append(headline)
        return made


def _rest_of(events: Sequence[LoggedEvent]) -> JsonObject:
    """Return what the events of a sample say that has no place in a row."""
    others = [{"type": event.type, **event.data} for event in events if event.type not in _PLACED]
    more = {name: value for event in events for name, value in event.rest.items()}
    return without_empty({"events": others, "fields": more})


def _output(
    samplings: Sequence[JsonObject], likelihoods: Sequence[JsonObject], texts: Sequence[str]
) -> JsonObject:
    """Return what an answer is beside its text: several completions, earlier steps, likelihoods."""
    output: JsonObject = {}
    if len(texts) > 1:
        output["answers"] = list(texts)
    if len(samplings) > 1:
        output["steps"] = [
            {"prompt": each.get("prompt"), "sampled": each.get("sampled")}
            for each in samplings[:-1]
        ]
    if likelihoods:
        output["choices"] = [
            {"text": each.get("completion"), "logprob": each.get("logp")} for each in likelihoods
        ]
    return output


def _call(call: JsonObject) -> JsonObject:
    function = {"name": call.get("name"), "arguments": call.get("arguments")}
    return {"type": "function", "function": function, "result": call.get("return_value")}


def _texts(sampled: Any) -> list[str]:
    if sampled is None:
        return []
    return [*map(str, sampled if isinstance(sampled, list) else [sampled])]


def _messages(prompt: Any) -> list[JsonObject] | None:
    is_chat = isinstance(prompt, list) and all(isinstance(part, dict) for part in list_of(prompt))
    return list_of(prompt) if is_chat else None


def _last_text(prompt: Any) -> str:
    """The question: a prompt, or the last message of a chat."""
    if messages := _messages(prompt):
        users = [message for message in messages if message.get("role") == "user"] or messages
        return str(users[-1].get("content") or "")
    return "" if prompt is None else str(prompt)
