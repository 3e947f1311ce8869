"""`assay export --format mixeval`: any experiment as MixEval's data, response files, verdicts and scores.

The data are in `data/mixeval-<version>/<benchmark>/`, each model's files in `<model>/<benchmark>/<version>/`, so that
`assay mixeval score` and the original score the answers again. Answers that failed, and those to items without an
accepted answer, are in `unscored.jsonl`, which the original does not read.
"""

from datetime import UTC, datetime

import msgspec

from assay.analysis.look.export import WHOLE_ROWS, Export, Tables
from assay.analysis.look.joining import Joining, Series
from assay.analysis.look.side_by_side import SideBySide
from assay.engine.experiment.imports.kept import KEPT, kept_of
from assay.foreign import Rest, content_id
from assay.formats.mixeval.dataset import BENCHMARKS, KINDS, benchmark_name
from assay.formats.mixeval.evaluation_prompts import FREE_FORM
from assay.formats.mixeval.finding import file_name
from assay.formats.mixeval.verdicts import (
    VerdictTally,
    can_score,
    data_entry,
    entry_of,
    own_id,
    response_from,
    response_row,
    right_letter,
    verdict_row,
)
from assay.sdk import Item, JsonObject, UserError, safe_name, writer

_SHORT: dict[str, str] = dict(zip(KINDS, ("ff", "mp"), strict=True))
_UNSCORED = "unscored"
_encode = msgspec.json.Encoder().encode


@writer(name="mixeval", whole="mixeval", holds=WHOLE_ROWS)
def mixeval(
    export: Export, *, benchmark: str = "", version: str = "", label: str = "", extras: bool = True
) -> list[str]:
    """MixEval's files in a folder: the data, and each model's responses, verdicts and scores.

    Parameters:
    benchmark: mixeval or mixeval_hard; by default what was imported, else mixeval
    version: the data's version; by default what was imported, else the day of the last answer
    label: the label that score.json is about; by default the first
    extras: write what MixEval has no field for beside its fields, so that an import gives all rows back
    """
    if export.path is None:
        raise UserError("mixeval writes several files", fix="name a folder with -o")
    run = export.tables.source.manifest("run")
    told: JsonObject = (run.metadata.get("mixeval") if run else None) or {}
    chosen = benchmark_name(benchmark or str(told.get("benchmark") or "mixeval"))
    joining = Joining(export.tables)
    made = list(joining.series())
    day = datetime.fromtimestamp(max((series.timestamp for series in made), default=0.0), UTC)
    named = version or str(told.get("version") or "") or f"{day:%Y-%m-%d}"
    with SideBySide(export.path, force=export.force) as files:
        writing = _Writing(
            joining, files, chosen, safe_name(named), extras, _dataset(export.tables)
        )
        writing.write_data()
        for series in made:
            writing.write_series(series, label)
        files.done()
    return writing.notes()


def _dataset(tables: Tables) -> str:
    manifest = tables.source.manifest("dataset")
    return (manifest.name if manifest else "") or tables.source.name


