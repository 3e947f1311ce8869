"""People's labels of answers: read from a file, and settled to one verdict for each answer.

A row is {item, sample, label} with, optionally, `annotator`, `model` (the answer's model_name; "a vs b" for a match),
`scorer` (the only label that it is about), `response` (the answer's key) and `probability` (with which the answer was
chosen to be labelled: it then counts one over that). Where `stratum` and `stratum_size` are given, the probability is
the share of the stratum that is labelled by now. An empty label takes an earlier one back.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.sdk import JsonMapping, JsonObject, UserError, dataset, nearest
from assay.store.log import FileLog
from assay.store.shared.mirror import local

FILE = "labels.jsonl"
WORDS: dict[str, bool | float] = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "correct", "first"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "incorrect", "second"), False),
    "tie": 0.5,
}
NO_LABEL = ("", "skip", "none", "null")
_FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
# as our own rows call them
_NAMES = {"item": "item_id", "sample": "sample_index", "model": "model_name"}


class Label(msgspec.Struct, kw_only=True, frozen=True):
    """What one person said about one answer, once. `value` is None where it was taken back."""

    item: str
    sample: int = 0
    value: bool | float | None = None
    annotator: str = ""
    model: str = ""
    scorer: str = ""
    response: str = ""
    probability: float = 1.0
    stratum: str = ""
    stratum_size: float = 0.0
    place: str = ""

    @property
    def address(self) -> tuple[str, int, str, str, str]:
        """Return what it is about."""
        return self.item, self.sample, self.model, self.response, self.scorer


class Labels(msgspec.Struct, kw_only=True):
    """The last word of each annotator on each answer, in the order of the file; `notes` says what was left out."""

    source: str
    rows: list[Label]
    notes: list[str] = []

    def annotators(self) -> list[str]:
        return sorted({row.annotator for row in self.rows})

    def only(self, annotators: Sequence[str]) -> "Labels":
        """The labels of these people; of all if none is named."""
        known = self.annotators()
        for name in annotators:
            if name not in known:
                raise UserError(
                    f"no label is by {name!r}",
                    where=self.source,
                    fix=nearest(name, filter(None, known)),
                )
        rows = [row for row in self.rows if not annotators or row.annotator in annotators]
        return msgspec.structs.replace(self, rows=_by_stratum(rows))


def _by_stratum(rows: Sequence[Label]) -> list[Label]:
    """With the probabilities that strata have now: an earlier session knew less of how many would be labelled."""
    labelled: dict[tuple[str, str], set[Any]] = {}
    sizes: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.stratum and row.stratum_size:
            labelled.setdefault((row.scorer, row.stratum), set()).add(row.address)
            sizes[row.scorer, row.stratum] = row.stratum_size
    share = {
        stratum: min(1.0, len(answers) / sizes[stratum]) for stratum, answers in labelled.items()
    }
    return [
        msgspec.structs.replace(
            row, probability=share.get((row.scorer, row.stratum), row.probability)
        )
        for row in rows
    ]


def read_labels(
    source: str | Path | Iterable[JsonMapping], *, may_be_empty: bool = False
) -> Labels:
    """The labels of a csv, tsv, json or jsonl file, or of rows that are given."""
    if isinstance(source, (str, Path)):
        name, rows = str(source), _rows(local(source))
    else:
        name, rows = "labels", ((f"label {number}", row) for number, row in enumerate(source, 1))
    latest: dict[tuple[Any, ...], Label] = {}
    repeated: list[Label] = []
    for place, fields in rows:
        label = _label(fields, place)
        key = (*label.address, label.annotator)
        if key in latest:
            repeated.append(latest.pop(key))
        latest[key] = label
    kept = [label for label in latest.values() if label.value is not None]
    if not kept and not may_be_empty:
        raise UserError(
            "there is no label in it", where=name, fix="a row has `item`, `sample` and `label`"
        )
    return Labels(source=name, rows=kept, notes=_notes(repeated, len(latest) - len(kept)))


def _notes(repeated: list[Label], empty: int) -> list[str]:
    notes = [f"{_count(empty, 'row')} without a label"] if empty else []
    if not repeated:
        return notes
    first = repeated[0]
    by = f" by {first.annotator!r}" if first.annotator else ""
    again = f"given again: the last one counts (first: {first.item!r}{by})"
    return [f"{_count(len(repeated), 'label')} {again}", *notes]


def _rows(path: Path) -> Iterator[tuple[str, JsonObject]]:
    if not path.is_file():
        from assay.config.source import similar_files

        raise UserError(f"there is no file of labels {str(path)!r}", fix=similar_files(path))
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise UserError(
            f"labels are csv or jsonl, not {path.suffix!r}",
            where=str(path),
            fix="save them as .csv",
        )
    if form != "jsonl":
        yield from dataset.get(form)(path)
        return
    # a session that was killed leaves half a line
    for number, (_, line) in enumerate(FileLog(path).scan(), 1):
        if line.strip():
            yield (
                f"{path}:{number}",
                _decode_row(line.removeprefix(b"\xef\xbb\xbf"), f"{path}:{number}"),
            )


def _decode_row(line: bytes, place: str) -> JsonObject:
    try:
        row = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"not JSON: {error}", place) from None
    if not isinstance(row, dict):
        raise _unreadable(f"expected an object, found {type(row).__name__}", place)
    return cast("JsonObject", row)


def _unreadable(what: str, place: str, fix: str = "mend or remove this row") -> UserError:
    return UserError(f"a label cannot be read: {what}", where=place, fix=fix)


def _label(fields: JsonMapping, place: str) -> Label:
    def text(name: str) -> str:
        value = fields.get(name, fields.get(_NAMES.get(name, "")))
        return "" if value is None else str(value).strip()

    item = text("item")
    if not item:
        raise _unreadable("it has no `item`", place, nearest("item", fields))
    if "label" not in fields:
        raise _unreadable("it has no `label`", place, nearest("label", fields))
    return Label(
        item=item,
        sample=_sample(text("sample"), place),
        value=_value(fields["label"], place),
        annotator=text("annotator"),
        model=text("model"),
        scorer=text("scorer"),
        response=text("response"),
        probability=_number(text("probability") or "1", "probability", place, most=1),
        stratum=text("stratum"),
        stratum_size=_number(text("stratum_size"), "stratum_size", place)
        if text("stratum_size")
        else 0.0,
        place=place,
    )


def _sample(text: str, place: str) -> int:
    try:
        number = float(text or 0)
    except ValueError:
        number = -1.0
    if not number.is_integer() or number < 0:
        raise _unreadable(f"the sample {text!r} is not a whole number from 0 on", place)
    return int(number)


def _number(text: str, name: str, place: str, most: float = math.inf) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= most or number == math.inf:
        raise _unreadable(
            f"{name} {text!r} is not a number above 0{'' if most == math.inf else f' up to {most:g}'}",
            place,
        )
    return number


def _value(given: Any, place: str) -> bool | float | None:
    """A verdict as a bool, a number as it is."""
    if given is None or isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word in NO_LABEL:
        return None
    if word in WORDS:
        return WORDS[word]
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        known = "0 or 1, true or false, yes or no, pass or fail, or a number"
        raise _unreadable(f"the label {given!r} is not a verdict", place, f"write {known}")
    return number


# ---- one verdict for each answer


def verdict(label: Label, threshold: float | None, *, match: bool) -> float:
    """1 for a pass and 0 for a fail; in a match 1 if the first player is better, 0 if the second is, 0.5 for a tie."""
    value = label.value
    assert value is not None
    if match:
        if not 0 <= value <= 1:
            fix = "in a match 1 means the first player, 0 the second, 0.5 a tie"
            raise _unreadable(f"the label {value:g} is not from 0 to 1", label.place, fix)
        return 0.5 if value == 0.5 else float(value > 0.5)
    if not isinstance(value, bool) and threshold is not None:
        return float(value >= threshold)
    if value not in (0, 1):
        fix = "say from which number on it is a pass: --threshold 4"
        raise _unreadable(f"the label {value:g} is neither 0 nor 1", label.place, fix)
    return float(value)


def majority(verdicts: Iterable[float]) -> float | None:
    """The verdict that most people gave, None where two are equally frequent."""
    counted = Counter(verdicts).most_common(2)
    return None if len(counted) > 1 and counted[0][1] == counted[1][1] else counted[0][0]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
