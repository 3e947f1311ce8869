"""MixEval's scores from evaluation rows: exact with counts and intervals, and as the original's `score.json` has them.

A repeated entry is a weight, not further evidence: intervals treat equal entries as one cluster. Letters that the
protocol draws at random are drawn here, in the order of the rows of a response file, and counted as guessed.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.formats.mixeval.compat import Guesses, letters
from assay.formats.mixeval.evaluation_prompts import MULTIPLE_CHOICE
from assay.interfaces import Log
from assay.stats.intervals import item_contributions, mean_interval

COMPATIBLE = "rule-compat"
OUTCOMES = ("missing", "scored", "unparsed", "refused", "errored", "skipped")
_CODES = {name: code for code, name in enumerate(OUTCOMES)}
Mask = npt.NDArray[np.bool_]


class Cell(msgspec.Struct, kw_only=True):
    """One score: of a benchmark, or overall. `entries` have a verdict, `unique` of them differ; the rest is why not."""

    value: float | None
    low: float | None
    high: float | None
    entries: int
    unique: int
    free_form: int
    multiple_choice: int
    unparsed: int
    refused: int
    errored: int
    missing: int
    guessed: int


class ModelScores(msgspec.Struct, kw_only=True):
    """One model under one parser. `compatible` is the original's score.json, from means rounded before weighting."""

    model: str
    label: str
    cells: dict[str, Cell]
    compatible: dict[str, float]


class _Metadata(msgspec.Struct):
    problem_type: str = ""
    benchmark_name: str = ""
    content: str = "0"


class _Data(msgspec.Struct):
    options: list[Any] | None = None


class _Item(msgspec.Struct):
    id: str
    ground_truth: Any = None
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    data: _Data = msgspec.field(default_factory=_Data)


class _Verdict(msgspec.Struct):
    item_id: str
    model_name: str = ""
    label: str = ""
    scorer: str = ""
    outcome: str = "scored"
    score: float | None = None
    part: tuple[int, int] = (0, 1)


class Entries:
    """The facts of all entries that scores need, as columns in the order of the items."""

    def __init__(self, items: Log) -> None:
        hashes, targets, options, contents = array("q"), array("b"), array("b"), array("Q")
        kinds, benchmarks, self.names = array("b"), array("h"), list[str]()
        numbers: dict[str, int] = {}
        decode = msgspec.json.Decoder(_Item).decode
        for _, line in items.scan():
            row = decode(line)
            multiple = row.metadata.problem_type == MULTIPLE_CHOICE
            hashes.append(hash(row.id))
            kinds.append(multiple)
            targets.append(row.ground_truth[0] if multiple else 0)
            options.append(len(row.data.options or ()) if multiple else 0)
            benchmarks.append(numbers.setdefault(row.metadata.benchmark_name, len(numbers)))
            contents.append(int(row.metadata.content, 16))
        self.names = list(numbers)
        self.multiple = np.array(kinds, np.bool_)
        self.target, self.options = np.array(targets), np.array(options)
        self.benchmark = np.array(benchmarks)
        self.content = np.array(contents, np.uint64)
        plain = np.array(hashes, np.int64)
        self._order = np.argsort(plain)
        self._hashes = plain[self._order]

    def __len__(self) -> int:
        return len(self.target)

    def places(self, hashes: Sequence[int]) -> npt.NDArray[np.int64]:
        """The numbers of the entries with these hashes of their ids; -1 for ids that are none."""
        wanted = np.array(hashes, np.int64)
        at = np.minimum(np.searchsorted(self._hashes, wanted), max(0, len(self) - 1))
        return np.where(self._hashes[at] == wanted, self._order[at], -1) if len(self) else np.full(len(wanted), -1)


class _Column:
    """The verdicts of one model and label."""

    def __init__(self) -> None:
        self.ids, self.scores, self.outcomes = array("q"), array("d"), array("b")


def model_scores(
    entries: Entries,
    evaluations: Iterable[Log],
    *,
    level: float = 0.95,
    file_order: npt.NDArray[np.int64] | None = None,
    parsers: Mapping[str, tuple[str, str]] | None = None,
) -> list[ModelScores]:
    """The scores of every model and scorer. `file_order`: the entries in the order of the response file; `parsers`:
    what to show instead of single scorers, each with the scorer of its free-form and of its multiple-choice entries."""
    columns: dict[tuple[str, str], _Column] = {}
    decode = msgspec.json.Decoder(_Verdict).decode
    for log in evaluations:
        for _, line in log.scan():
            row = decode(line)
            if row.part[0] or not row.part[1]:
                continue
            column = columns.setdefault((row.model_name, row.scorer or row.label), _Column())
            column.ids.append(hash(row.item_id))
            column.scores.append(0.0 if row.score is None else row.score)
            column.outcomes.append(_CODES[row.outcome])
    order = np.arange(len(entries)) if file_order is None else file_order
    wanted = parsers or {label: (label, label) for label in sorted({label for _, label in columns})}
    return [
        _scores(entries, model, shown, _joined(entries, columns, model, labels), order, level)
        for model in sorted({model for model, _ in columns})
        for shown, labels in wanted.items()
    ]


