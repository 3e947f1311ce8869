"""Rows of MixEval's files as cases of a reader: entries first, then each model's responses, then its verdicts."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.kept import restored
from assay.foreign import (
    ForeignCase,
    Headline,
    Oddities,
    Rest,
    whole_json,
)
from assay.formats.mixeval.dataset import content_of
from assay.formats.mixeval.plans import COMPATIBLE
from assay.formats.mixeval.reader import File
from assay.formats.mixeval.verdicts import (
    VerdictTally,
    evaluation_from,
    id_of,
    item_from,
    kind_of,
    response_from,
)
from assay.sdk import JsonObject, UserError, as_object, digest, id_hash
from assay.store.keyset import Seen
from assay.text.json_stream import file_entries

_JUDGED = ("judge_results_ff_model_judge_", "judge_results_mp_model_judge_")


_SAID = {
    "broken": "{count:,} places of the files cannot be read: {first}",
    "no_id": "{count:,} rows are not objects with an `id` and are left out, the first at {first}",
    "null": "{count:,} responses are null: they are errors, the first is that of {first!r}",
    "drawn": "{count:,} verdicts were drawn by chance, because nothing could be read: they are unparsed, the first is "
    "that of {first!r}",
    "stray": "{count:,} verdicts are of responses that the response files do not have: these were added, the first is "
    "that of {first!r}",
    "apart": "{count:,} entries have an id that another entry has: they got ids of their own, the first is {first!r}",
    "unfinished": "{count:,} files say that the run was not finished, the first is {first}",
}


class MixEvalAnswers:
    """What models answered to one version of a benchmark."""

    def __init__(self, benchmark: str, version: str, files: list[File]) -> None:
        self.dataset = f"{benchmark}-{version}" if version else benchmark
        self.benchmark, self.version = benchmark, version
        self.planned: int | None = None
        self._files = files
        self._begin()

    def _begin(self) -> None:
        """Forget what was read: how often each thing was odd, and the first of its places; what
        each model's verdicts counted; how many entries there are."""
        self._asked = 0
        self._odd = Oddities(_SAID)
        self._rest = Rest()
        self._tallies: dict[str, VerdictTally] = {}
        self._ids, self._pairs, self._apart = Seen(), Seen(), dict[int, str]()
        self._answered, self._whole = Seen(), Seen()

    @property
    def models(self) -> dict[str, list[File]]:
        by_model: dict[str, list[File]] = {}
        for file in sorted(self._files, key=lambda file: (file.holds != "responses", file.path)):
            if file.holds != "entries":
                by_model.setdefault(file.model, []).append(file)
        return dict(sorted(by_model.items()))

    @property
    def source(self) -> JsonObject:
        return {
            "format": "mixeval",
            "files": [content_stamp(file.path.absolute()) for file in self._files],
        }

    @property
    def facts(self) -> JsonObject:
        kinds = sorted({file.holds for file in self._files})
        known = {"benchmark": self.benchmark, "version": self.version}
        return {"read_from": kinds, "agents": list(self.models), **known}

    def cases(self) -> Iterator[ForeignCase]:
        self._begin()
        yield from self._entries([file.path for file in self._files if file.holds == "entries"])
        models = self.models
        if self._asked:
            self.planned = self._asked * len(models)
        for model, files in models.items():
            answers = [file.path for file in files if file.holds == "responses"]
            verdicts = [file.path for file in files if file.holds == "verdicts"]
            yield from self._answers(model, answers)
            yield from self._verdicts(model, verdicts, answered=bool(answers))
        for folder in {file.path.parent for file in self._files if file.holds == "responses"}:
            self._look_at_status(folder)

    def _look_at_status(self, folder: Path) -> None:
        for file in sorted(folder.glob("status_*.json")):
            said = as_object(whole_json(file)).get("status")
            if isinstance(said, dict) and as_object(said).get("status") != "complete":
                self._odd.note("unfinished", str(file))

    @property
    def rejected(self) -> int:
        return self._odd.count("broken") + self._odd.count("no_id")

    def notes(self) -> list[str]:
        return [*self._odd.notes().values(), *self._rest.notes()]

    def headlines(self) -> list[Headline]:
        """The numbers of each model's `score.json`, with those that its verdicts give."""
        found: list[Headline] = []
        for model, files in self.models.items():
            for folder in sorted({file.path.parent for file in files}):
                scores = {
                    name: value
                    for name, value in as_object(whole_json(folder / "score.json")).items()
                    if type(value) in (int, float)
                }
                found += self._headlines(model, scores) if "overall" in scores else ()
        return found

    def _headlines(self, model: str, scores: dict[str, float]) -> Iterator[Headline]:
        tally = self._tallies.get(model)
        made = {label: tally.scores(label) for label in tally.labels()} if tally else {}
        nearest = min(
            made, key=lambda label: abs(made[label]["overall"] - scores["overall"]), default=""
        )
        ours = made.get(nearest, {})
        for name, value in scores.items():
            where = {"model_name": model} | ({} if name == "overall" else {"benchmark_name": name})
            reason = "" if name in ours else "there are no verdicts in these files"
            yield Headline(
                label=nearest,
                metric=name,
                value=float(value),
                where=where,
                ours=ours.get(name),
                reason=reason,
            )

    def _entries(self, paths: Sequence[Path]) -> Iterator[ForeignCase]:
        for path in paths:
            for _, row in self._rows(path):
                item = self._item(row, whole=True)
                if item is not None:
                    self._asked += 1
                    yield ForeignCase(item=item)

    def _answers(self, model: str, paths: Sequence[Path]) -> Iterator[ForeignCase]:
        """The rows of response files, which may hold their evaluations, too."""
        for path in paths:
            for place, row in self._rows(path):
                case = self._answer(row, model, place)
                if case is None:
                    what = f"two responses of {model!r} have the id {row['id']!r}"
                    raise UserError(what, where=place, fix="keep one of them")
                yield case

    def _verdicts(
        self, model: str, paths: Sequence[Path], *, answered: bool
    ) -> Iterator[ForeignCase]:
        """Yield the rows of verdicts; where no response file has a response, it comes from here.
        `answered`: there are such files."""
        tally = self._tallies.setdefault(model, VerdictTally())
        for path in paths:
            for place, row in self._rows(path):
                label = _label(path, row)
                id = self._known_id(row)
                response, _ = restored(
                    "mixeval", row, response_from(row, id, model, self._rest), place
                )
                evaluation, counted = evaluation_from(row, response, label)
                if counted is not None:
                    tally.add(label, kind_of(row), str(row.get("benchmark_name") or ""), counted)
                if evaluation.outcome == "unparsed" and "outcome" not in row:
                    self._odd.note("drawn", id)
                if id_hash(f"{model}\n{id}") in self._whole:
                    continue
                stray = self._answer(row, model, place)
                if stray is None:
                    yield ForeignCase(evaluations=[evaluation])
                else:
                    if answered:
                        self._odd.note("stray", id)
                    yield stray._replace(evaluations=[evaluation])

    def _rows(self, path: Path) -> Iterator[tuple[str, JsonObject]]:
        for place, row in file_entries(path, partial(self._odd.note, "broken")):
            if (fields := as_object(row)).get("id") not in (None, ""):
                yield place, fields
            else:
                self._odd.note("no_id", place)

    def _answer(self, row: JsonObject, model: str, place: str) -> ForeignCase | None:
        """None for a second response of a model to one entry."""
        item = self._item(row)
        id = self._known_id(row)
        address = id_hash(f"{model}\n{id}")
        if not self._answered.add(address):
            return None
        response, evaluations = restored(
            "mixeval", row, response_from(row, id, model, self._rest), place
        )
        if row.get("response") is None and evaluations is None and "outcome" not in row:
            self._odd.note("null", id)
        if evaluations is not None:
            self._whole.add(address)
        return ForeignCase(item=item, response=response, evaluations=evaluations or ())

    def _item(self, row: JsonObject, *, whole: bool = False) -> JsonObject | None:
        """The item of a row that is new; one whose id another entry has gets an id of its own."""
        id, pair = id_of(row), _pair(row)
        if not self._pairs.add(pair):
            return None
        if not self._ids.add(id_hash(id)):
            if "prompt" not in row:  # it names its entry and does not repeat it
                return None
            id = self._apart[pair] = f"{id}~{pair:016x}"
            self._odd.note("apart", id)
        return {**item_from(row, self.benchmark, whole=whole), "id": id}

    def _known_id(self, row: JsonObject) -> str:
        return self._apart.get(_pair(row), "") or id_of(row) if self._apart else id_of(row)


def _pair(row: JsonObject) -> int:
    """A number for id and content together."""
    parts = (id_of(row).encode("utf-8", "replace"), content_of(row).encode())
    return int.from_bytes(digest("mixeval-entry", *parts)[:8], "big")


def _label(path: Path, row: JsonObject) -> str:
    """Return the label of a file's verdicts: the rule, or the judge that its name says."""
    if "eval_result" in row:
        return COMPATIBLE
    return next(
        (path.stem.removeprefix(start) for start in _JUDGED if path.stem.startswith(start)),
        path.stem,
    )
