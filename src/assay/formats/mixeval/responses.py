"""MixEval's response files: found in the original's layout, and read as responses of ours.

A file is `<model>/<benchmark>/<version>/<model>_close_{freeform,multichoice}[_hard].jsonl`, one object a line;
the guideline shows a JSON list instead. Rows are entries with `id`, `formated_input` and `response`, in any order.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.mixeval.entries import benchmark_name
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.records import Item, Response
from assay.store.index import ItemIndex
from assay.store.json_stream import BrokenJson, json_entries
from assay.store.keys import digest, id_hash
from assay.store.keyset import Seen

SPLITS = {FREE_FORM: "freeform", MULTIPLE_CHOICE: "multichoice"}
_NAMES = {
    FREE_FORM: ("freeform", "free-form", "free_form"),
    MULTIPLE_CHOICE: ("multichoice", "multiple-choice", "multiple_choice", "multi-choice"),
}
_COMPARED = ("prompt", "context", "options")
_SAID = {
    "broken": "{count:,} places of the files are no JSON and are left out: {first}",
    "no_id": "{count:,} rows are no objects with an `id` and are left out, the first at {first}",
    "extra": "{count:,} responses have ids that the data do not have and are left out, the first is {first!r}",
    "different": "{count:,} responses answer another input than the data's and are not scored, the first is {first!r}",
    "null": "{count:,} responses are null and are not scored, the first is {first!r}",
    "empty": "{count:,} responses are empty, the first is {first!r}",
    "missing": "{count:,} entries have no response and are not in the score, the first is {first!r}",
}
HARMLESS = ("empty", "missing")  # a run that goes on has these, too


class ModelFiles(msgspec.Struct, kw_only=True):
    """The response files of one model, by kind."""

    model: str
    files: dict[str, Path]


def file_name(model: str, kind: str, benchmark: str) -> str:
    hard = "_hard" if benchmark_name(benchmark) == "mixeval_hard" else ""
    return f"{model}_close_{SPLITS[kind]}{hard}.jsonl"


def find_responses(paths: Sequence[str | Path], benchmark: str, version: str) -> list[ModelFiles]:
    """The models behind some paths: response files, a model's folder, or a folder of such."""
    name = benchmark_name(benchmark)
    given = [Path(path) for path in paths]
    for path in given:
        if not path.exists():
            raise UserError(f"there is no file or folder {str(path)!r}", fix="name a model's folder or its two files")
    found = _of_files([path for path in given if path.is_file()])
    for folder in (path for path in given if path.is_dir()):
        own = _in_folder(folder, name, version)
        below = [_in_folder(sub, name, version) for sub in sorted(folder.iterdir()) if sub.is_dir()]
        models = [own] if own else [one for one in below if one]
        if not models:
            expected = f"{folder / name / version / file_name(folder.resolve().name, FREE_FORM, name)}"
            raise UserError(
                f"there are no {name} responses in {str(folder)!r}", fix=f"looked for {expected} and others"
            )
        found += models
    repeated = [model for model, count in Counter(one.model for one in found).items() if count > 1]
    if repeated:
        raise UserError(f"the model {repeated[0]!r} is given twice", fix="score it once")
    return found


def _in_folder(folder: Path, benchmark: str, version: str) -> ModelFiles | None:
    for place in (folder / benchmark / version, folder / benchmark, folder):
        files = [path for path in sorted(place.glob("*.json*")) if path.is_file()] if place.is_dir() else []
        kinds: dict[str, Path] = {}
        for path in files:
            kind = _kind_by_name(path)
            hard = path.stem.lower().endswith("_hard")
            if kind is None or (hard and benchmark != "mixeval_hard"):
                continue
            known = kinds.get(kind)
            if known is not None and hard == known.stem.lower().endswith("_hard"):
                raise _two_files(kind, known, path)
            if known is None or hard:
                kinds[kind] = path
        if kinds:
            named = _model_by_name(next(iter(kinds.values()))) if place == folder else ""
            return ModelFiles(model=named or folder.resolve().name, files=_in_order(kinds))
    return None


def _of_files(paths: Sequence[Path]) -> list[ModelFiles]:
    models: dict[str, dict[str, Path]] = {}
    for path in paths:
        kind = _kind_by_name(path) or _kind_by_row(path)
        files = models.setdefault(_model_by_name(path) or "model", {})
        if kind in files:
            raise _two_files(kind, files[kind], path)
        files[kind] = path
    return [ModelFiles(model=model, files=_in_order(files)) for model, files in models.items()]


def _in_order(files: dict[str, Path]) -> dict[str, Path]:
    return {kind: files[kind] for kind in (FREE_FORM, MULTIPLE_CHOICE) if kind in files}


def _two_files(kind: str, first: Path, second: Path) -> UserError:
    return UserError(f"two files hold {kind} responses", where=f"{first} and {second}", fix="keep or name one of them")


def _model_by_name(path: Path) -> str:
    """The model in the name of its file: what stands before the kind; empty if nothing does."""
    stem = path.stem
    places = [at for names in _NAMES.values() for name in names if (at := stem.lower().find(name)) >= 0]
    return stem[: min(places, default=0)].rstrip("_-").removesuffix("_close")


def _kind_by_name(path: Path) -> str | None:
    stem = path.stem.lower()
    if stem.startswith(("judge_results", "status", "score")):
        return None
    return next((kind for kind, names in _NAMES.items() if any(name in stem for name in names)), None)


