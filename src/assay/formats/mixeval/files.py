"""What MixEval keeps of a model: response files, verdict files and `score.json`, under the original's names.

All are projections of the engine's rows, written in the order of the response file; of each row only its place is held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.formats.mixeval import compat
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.finding import file_name
from assay.formats.mixeval.metric import OVERALL, SCORE, ModelScores, ScoreCell
from assay.formats.mixeval.plans import COMPATIBLE, Layout, Parsers
from assay.sdk import JsonObject, Log, MetricRow, Store, UserError, safe_name
from assay.store.ledger import adopt, claim, digest_of, was_written, write_named
from assay.store.lock import LOCK
from assay.store.stores import EXPERIMENT_FILES, MANIFEST
from assay.store.table.decode import read_rows

_LIST = "written.json"


class _Listed(msgspec.Struct):
    digest: str
    begun: int = 0  # lines of another tool, which an earlier version went on with


class ModelFolder:
    """The folder of a model's files; what others wrote there is not replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        adopt(folder, _listed_digests(folder))

    def is_ours(self, name: str) -> bool:
        """Return whether the file is as Assay left it, or not there at all."""
        return not (self.folder / name).exists() or was_written(self.folder / name)

    def claim(self, name: str, content: Iterable[bytes]) -> None:
        """Record a file that holds exactly what Assay would write: of a version that kept no list."""
        if not self.is_ours(name):
            claim(self.folder / name, content)

    def refuse_others(
        self,
        names: Iterable[str],
        *,
        experiment: bool = False,
        fix: str = "choose another folder with -o, or replace them with --force",
    ) -> None:
        """Raise if a file would be replaced that is not as Assay left it; `experiment`: that is kept here, too."""
        theirs = [name for name in names if not self.is_ours(name)]
        if experiment and not any((self.folder / name).exists() for name in (MANIFEST, LOCK)):
            theirs += [name for name in EXPERIMENT_FILES if (self.folder / name).exists()]
        if theirs:
            raise UserError(
                f"Assay would replace what it did not write: {', '.join(theirs)}",
                where=str(self.folder),
                fix=fix,
            )

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        write_named(self.folder / name, content, force=True)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)


