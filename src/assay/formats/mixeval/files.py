"""What MixEval keeps of a model: response files, verdict files and `score.json`, under the original's names.

All are projections of the engine's rows, written in the order of the response file; of each row only its place is held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.errors import UserError
from assay.formats.mixeval import compat
from assay.formats.mixeval.dataset import Row
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.finding import file_name
from assay.formats.mixeval.metric import OVERALL, SCORE, ModelScores, ScoreCell
from assay.formats.mixeval.plans import COMPATIBLE, Layout, Parsers
from assay.interfaces import Log, Store
from assay.records import MetricRow
from assay.store.files import safe_name
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


class _Named(msgspec.Struct):
    item_id: str
    model_name: str = ""
    scorer: str = ""
    sample_index: int = 0
    part: tuple[int, int] = (0, 1)


class _Metadata(msgspec.Struct):
    benchmark_name: str = ""


class _Entry(msgspec.Struct):
    id: str
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Item(msgspec.Struct):
    id: str
    data: dict[str, msgspec.Raw]
    ground_truth: msgspec.Raw


class _Answer(msgspec.Struct):
    response: msgspec.Raw
    outcome: str = "ok"


class _Verdict(msgspec.Struct):
    passed: bool | None = None
    score: float | None = None
    outcome: str = "scored"
    error: str | None = None
    detailed_results: Row = {}


class Joined:
    """The rows of one experiment by entry: where its item, each model's response and each verdict are in their logs."""

    def __init__(self, store: Store, id: str, *, file_order: bool) -> None:
        self.items, self.run = store.log("dataset", id), store.log("run", id)
        self.evaluations = store.log("evaluation", id)
        self._file_order = file_order

    @cached_property
    def _entries(self) -> dict[str, tuple[int, str]]:
        """The place and the benchmark of each entry, in the order of the data."""
        return {
            row.id: (position, row.metadata.benchmark_name)
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
        verdicts = dict(
            zip(
                _SHORT, (self._verdicts.get((model, scorer), {}) for scorer in scorers), strict=True
            )
        )
        entries = self._entries.items()
        return Counter(
            benchmark for id, (_, benchmark) in entries if id not in verdicts[id.partition("/")[0]]
        )

    def response_rows(self, model: str, kind: str) -> Iterator[Row]:
        """Every key of the entry, then `formated_input`, `id` and `response`. Errors have no response and no row."""
        return (row for row, _ in self._rows(model, kind, None))

    def verdict_rows(
        self, model: str, kind: str, scorer: str, *, trim_base: bool = False
    ) -> Iterator[Row]:
        """The same rows with the verdict of a parser or a judge, in the original's keys."""
        guesses = compat.Guesses()
        for row, verdict in self._rows(model, kind, self._verdicts.get((model, scorer))):
            if verdict is not None:
                yield {**row, **_verdict_fields(row, verdict, kind, scorer, guesses, trim_base)}

    def _rows(
        self, model: str, kind: str, verdicts: Places | None
    ) -> Iterator[tuple[Row, _Verdict | None]]:
        """(row, verdict) in the order of the model's file, or of the data where the file is ours; values that need no
        look stay the JSON that they are."""
        decode_item, decode = (
            msgspec.json.Decoder(_Item).decode,
            msgspec.json.Decoder(_Answer).decode,
        )
        decode_verdict = msgspec.json.Decoder(_Verdict).decode
        entries, answers = self._entries, self._responses.get(model, {})
        for id in answers if self._file_order else entries:
            if id not in entries or id not in answers or not id.startswith(f"{kind}/"):
                continue
            answer = decode(self.run.read(answers[id]))
            if answer.outcome == "errored":
                continue
            item = decode_item(self.items.read(entries[id][0]))
            row: Row = {key: value for key, value in item.data.items() if key != "formated_input"}
            row["target"] = item.ground_truth
            row["formated_input"] = item.data["formated_input"]
            row["id"] = item.id.partition("/")[2]
            row["response"] = answer.response
            at = None if verdicts is None else verdicts.get(id)
            yield row, None if at is None else decode_verdict(self.evaluations.read(at))


def _places(log: Log) -> dict[tuple[str, str], Places]:
    """By model and scorer: where the row of each entry is."""
    places: dict[tuple[str, str], Places] = {}
    for position, row in read_rows(log, _Named):
        if not row.sample_index and not row.part[0] and row.part[1]:
            places.setdefault((row.model_name, row.scorer), {})[row.item_id] = position
    return places


def _verdict_fields(
    row: Row,
    verdict: _Verdict,
    kind: str,
    scorer: str,
    guesses: compat.Guesses,
    trim_base: bool,
) -> Row:
    details = verdict.detailed_results
    failed = (
        {} if verdict.outcome == "scored" else {"outcome": verdict.outcome, "error": verdict.error}
    )
    if scorer != COMPATIBLE:
        found = (
            {"judge_score": verdict.score}
            if kind == FREE_FORM
            else {"judge_option": details.get("verdict")}
        )
        return {"judge_response": details.get("raw", ""), **found, **failed}
    if kind == FREE_FORM:
        text = _value(row["response"])
        text = compat.first_answer(text, multiple_choice=False) if trim_base else text
        return {
            "parsed_result": compat.predictions(text),
            "eval_result": bool(verdict.passed),
            **failed,
        }
    if verdict.outcome != "unparsed":
        return {
            "parsed_result": details.get("parsed"),
            "eval_result": bool(verdict.passed),
            **failed,
        }
    count = len(_value(row["options"]))
    letter = guesses.draw(count)
    right = letter == compat.letters(count)[_value(row["target"])[0]]
    return {"parsed_result": letter, "eval_result": right, "guessed": True}


def _value(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


# ---- scores


def scores_of(
    rows: Iterable[MetricRow], shown: Mapping[str, tuple[str, str]], joined: Joined, entries: int
) -> list[ModelScores]:
    """The scores that metric rows hold, by model, in the order of the parsers; `entries` is how many the data have."""
    found = {
        (str(row["model_name"]), str(row["label"])): row
        for row in rows
        if row["metric_type"] == SCORE
    }
    scores: list[ModelScores] = []
    for model in sorted({model for model, _ in found}):
        for label, scorers in shown.items():
            row = found.get((model, label), {})
            cells = msgspec.convert(row.get("cells", {}), dict[str, ScoreCell])
            whole = cells.setdefault(OVERALL, ScoreCell(errored=row.get("errored_count", 0)))
            if whole.entries + whole.errored < entries:
                missing = joined.missing(model, scorers)
                whole.missing = missing.total()
                for name in joined.benchmarks:
                    cells.setdefault(name, ScoreCell()).missing = missing[name]
                cells = {OVERALL: whole} | dict(sorted(cells.items()))
            scores.append(
                ModelScores(
                    model=model, label=label, cells=cells, compatible=row.get("compatible", {})
                )
            )
    return scores


# ---- writing


def refuse_others(joined: Joined, model: str, folder: ModelFolder, benchmark: str) -> None:
    """Raise if a model has response files, of either layout, that hold anything but its stored rows."""
    for layout, kind, name in _response_files(model, benchmark):
        folder.claim(name, _responses(joined, model, kind, layout))
    folder.refuse_others(
        [name for _, _, name in _response_files(model, benchmark)],
        fix="score them as they are with `assay mixeval score`, or choose another folder with -o",
    )


def write_responses(
    joined: Joined, model: str, folder: ModelFolder, benchmark: str, chosen: Layout
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


def _responses(joined: Joined, model: str, kind: str, layout: Layout) -> Iterator[bytes]:
    rows = map(msgspec.json.Encoder().encode, joined.response_rows(model, kind))
    return (row + b"\n" for row in rows) if layout == "lines" else _array(rows)


def verdict_files(parsers: Parsers) -> dict[str, tuple[str, str]]:
    """The kind and the scorer of each file of verdicts that the original has, `judge_results_{ff,mp}_{rule,model_judge_
    <judge>}.jsonl`. The verdicts of other parsers are only in the engine's rows."""
    by_judge = f"model_judge_{safe_name(parsers.judge.replace('/', '_'))}"
    named: dict[str, tuple[str, str]] = {}
    for pair in parsers.shown.values():
        for kind, scorer in zip(_SHORT, pair, strict=True):
            by = (
                "rule"
                if scorer == COMPATIBLE
                else by_judge
                if parsers.judge and scorer.startswith("judge")
                else ""
            )
            if by:
                named[f"judge_results_{_SHORT[kind]}_{by}.jsonl"] = kind, scorer
    return named


def write_verdicts(
    joined: Joined, model: str, folder: ModelFolder, parsers: Parsers, *, trim_base: bool
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
