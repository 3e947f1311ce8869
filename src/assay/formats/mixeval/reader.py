"""MixEval's response files, verdicts and `score.json` as an experiment, without the benchmark's data: rows hold their
entries. What lies in one benchmark's folders of several models is one experiment.

Files are known by the fields of their first row, whatever they are called: `id`, `response`, and the entry's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    Rest,
    files_below,
    head_of,
    whole_json,
)
from assay.errors import UserError
from assay.registry import reader
from assay.text.json_stream import file_entries

if TYPE_CHECKING:
    from assay.formats.mixeval.verdicts import Tally

Row = dict[str, Any]
_HOLDS = ("responses", "verdicts")
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


@reader
def mixeval(path: Path, *, benchmark: str = "", version: str = "") -> list[Foreign]:
    """A folder with MixEval's responses or verdicts of one or several models, or one of these files.

    Parameters:
    benchmark: only the results on mixeval or mixeval_hard
    version: only those on this version of the data
    """
    found = [
        file for name in files_below(path, ".jsonl", ".json") if (file := _look(name)) is not None
    ]
    groups: dict[tuple[str, str], list[_File]] = {}
    for file in found:
        groups.setdefault((file.benchmark, file.version), []).append(file)
    return [
        Answers(*of, files)
        for of, files in sorted(groups.items())
        if benchmark.replace("-", "_") in ("", of[0])
        and version in ("", of[1])
        and any(file.holds != "entries" for file in files)
    ]


class _File(msgspec.Struct):
    """A file and what it holds: responses, verdicts or entries."""

    path: Path
    holds: str
    benchmark: str
    version: str
    model: str


def _look(path: Path) -> _File | None:
    head = head_of(path)
    if b'"id"' not in head and b'"target"' not in head:
        return None
    if not any(
        mark in head for mark in (b'"formated_input"', b'"benchmark_name"', b'"problem_type"')
    ):
        return None
    try:
        row: Any = next((row for _, row in file_entries(path, str)), None)
    except (UserError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    fields = cast("Row", row)
    holds = _holds(fields)
    return _placed(path, holds) if holds else None


def _holds(row: Row) -> str:
    is_entry = (
        "target" in row
        and isinstance(row.get("prompt"), str)
        and isinstance(row.get("benchmark_name"), str)
    )
    if "id" not in row or not (is_entry or isinstance(row.get("formated_input"), str)):
        return ""
    if "eval_result" in row or "judge_response" in row:
        return "verdicts"
    return "responses" if "response" in row else "entries" if is_entry else ""


def _placed(path: Path, holds: str) -> _File:
    """Whose file it is: `<model>/<benchmark>/<version>/`, or `mixeval-<version>/<benchmark>/` of the data."""
    from assay.formats.mixeval.dataset import BENCHMARKS
    from assay.formats.mixeval.finding import model_by_name

    names = [folder.name for folder in path.absolute().parents[:3]]
    names += [""] * (3 - len(names))
    plain = [name.lower().replace("-", "_") for name in names]
    if holds == "entries":
        version = names[1].removeprefix("mixeval-") if names[1].startswith("mixeval-") else ""
        return _File(path, holds, plain[0] if plain[0] in BENCHMARKS else "mixeval", version, "")
    if plain[1] in BENCHMARKS:
        return _File(path, holds, plain[1], names[0], names[2])
    if plain[0] in BENCHMARKS:
        return _File(path, holds, plain[0], "", names[1])
    hard = "mixeval_hard" if path.stem.lower().endswith("_hard") else "mixeval"
    return _File(
        path,
        holds,
        hard,
        "",
        _model(path, holds) if holds == "verdicts" else model_by_name(path) or names[0],
    )


def _model(path: Path, holds: str) -> str:
    """Whose verdicts lie in a folder: the model that its response files name, if they agree."""
    from assay.formats.mixeval.finding import model_by_name

    names = {model_by_name(file) for file in path.parent.glob("*.json*")} - {""}
    return names.pop() if len(names) == 1 else path.absolute().parent.name


class Answers:
    """What models answered to one version of a benchmark."""

    def __init__(self, benchmark: str, version: str, files: list[_File]) -> None:
        self.dataset = f"{benchmark}-{version}" if version else benchmark
        self.benchmark, self.version = benchmark, version
        self.rejected = 0
        self.planned: int | None = None
        self._files = files
        self._odd: dict[str, list[Any]] = {}
        self._rest = Rest()
        self._tallies: dict[str, Tally] = {}

    @property
    def models(self) -> dict[str, list[_File]]:
        by_model: dict[str, list[_File]] = {}
        for file in sorted(self._files, key=lambda file: (file.holds != "responses", file.path)):
            if file.holds != "entries":
                by_model.setdefault(file.model, []).append(file)
        return dict(sorted(by_model.items()))

    @property
    def source(self) -> Row:
        from assay.engine.experiment.dataset import content_stamp

        return {
            "format": "mixeval",
            "files": [content_stamp(file.path.absolute()) for file in self._files],
        }

    @property
    def facts(self) -> Row:
        kinds = sorted({file.holds for file in self._files})
        known = {"benchmark": self.benchmark, "version": self.version}
        return {"read_from": kinds, "agents": list(self.models), **known}

    def cases(self) -> Iterator[ForeignCase]:
        from assay.formats.mixeval.cases import Cases

        self._odd, self._rest, self.rejected = {}, Rest(), 0
        made = Cases(self.benchmark, self._note, self._rest)
        self._tallies = made.tallies
        yield from made.entries([file.path for file in self._files if file.holds == "entries"])
        models = self.models
        if made.asked:
            self.planned = made.asked * len(models)
        for model, files in models.items():
            answers, verdicts = (
                [file.path for file in files if file.holds == kind] for kind in _HOLDS
            )
            yield from made.answers(model, answers)
            yield from made.verdicts(model, verdicts, answered=bool(answers))
        for folder in {file.path.parent for file in self._files if file.holds == "responses"}:
            self._look_at_status(folder)

    def _look_at_status(self, folder: Path) -> None:
        for file in sorted(folder.glob("status_*.json")):
            said = _object(file).get("status")
            if isinstance(said, dict) and cast("Row", said).get("status") != "complete":
                self._note("unfinished", str(file))

    def _note(self, what: str, first: str) -> None:
        self._odd.setdefault(what, [0, first])[0] += 1
        self.rejected += what in ("broken", "no_id")

    def notes(self) -> list[str]:
        said = [
            _SAID[what].format(count=count, first=first)
            for what, (count, first) in self._odd.items()
        ]
        return [*said, *self._rest.notes()]

    def headlines(self) -> list[Headline]:
        """The numbers of each model's `score.json`, with those that its verdicts give."""
        found: list[Headline] = []
        for model, files in self.models.items():
            for folder in sorted({file.path.parent for file in files}):
                scores = {
                    name: value
                    for name, value in _object(folder / "score.json").items()
                    if _is_number(value)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _object(path: Path) -> Row:
    """Return the object in a file; empty for anything else."""
    found = whole_json(path)
    return cast("Row", found) if isinstance(found, dict) else {}