def _listed_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files that earlier versions wrote, which had a list of their own
    or none."""
    file = folder / _LIST
    if file.exists():
        try:
            listed = msgspec.json.decode(reading.content(file), type=dict[str, _Listed])
        except msgspec.MsgspecError as error:
            raise UserError(
                f"the list of files is broken: {error}", where=str(file), fix="remove it"
            ) from None
        return {name: entry.digest for name, entry in listed.items() if not entry.begun}
    if not (folder / "scores.json").exists():
        return {}
    # of a version without a list; no other tool writes such a file
    patterns = ("judge_results_*.jsonl", "score*.json")
    made = (path for pattern in patterns for path in folder.glob(pattern))
    return {path.name: digest_of(path) for path in made}


Places = dict[str, int]  # by the id of an entry: where its row is in a log
_SHORT = {FREE_FORM: "ff", MULTIPLE_CHOICE: "mp"}


class _Entry(msgspec.Struct):
    id: str
    data: dict[str, msgspec.Raw]
    ground_truth: msgspec.Raw
    metadata: JsonObject = {}


class _EntryRow(msgspec.Struct):
    """What is needed of a response, or of a verdict."""

    item_id: str
    model_name: str = ""
    scorer: str = ""
    sample_index: int = 0
    part: tuple[int, int] = (0, 1)
    response: msgspec.Raw = msgspec.Raw(b'""')
    outcome: str = "scored"
    passed: bool | None = None
    score: float | None = None
    error: str | None = None
    detailed_results: JsonObject = {}


_decode_entry = msgspec.json.Decoder(_Entry).decode
_decode_row = msgspec.json.Decoder(_EntryRow).decode


class EntryRows:
    """The rows of one experiment by entry: where its item, each model's response and each verdict are in their logs."""

    def __init__(self, store: Store, id: str, *, file_order: bool) -> None:
        self.items, self.run = store.log("dataset", id), store.log("run", id)
        self.evaluations = store.log("evaluation", id)
        self._file_order = file_order

    @cached_property
    def _entries(self) -> dict[str, tuple[int, str]]:
        """The place and the benchmark of each entry, in the order of the data."""
        return {
            row.id: (position, row.metadata.get("benchmark_name", ""))
            for position, row in read_rows(self.items, _Entry)
        }

    @cached_property
    def _responses(self) -> dict[str, Places]:
        return {model: places for (model, _), places in _places(self.run).items()}

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], Places]:
        return _places(self.evaluations)

    @property
    def benchmarks(self) -> set[str]:
        return {benchmark for _, benchmark in self._entries.values()}

    @property
    def models(self) -> list[str]:
        return sorted(self._responses)

    def missing(self, model: str, scorers: tuple[str, str]) -> Counter[str]:
        """Count the entries of each benchmark without a verdict by the scorer of their kind."""
        by_kind = zip(_SHORT, scorers, strict=True)
        verdicts = {kind: self._verdicts.get((model, scorer), {}) for kind, scorer in by_kind}
        found: Counter[str] = Counter()
        for id, (_, benchmark) in self._entries.items():
            found[benchmark] += id not in verdicts[id.partition("/")[0]]
        return +found

    def response_rows(self, model: str, kind: str) -> Iterator[JsonObject]:
        """Every key of the entry, then `formated_input`, `id` and `response`. Errors have no response and no row."""
        return (row for _, row in self._rows(model, kind))

    def verdict_rows(
        self, model: str, kind: str, scorer: str, *, trim_base: bool = False
    ) -> Iterator[JsonObject]:
        """The same rows with the verdict of a parser or a judge, in the original's keys."""
        guesses, places = compat.Guesses(), self._verdicts.get((model, scorer), {})
        for id, row in self._rows(model, kind):
            if id not in places:
                continue
            verdict = _decode_row(self.evaluations.read(places[id]))
            if scorer != COMPATIBLE:
                yield row | _judge_fields(verdict, kind)
            elif kind == FREE_FORM:
                yield row | _rule_fields(verdict, _predictions(row, trim_base))
            elif verdict.outcome != "unparsed":
                yield row | _rule_fields(verdict, verdict.detailed_results.get("parsed"))
            else:
                yield row | _drawn_fields(row, guesses)

    def _rows(self, model: str, kind: str) -> Iterator[tuple[str, JsonObject]]:
        """(id, row) in the order of the model's file, or of the data where the file is ours; values that need no
        look stay the JSON that they are."""
        entries, answers = self._entries, self._responses.get(model, {})
        for id in answers if self._file_order else entries:
            if id not in entries or id not in answers or not id.startswith(f"{kind}/"):
                continue
            answer = _decode_row(self.run.read(answers[id]))
            if answer.outcome != "errored":
                item = _decode_entry(self.items.read(entries[id][0]))
                asked = item.data.pop("formated_input")
                row: JsonObject = {
                    **item.data,
                    "target": item.ground_truth,
                    "formated_input": asked,
                }
                yield id, {**row, "id": id.partition("/")[2], "response": answer.response}


def _places(log: Log) -> dict[tuple[str, str], Places]:
    """By model and scorer: where the row of each entry is."""
    places: dict[tuple[str, str], Places] = {}
    for position, row in read_rows(log, _EntryRow):
        if not row.sample_index and not row.part[0] and row.part[1]:
            places.setdefault((row.model_name, row.scorer), {})[row.item_id] = position
    return places


def _failure(verdict: _EntryRow) -> JsonObject:
    failed = verdict.outcome != "scored"
    return {"outcome": verdict.outcome, "error": verdict.error} if failed else {}


def _judge_fields(verdict: _EntryRow, kind: str) -> JsonObject:
    details = verdict.detailed_results
    if kind == FREE_FORM:
        found = {"judge_score": verdict.score}
    else:
        found = {"judge_option": details.get("verdict")}
    return {"judge_response": details.get("raw", ""), **found, **_failure(verdict)}


def _rule_fields(verdict: _EntryRow, parsed: Any) -> JsonObject:
    right = bool(verdict.passed)
    return {"parsed_result": parsed, "eval_result": right, **_failure(verdict)}


def _predictions(row: JsonObject, trim_base: bool) -> list[str | float]:
    text = _value(row["response"])
    return compat.predictions(
        compat.first_answer(text, multiple_choice=False) if trim_base else text
    )


def _drawn_fields(row: JsonObject, guesses: compat.Guesses) -> JsonObject:
    count = len(_value(row["options"]))
    letter = guesses.draw(count)
    right = letter == compat.letters(count)[_value(row["target"])[0]]
    return {"parsed_result": letter, "eval_result": right, "guessed": True}


