"""The responses of two experiments, read once each: what was served, what it cost, and how many answers differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.paired import Lost, left_out, read_noting
from assay.engine.calls.usage import CALLS, Usage
from assay.engine.experiment.sources import Source
from assay.records import JsonMapping, find_in_row
from assay.sdk import Hashes, canonical, digest, short
from assay.store.table.facets import text_of


class _ResponseMetadata(msgspec.Struct):
    finish_reason: str | None = None
    prompt_template: Any = None


class _Given(msgspec.Struct):
    item_id: str
    sample_index: int | None = None
    model_name: str | None = None
    task: str | None = None
    response: str | None = None
    output: Any = None
    outcome: str | None = None
    error: str | None = None
    inference_time: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    served_model: str | None = None
    served_fingerprint: str | None = None
    metadata: _ResponseMetadata | None = None


class SideUse(msgspec.Struct, kw_only=True):
    """What the responses of a side took. `cost` sums what is known, `unpriced` counts the responses without a price;
    `seconds` are the median and the 95th percentile of the answers' times, null where none has one. `judging` is what
    calls inside tasks and scorers cost."""

    responses: int = 0
    outcomes: dict[str, int] = {}
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    judging: float = 0.0
    seconds: tuple[float, float] | None = None


class ServedAs(msgspec.Struct):
    """A fact that the responses of a model report, and how many do on each side."""

    model_name: str
    what: str
    value: str
    a: int = 0
    b: int = 0


class AnswersDiff(msgspec.Struct, kw_only=True):
    """Answers to the same item, task and sample; `paired_by` says what stands for the task where the sides have none in
    common. Those that only one side has are not `changed`."""

    paired_by: str
    same: int = 0
    changed: int = 0
    only_a: int = 0
    only_b: int = 0


_COLUMNS = [("task", np.uint64), ("prompt", np.uint64), ("answer", np.uint64), ("seconds", float)]


class SideAnswers:
    """One pass over the responses of a source: 32 bytes a row are held."""

    def __init__(self, source: Source, where: JsonMapping) -> None:
        self.use = SideUse()
        self.facts: Counter[tuple[str, str, str]] = Counter()
        self.tasks: set[str] = set()
        self._outcomes: Counter[str] = Counter()
        lost: Lost = []
        self._columns = np.fromiter(map(self._note, _rows(source, where, lost)), _COLUMNS)
        self.notes = left_out(lost)
        self.use.outcomes = dict(sorted(self._outcomes.items()))
        times = self._columns["seconds"][self._columns["seconds"] > 0]
        if len(times):
            median, late = np.percentile(times, (50, 95))
            self.use.seconds = float(median), float(late)
        self.use.judging = _judging(source)

    def _note(self, row: _Given) -> tuple[int, int, int, float]:
        """Count a row, and return where it belongs by its task and by its prompt, what it answers
        and how long it took."""
        outcome = row.outcome or ("errored" if row.error else "ok")
        self._outcomes[outcome] += 1
        self._count(row)
        task = row.task or row.model_name or ""
        self.tasks.add(task)
        prompt = row.metadata.prompt_template if row.metadata else None
        place = row.item_id, str(row.sample_index or 0)
        output = b"" if row.output is None else canonical(row.output)
        return (
            _hash(*place, task),
            _hash(*place, text_of(prompt)),
            _hash(row.response or "", output, row.error or ""),
            (row.inference_time or 0.0) if outcome != "errored" else 0.0,
        )

    def _count(self, row: _Given) -> None:
        use = self.use
        use.responses += 1
        use.prompt_tokens += row.prompt_tokens or 0
        use.completion_tokens += row.completion_tokens or 0
        use.cost += row.cost or 0.0
        use.unpriced += row.cost is None and row.error is None
        for what, value in (
            ("served model", row.served_model),
            ("fingerprint", row.served_fingerprint),
            ("finish reason", row.metadata and row.metadata.finish_reason),
        ):
            if value:
                self.facts[row.model_name or "", what, value] += 1

    def by_place(self, by: str) -> tuple[Hashes, Hashes]:
        """Return the places that answers have by their task or prompt, sorted, and the answer at
        each; none where a place has several."""
        places, first = np.unique(self._columns[by], return_index=True)
        first = first if len(places) == len(self._columns) else first[:0]
        return places, self._columns["answer"][first]


def _hash(*parts: str | bytes) -> int:
    given = (
        part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in parts
    )
    return short(digest("answer", *given))


def _rows(source: Source, where: JsonMapping, lost: Lost) -> Iterator[_Given]:
    for log in source.logs("run"):
        for position, row in read_noting(log, _Given, lost):
            if not where or _has(msgspec.json.decode(log.read(position)), where):
                yield row


def _has(row: JsonMapping, where: JsonMapping) -> bool:
    """Return whether a response has these values of facets, as far as it tells."""
    found = ((find_in_row(row, facet), value) for facet, value in where.items())
    return all(
        value is msgspec.UNSET or text_of(value) == text_of(wanted) for value, wanted in found
    )


def _judging(source: Source) -> float:
    used: list[Usage] = []
    for manifest in (source.manifest("run"), source.manifest("evaluation")):
        owners = manifest.metadata.get(CALLS, {}) if manifest else {}
        for models in msgspec.convert([*owners.values()], list[dict[str, Usage]]):
            used += models.values()
    return sum(usage.cost for usage in used)


def served_diff(first: SideAnswers, second: SideAnswers) -> list[ServedAs]:
    """Return what each model reported, by side."""
    keys = sorted({*first.facts, *second.facts})
    return [ServedAs(*key, first.facts[key], second.facts[key]) for key in keys]


def answers_diff(first: SideAnswers, second: SideAnswers) -> AnswersDiff | None:
    """None where a side has several answers at one place, so that nothing says which belong
    together."""
    shared = bool(first.tasks & second.tasks)
    (a, answers), (b, others) = (
        side.by_place("task" if shared else "prompt") for side in (first, second)
    )
    if not (len(answers) and len(others)):
        return None
    _, of_a, of_b = np.intersect1d(a, b, return_indices=True)
    same = int((answers[of_a] == others[of_b]).sum())
    return AnswersDiff(
        paired_by="item, task and sample" if shared else "item, prompt and sample",
        same=same,
        changed=len(of_a) - same,
        only_a=len(a) - len(of_a),
        only_b=len(b) - len(of_b),
    )


def answers_notes(
    found: AnswersDiff | None, first: SideAnswers, second: SideAnswers
) -> Iterator[str]:
    """Yield what there is to say of the responses that count, and of those that do not."""
    yield from (*first.notes, *second.notes)
    if not (first.use.responses or second.use.responses):
        yield "there are no responses to compare"
    elif found is None:
        yield "answers are not compared one by one: nothing says which belong together"


def differing(served: Sequence[ServedAs]) -> list[ServedAs]:
    """Return those that one side reports and the other does not."""
    return [each for each in served if not (each.a and each.b)]