def _joined(
    entries: Entries, columns: Mapping[tuple[str, str], _Column], model: str, labels: tuple[str, str]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
    """Value and outcome of each entry: of the first label if it is free-form, else of the second."""
    values, outcome = np.zeros(len(entries)), np.zeros(len(entries), np.int8)
    for label, mask in zip(labels, (~entries.multiple, entries.multiple), strict=True):
        column = columns.get((model, label), _Column())
        at = entries.places(column.ids)
        known = at >= 0
        known[known] = mask[at[known]]
        values[at[known]] = np.array(column.scores)[known]
        outcome[at[known]] = np.array(column.outcomes, np.int8)[known]
    return values, outcome


def _scores(
    entries: Entries,
    model: str,
    label: str,
    verdicts: tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]],
    order: npt.NDArray[np.int64],
    level: float,
) -> ModelScores:
    values, outcome = verdicts
    guessed = np.zeros(len(entries), np.bool_)
    if label.endswith(COMPATIBLE):
        draw = Guesses().draw
        unread = entries.multiple & (outcome == _CODES["unparsed"])
        for number in order[unread[order]].tolist():
            values[number] = draw(int(entries.options[number])) == letters(26)[entries.target[number]]
        guessed = unread
    values[np.isin(outcome, (_CODES["unparsed"], _CODES["refused"])) & ~guessed] = 0.0
    counted = np.isin(outcome, (_CODES["scored"], _CODES["unparsed"], _CODES["refused"]))
    masks = {"overall": np.ones(len(entries), np.bool_)}
    masks |= {
        name: entries.benchmark == code for code, name in sorted(enumerate(entries.names), key=lambda one: one[1])
    }
    cells = {
        name: _cell(entries, values, outcome, counted & mask, mask, guessed, level) for name, mask in masks.items()
    }
    compatible = {name: _compatible(entries, values, counted & mask, order) for name, mask in masks.items()}
    return ModelScores(
        model=model,
        label=label,
        cells=cells,
        compatible={name: value for name, value in compatible.items() if value is not None},
    )


def _cell(
    entries: Entries,
    values: npt.NDArray[np.float64],
    outcome: npt.NDArray[np.int8],
    counted: Mask,
    mask: Mask,
    guessed: Mask,
    level: float,
) -> Cell:
    count = int(counted.sum())
    low = high = value = None
    if count:
        clusters = entries.content[counted]
        contributions = item_contributions(clusters, values[counted])
        value = float(values[counted].mean())
        low, high, _ = mean_interval(contributions, samples=count, bounded=True, level=level)
    counts = np.bincount(outcome[mask], minlength=len(OUTCOMES))
    return Cell(
        value=value,
        low=low,
        high=high,
        entries=count,
        unique=len(np.unique(entries.content[counted])),
        free_form=int((counted & ~entries.multiple).sum()),
        multiple_choice=int((counted & entries.multiple).sum()),
        unparsed=int(counts[_CODES["unparsed"]] - (guessed & mask).sum()),
        refused=int(counts[_CODES["refused"]]),
        errored=int(counts[_CODES["errored"]]),
        missing=int(counts[_CODES["missing"]]),
        guessed=int((guessed & mask).sum()),
    )


def _compatible(
    entries: Entries, values: npt.NDArray[np.float64], counted: Mask, order: npt.NDArray[np.int64]
) -> float | None:
    """The mean of each kind rounded to three places, then weighted by their numbers of entries."""
    parts = [counted & ~entries.multiple, counted & entries.multiple]
    counts = [int(part.sum()) for part in parts]
    if not sum(counts):
        return None
    means = [round(_plain_mean(values, part, order), 3) if part.any() else 0.0 for part in parts]
    if not all(counts):
        return means[0] if counts[0] else means[1]
    return sum(mean * count / sum(counts) for mean, count in zip(means, counts, strict=True))


def _plain_mean(values: npt.NDArray[np.float64], part: Mask, order: npt.NDArray[np.int64]) -> float:
    """Added up one by one in the order of the file: the last bit decides how a mean such as 0.5375 is rounded."""
    chosen = order[part[order]]
    added = values[chosen if len(chosen) == part.sum() else part]
    return float(np.cumsum(added)[-1]) / len(added)