def _value(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


# ---- scores


def _rows_of_scores(rows: Iterable[MetricRow]) -> dict[tuple[str, str], MetricRow]:
    """Return the rows of scores by model and label."""
    own = (row for row in rows if row["metric_type"] == SCORE)
    return {(str(row["model_name"]), str(row["label"])): row for row in own}


def scores_of(
    rows: Iterable[MetricRow], shown: Mapping[str, tuple[str, str]], joined: EntryRows, entries: int
) -> list[ModelScores]:
    """The scores that metric rows hold, by model, in the order of the parsers; `entries` is how many the data have."""
    found = _rows_of_scores(rows)
    scores = list[ModelScores]()
    for model, label in product(sorted({model for model, _ in found}), shown):
        row = found.get((model, label), {})
        cells = msgspec.convert(row.get("cells", {}), dict[str, ScoreCell])
        whole = cells.setdefault(OVERALL, ScoreCell(errored=row.get("errored_count", 0)))
        if whole.entries + whole.errored < entries:
            missing = joined.missing(model, shown[label])
            whole.missing = missing.total()
            for name in joined.benchmarks:
                cells.setdefault(name, ScoreCell()).missing = missing[name]
            cells = {OVERALL: whole} | dict(sorted(cells.items()))
        compatible = row.get("compatible", {})
        scores.append(ModelScores(model=model, label=label, cells=cells, compatible=compatible))
    return scores


# ---- writing


def refuse_others(joined: EntryRows, model: str, folder: ModelFolder, benchmark: str) -> None:
    """Raise if a model has response files, of either layout, that hold anything but its stored rows."""
    for layout, kind, name in _response_files(model, benchmark):
        folder.claim(name, _responses(joined, model, kind, layout))
    folder.refuse_others(
        [name for _, _, name in _response_files(model, benchmark)],
        fix="score them as they are with `assay mixeval score`, or choose another folder with -o",
    )


def write_responses(
    joined: EntryRows, model: str, folder: ModelFolder, benchmark: str, chosen: Layout
) -> None:
    """A model's two response files. Lines end in `.jsonl`, a list in `.json`; that of the other layout is removed."""
    for layout, kind, name in _response_files(model, benchmark):
        if layout == chosen:
            folder.write(name, _responses(joined, model, kind, layout))
        else:
            folder.remove(name)


def _response_files(model: str, benchmark: str) -> Iterator[tuple[Layout, str, str]]:
    """(layout, kind, name) of the files that a model may have."""
    for kind in _SHORT:
        lines = file_name(safe_name(model), kind, benchmark)
        yield "lines", kind, lines
        yield "array", kind, lines.removesuffix("l")


def _responses(joined: EntryRows, model: str, kind: str, layout: Layout) -> Iterator[bytes]:
    rows = map(msgspec.json.Encoder().encode, joined.response_rows(model, kind))
    return (row + b"\n" for row in rows) if layout == "lines" else _array(rows)


def verdict_files(parsers: Parsers) -> dict[str, tuple[str, str]]:
    """The kind and the scorer of each file of verdicts that the original has, `judge_results_{ff,mp}_{rule,model_judge_
    <judge>}.jsonl`. The verdicts of other parsers are only in the engine's rows."""
    by_judge = f"model_judge_{safe_name(parsers.judge.replace('/', '_'))}"
    named: dict[str, tuple[str, str]] = {}
    for kind, scorer in chain(*(zip(_SHORT, pair, strict=True) for pair in parsers.shown.values())):
        if scorer == COMPATIBLE:
            named[f"judge_results_{_SHORT[kind]}_rule.jsonl"] = kind, scorer
        elif parsers.judge and scorer.startswith("judge"):
            named[f"judge_results_{_SHORT[kind]}_{by_judge}.jsonl"] = kind, scorer
    return named


def write_verdicts(
    joined: EntryRows, model: str, folder: ModelFolder, parsers: Parsers, *, trim_base: bool
) -> None:
    encode = msgspec.json.Encoder().encode
    for name, (kind, scorer) in verdict_files(parsers).items():
        rows = joined.verdict_rows(model, kind, scorer, trim_base=trim_base)
        folder.write(name, (encode(row) + b"\n" for row in rows))


def write_scores(folder: ModelFolder, scores: list[ModelScores]) -> None:
    """`score.json` as the original has it, of the first parser; `scores.json` with all that is known."""
    encode = msgspec.json.encode
    folder.write("score.json", [msgspec.json.format(encode(scores[0].compatible), indent=4), b"\n"])
    folder.write("scores.json", [msgspec.json.format(encode(scores), indent=2), b"\n"])


def _array(lines: Iterable[bytes]) -> Iterator[bytes]:
    before = b"[\n"
    for line in lines:
        yield before + line
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"
