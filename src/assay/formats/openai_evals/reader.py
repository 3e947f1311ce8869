"""A log of OpenAI evals as items, answers and labels: a sample with its events is one case."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import (
    REST,
    Foreign,
    ForeignCase,
    Headline,
    Rest,
    content_id,
    evaluation_of,
    files_below,
    head_of,
    key_of,
    without_secrets,
)
from assay.engine.experiment.imports.values import (
    Repeats,
    Row,
    failure,
    fields_of,
    list_of,
    number_of,
    seconds_of,
)
from assay.formats.openai_evals.events import Event, Log, spec_in
from assay.records import Evaluation, Response
from assay.registry import reader

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
    return [Results(Log(file, spec)) for file, spec in found if spec is not None]


class Results:
    """One run, read in two passes over its file."""

    def __init__(self, log: Log) -> None:
        self.log = log
        spec = log.spec
        self.model = ",".join(map(str, list_of(spec.get("completion_fns")))) or "unknown"
        self.dataset = f"{self.model.replace('/', '__')}-{spec.get('eval_name') or 'eval'}"
        self._scorer = str(spec.get("base_eval") or spec.get("eval_name"))
        self._start()

    def _start(self) -> None:
        self._rest, self._repeats = Rest(), Repeats()
        self._tokens: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._unanswered = 0

    @property
    def source(self) -> Row:
        return {"format": "openai_evals", "files": [content_stamp(self.log.file.absolute())]}

    @property
    def facts(self) -> Row:
        facts: Row = {
            "read_from": ["OpenAI evals"],
            "agents": [self.model],
            "spec": without_secrets(self.log.spec),
        }
        return {**facts, "final_report": self.log.report, "events": dict(self.log.types)}

    @property
    def rejected(self) -> int:
        return len(self.log.rejected)

    @property
    def planned(self) -> int | None:
        """A run without a report was stopped: at least one sample is missing."""
        return self.log.count + 1 if self.log.report is None and self.log.count else None

    def cases(self) -> Iterator[ForeignCase]:
        self._start()
        self.log.index()
        for sample, events in self.log.samples():
            yield self._case(sample, events)

    def _case(self, sample: str, events: Sequence[Event]) -> ForeignCase:
        by_type: dict[str, list[Row]] = {}
        for event in events:
            by_type.setdefault(event.type, []).append(event.data)
            self._rest.unknown.update(f"{event.type}.{name}" for name in event.rest)
            if event.type not in _KNOWN:
                self._rest.unknown[f"events of type {event.type}"] += 1
        asked = [
            *by_type.get("sampling", ()),
            *by_type.get("cond_logp", ()),
            *by_type.get("pick_option", ()),
        ]
        prompt = asked[0].get("prompt") if asked else None
        matches = by_type.get(MATCH, [])
        expected = matches[0].get("expected") if matches else None
        id = content_id(prompt, expected) if asked else content_id(sample)
        data: Row = {"question": _last_text(prompt), "input": prompt}
        item: Row = {"id": id, "data": data, "ground_truth": expected, "metadata": {}}
        response = self._response(sample, id, events, by_type)
        return ForeignCase(item, response, self._evaluations(response, by_type))

    def _response(
        self,
        sample: str,
        id: str,
        events: Sequence[Event],
        by_type: dict[str, list[Row]],
    ) -> Response:
        index = self._repeats.count(id)
        samplings = by_type.get("sampling", [])
        last: Row = samplings[-1] if samplings else {}
        texts = _texts(last.get("sampled"))
        usage = self._usage(samplings)
        output = _output(samplings, by_type.get("cond_logp", []), texts)
        prompt = last.get("prompt")
        source: Row = {"sample_id": sample}
        others = [
            {"type": event.type, **event.data} for event in events if event.type not in _PLACED
        ]
        source |= {"events": others} if others else {}
        more = {name: value for event in events for name, value in event.rest.items()}
        source |= {"fields": more} if more else {}
        calls = [_call(call) for call in by_type.get("function_call", ())]
        if not samplings and not output:
            self._unanswered += 1
        errors = [f"{one.get('type')}: {one.get('message')}" for one in by_type.get("error", ())]
        return Response(
            item_id=id,
            sample_id=f"{id}_sample_{index}",
            sample_index=index,
            model_name=self.model,
            prompt=prompt if isinstance(prompt, str) else _last_text(prompt),
            response=texts[0] if texts else "",
            timestamp=seconds_of(events[-1].created_at, UTC) or 0.0,
            metadata={"model_id": self.model, REST: source},
            total_tokens=usage.get("total_tokens"),
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            key=key_of("openai_evals", self.log.spec.get("run_id"), sample),
            task=self.model,
            output=output or None,
            messages=_messages(prompt),
            tool_calls=calls or None,
            served_model=str(last["model"]) if last.get("model") else None,
            **failure("; ".join(errors) if errors else None),
        )

    def _usage(self, samplings: Sequence[Row]) -> dict[str, int]:
        sums: dict[str, int] = {}
        for sampling in samplings:
            for name, count in fields_of(sampling.get("usage")).items():
                if name in _USAGE and isinstance(count, int):
                    sums[name] = sums.get(name, 0) + count
        self._tokens.update(sums)
        return sums

    def _evaluations(self, response: Response, by_type: dict[str, list[Row]]) -> list[Evaluation]:
        made: list[Evaluation] = []
        for match in by_type.get(MATCH, ()):
            details = {name: value for name, value in match.items() if name != "correct"}
            made.append(self._evaluation(response, MATCH, match.get("correct"), details))
        for metrics in by_type.get("metrics", ()):
            made += [self._evaluation(response, *metric, {}) for metric in metrics.items()]
        main_label = MATCH if MATCH in self.log.types else self.log.metric
        if not made and response.outcome == "errored" and main_label:
            failed = failure(response.error)
            made = [evaluation_of(response, main_label, scorer=self._scorer, **failed)]
        for at, row in enumerate(made):
            row.key, row.part = key_of("openai_evals.label", response.key), (at, len(made))
        return made

    def _evaluation(self, response: Response, label: str, value: Any, details: Row) -> Evaluation:
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
        for name, value in (self.log.report or {}).items():
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

    def notes(self) -> list[str]:
        notes: list[str] = []
        if self.log.report is None:
            notes.append("there is no final report: the run was stopped, and samples are missing")
        if self.log.rejected:
            notes.append(
                f"{len(self.log.rejected):,} lines are not events, the first is line {self.log.rejected[0]:,}"
            )
        if self._unanswered:
            notes.append(
                f"{self._unanswered:,} samples have no sampling event: their answers are not in the log"
            )
        if again := self._repeats.again:
            notes.append(
                f"{again.total():,} samples ask what another one asks: they are further samples of it"
            )
        return [*notes, *self._rest.notes()]


def _output(samplings: Sequence[Row], likelihoods: Sequence[Row], texts: Sequence[str]) -> Row:
    """What an answer is beside its text: several completions, earlier steps, likelihoods."""
    output: Row = {}
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


def _call(call: Row) -> Row:
    function = {"name": call.get("name"), "arguments": call.get("arguments")}
    return {"type": "function", "function": function, "result": call.get("return_value")}


def _texts(sampled: Any) -> list[str]:
    if sampled is None:
        return []
    return [*map(str, list_of(sampled) if isinstance(sampled, list) else [sampled])]


def _messages(prompt: Any) -> list[Row] | None:
    is_chat = isinstance(prompt, list) and all(isinstance(part, dict) for part in list_of(prompt))
    return list_of(prompt) if is_chat else None


def _last_text(prompt: Any) -> str:
    """The question: a prompt, or the last message of a chat."""
    messages = _messages(prompt)
    if messages:
        users = [message for message in messages if message.get("role") == "user"] or messages
        return str(users[-1].get("content") or "")
    return prompt if isinstance(prompt, str) else "" if prompt is None else str(prompt)