def _kind_by_row(path: Path) -> str:
    for _, row in rows_of(path):
        if isinstance(row, dict):
            return MULTIPLE_CHOICE if "options" in row else FREE_FORM
    raise UserError("the file has no rows", where=str(path))


# ---- reading


def rows_of(path: Path, broken: Callable[[str], None] = lambda what: None) -> Iterator[tuple[str, Any]]:
    """(place, row) of each row, of a list, an object by id, or lines. What is no JSON is said to `broken`: a bad line
    is left out, any other file ends there."""
    try:
        with path.open("rb") as file:
            shape, entries = json_entries(file)
            if shape == "lines" and _one_a_line(path):
                yield from _lines(path, broken)
                return
            for number, (key, row) in enumerate(entries):
                place = f"{path} [{key or number}]"
                yield place, {"id": key, **row} if key and isinstance(row, dict) else row
    except BrokenJson as error:
        broken(f"{path} is not whole JSON, what follows is not read: {error}")
    except OSError as error:
        raise UserError(f"the responses cannot be read: {error.strerror}", where=str(path)) from None


def _one_a_line(path: Path) -> bool:
    """Whether a line is a value: values may also go over several lines each."""
    with path.open("rb") as file:
        for line in islice(file, 3):
            try:
                return isinstance(msgspec.json.decode(line), dict)
            except (ValueError, RecursionError):
                continue
    return False


def _lines(path: Path, broken: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    decode, name = msgspec.json.Decoder().decode, str(path)
    with path.open("rb", buffering=1 << 20) as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                row = decode(line)
            except (ValueError, RecursionError):
                try:  # NaN and the like
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    broken(f"{name}:{number} is no JSON and is left out: {error}")
                    continue
            yield f"{name}:{number}", row


class Import:
    """The responses of one model as rows of ours, in the order of the files; counts what is odd about them."""

    def __init__(self, files: ModelFiles, items: ItemIndex) -> None:
        self.files = files
        self.items = items
        self.odd: dict[str, list[Any]] = {}  # what is odd: how many rows, and the first
        self.read = False
        self._seen = Seen()
        self._rows = 0

    def responses(self) -> Iterator[Response]:
        """Every readable row that belongs to an entry. Raises if they answer other questions than the data ask."""
        for kind, path in self.files.files.items():
            for place, row in rows_of(path, lambda what: self._note("broken", what)):
                if not isinstance(row, dict) or row.get("id") in (None, ""):
                    self._note("no_id", place)
                    continue
                id = f"{kind}/{row['id']}"
                if not self._seen.add(id_hash(id)):
                    raise self._repeated(path, str(row["id"]), place)
                self._rows += 1
                item = self.items.get(id)
                if item is None:
                    self._note("extra", id)
                    continue
                yield self._response(item, row)
        self._check_version()
        self._find_missing()
        self.read = True

    def problems(self) -> dict[str, str]:
        return {what: _SAID[what].format(count=count, first=first) for what, (count, first) in self.odd.items()}

    def _note(self, what: str, first: str) -> None:
        self.odd.setdefault(what, [0, first])[0] += 1

    def _response(self, item: Item, row: dict[str, Any]) -> Response:
        answer = row.get("response")
        text = answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer)
        error = "there is no response" if answer is None else None
        if error:
            self._note("null", item.id)
        elif not text.strip():
            self._note("empty", item.id)
        if _asks_otherwise(row, item.data):
            error = error or "the stored input is not that of the data"
            self._note("different", item.id)
        name = self.files.model
        content = digest("mixeval", item.id.encode(), name.encode(), text.encode("utf-8", "surrogatepass"))
        return Response(
            item_id=item.id,
            sample_id=f"{item.id}_sample_0",
            model_name=name,
            prompt=str(row.get("formated_input") or item.data["formated_input"]),
            response=text,
            metadata={"model_id": name, "prompt_template": "mixeval"},
            error=error,
            key=content.hex(),
            task=name,
            outcome="errored" if error else "ok",
            error_kind="permanent" if error else None,
        )

    def _check_version(self) -> None:
        known = self._rows - self.odd.get("extra", [0])[0]
        count, first = self.odd.get("different", [0, ""])
        if self._rows and not known:
            raise UserError(
                f"none of the {self._rows:,} responses belongs to an entry of the data; the first is "
                f"{self.odd['extra'][1]!r}",
                where=self._where(),
                fix="check --version, --benchmark and --data",
            )
        if count * 2 > known:
            raise UserError(
                f"these are responses to other questions: {count:,} of {known:,} stored inputs are not the data's; the "
                f"first is that of {first!r}",
                where=self._where(),
                fix="name the version and benchmark that were answered with --version and --benchmark",
            )

    def _find_missing(self) -> None:
        decode = msgspec.json.Decoder(_Id).decode
        for _, line in self.items.log.scan():
            id = decode(line).id
            if self._seen.add(id_hash(id)):
                self._note("missing", id)

    def _repeated(self, path: Path, id: str, place: str) -> UserError:
        first = next(at for at, row in rows_of(path) if isinstance(row, dict) and str(row.get("id")) == id)
        return UserError(f"two responses have the id {id!r}", where=f"{first} and {place}", fix="keep one of them")

    def _where(self) -> str:
        return ", ".join(str(path) for path in self.files.files.values())


class _Id(msgspec.Struct):
    id: str


def _asks_otherwise(row: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether a row was made from another input. A chat template or a base model's examples may stand around it."""
    stored = row.get("formated_input")
    if isinstance(stored, str):
        return data["formated_input"] not in stored
    return any(key in row and row[key] != data.get(key) for key in _COMPARED)