class _Writing:
    def __init__(
        self,
        joining: Joining,
        files: SideBySide,
        benchmark: str,
        version: str,
        extras: bool,
        dataset: str,
    ) -> None:
        self._joining, self._files = joining, files
        self._benchmark, self._version, self._extras, self._dataset = (
            benchmark,
            version,
            extras,
            dataset,
        )
        self._encoded = any(
            item.id.startswith(tuple(f"{kind}/" for kind in KINDS)) for item in joining.items
        )
        self._unscored = self._graded = self._strays = 0

    def notes(self) -> list[str]:
        said = {
            "answers failed, or their items have no accepted answer: they are in unscored.jsonl": self._unscored,
            "labels are not between 0 and 1, or not 0 or 1 for a choice: no file of verdicts has them": self._graded,
            "answers are to items that the dataset does not have": self._strays,
            "evaluations are of matches and have no place in MixEval's files": self._joining.matches,
        }
        return [f"{count:,} {what}" for what, count in said.items() if count]

    # ---- data

    def write_data(self) -> None:
        folder = f"data/mixeval-{self._version}/{BENCHMARKS[self._benchmark]}"
        for name in KINDS:
            self._files.write(f"{folder}/{name}.json", b"")
        for item in self._joining.items:
            kind, entry, id = self._entry(item)
            name = f"{folder}/{kind if can_score(entry, kind) else _UNSCORED}.json"
            before = b"{\n" if self._files.is_empty(name) else b",\n"
            made = (
                data_entry(item, kind, entry, id, self._benchmark)
                if self._extras
                else entry | own_id(item.id, kind, id)
            )
            self._files.write(name, before + _encode(id) + b": " + _encode(made))
        for name in (*KINDS, _UNSCORED):
            path = f"{folder}/{name}.json"
            if name in KINDS or not self._files.is_empty(path):
                self._files.write(path, b"{}\n" if self._files.is_empty(path) else b"\n}\n")

    def _entry(self, item: Item) -> tuple[str, JsonObject, str]:
        """An item's kind and entry, and its id in the files: MixEval's own where it has one."""
        kind, entry = entry_of(item, self._dataset)
        if item.id.startswith(f"{kind}/"):
            return kind, entry, item.id.removeprefix(f"{kind}/")
        return kind, entry, f"{item.id}-{content_id(item.id)}" if self._encoded else item.id

    # ---- answers

    def write_series(self, series: Series, chosen: str) -> None:
        model = safe_name(series.name)
        folder = f"{model}/{self._benchmark}/{self._version}"
        for kind in KINDS:
            self._files.write(f"{folder}/{file_name(model, kind, self._benchmark)}", b"")
        tally = VerdictTally()
        for response, evaluations in self._joining.cases(series):
            item = self._joining.item(response)
            self._strays += item is None
            item = item or Item(id=str(response["item_id"]), data=str(response.get("prompt") or ""))
            kind, entry, id = self._entry(item)
            row = response_row(response, kind, entry, id)
            answered = response.get("outcome", "ok") in ("ok", "refused")
            scorable = answered and can_score(entry, kind)
            if not scorable:
                self._unscored += 1
                if response.get("outcome") == "errored":
                    row["response"] = None
            if self._extras:
                labels = [evaluation for _, evaluation in evaluations]
                plain = response_from(row, item.id, model, Rest())
                kept = kept_of("mixeval", response, plain, labels)
                if kept:
                    row[KEPT] = kept
            name = file_name(model, kind, self._benchmark) if scorable else f"{_UNSCORED}.jsonl"
            self._files.write(f"{folder}/{name}", _encode(row) + b"\n")
            if scorable or not self._extras:
                self._write_verdicts(folder, row, kind, evaluations, tally)
        if scores := tally.scores(chosen or next(tally.labels(), "")):
            text = msgspec.json.format(_encode(scores), indent=4) + b"\n"
            self._files.write(f"{folder}/score.json", text)

    def _write_verdicts(
        self,
        folder: str,
        row: JsonObject,
        kind: str,
        labels: list[tuple[str, JsonObject]],
        tally: VerdictTally,
    ) -> None:
        plain = {
            name: value for name, value in row.items() if name not in (KEPT, "outcome", "error")
        }
        letter = right_letter(row) if kind != FREE_FORM else ""
        for name, evaluation in labels:
            verdict = verdict_row(plain, evaluation, kind, letter)
            if verdict is None:
                self._graded += 1
                continue
            file = f"judge_results_{_SHORT[kind]}_model_judge_{safe_name(name) or 'label'}.jsonl"
            self._files.write(f"{folder}/{file}", _encode(verdict) + b"\n")
            option = verdict.get("judge_option")
            counted = verdict.get("judge_score") if option is None else float(option == letter)
            if counted is not None:
                tally.add(name, kind, row["benchmark_name"], counted)
