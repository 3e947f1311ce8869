"""MixEval's response files: found in the original's layout, read as responses of ours, and written from them.

A file is `<model>/<benchmark>/<version>/<model>_close_{freeform,multichoice}[_hard].jsonl`, one object a line; the guideline
shows a JSON list instead. Rows are entries with `id`, `formated_input` and `response`, in any order.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.errors import UserError
from assay.formats.mixeval.entries import benchmark_name
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.records import Item, Response
from assay.store.files import write_file
from assay.store.index import ItemIndex
from assay.store.json_stream import BrokenJson, json_entries
from assay.store.keys import digest

Layout = Literal["lines", "array"]
SPLITS = {FREE_FORM: "freeform", MULTIPLE_CHOICE: "multichoice"}
_NAMES = {
    FREE_FORM: ("freeform", "free-form", "free_form"),
    MULTIPLE_CHOICE: ("multichoice", "multiple-choice", "multiple_choice", "multi-choice"),
}
_COMPARED = ("formated_input", "prompt", "context", "options")


class ModelFiles(msgspec.Struct, kw_only=True):
    """The response files of one model, by kind."""

    model: str
    files: dict[str, Path]


def file_name(model: str, kind: str, benchmark: str) -> str:
    hard = "_hard" if benchmark_name(benchmark) == "mixeval_hard" else ""
    return f"{model}_close_{SPLITS[kind]}{hard}.jsonl"


def find_responses(paths: Sequence[str | Path], benchmark: str, version: str) -> list[ModelFiles]:
    """The models behind some paths: the two files of one model, a model's folder, or a folder of such."""
    given = [Path(path) for path in paths]
    for path in given:
        if not path.exists():
            raise UserError(f"there is no file or folder {str(path)!r}", fix="name a model's folder or its two files")
    plain = [path for path in given if path.is_file()]
    found = [_of_files(plain)] if plain else []
    for folder in (path for path in given if path.is_dir()):
        own = _in_folder(folder, folder.name, benchmark, version)
        below = [_in_folder(sub, sub.name, benchmark, version) for sub in sorted(folder.iterdir()) if sub.is_dir()]
        models = [own] if own else [one for one in below if one]
        if not models:
            expected = (
                f"{folder.name}/{benchmark_name(benchmark)}/{version}/{file_name(folder.name, FREE_FORM, benchmark)}"
            )
            raise UserError(f"there are no responses in {str(folder)!r}", fix=f"looked for files such as {expected}")
        found += models
    repeated = [model for model, count in Counter(one.model for one in found).items() if count > 1]
    if repeated:
        raise UserError(f"the model {repeated[0]!r} is given twice", fix="score it once")
    return found


def _in_folder(folder: Path, model: str, benchmark: str, version: str) -> ModelFiles | None:
    name = benchmark_name(benchmark)
    for place in (folder / name / version, folder / name, folder):
        files = [path for path in sorted(place.glob("*.json*")) if path.is_file()] if place.is_dir() else []
        kinds = {kind: path for path in files if (kind := _kind_by_name(path, hard=name == "mixeval_hard")) is not None}
        if kinds:
            return ModelFiles(model=model, files=kinds)
    return None


def _of_files(paths: Sequence[Path]) -> ModelFiles:
    files: dict[str, Path] = {}
    for path in paths:
        kind = _kind_by_name(path) or _kind_by_row(path)
        if kind in files:
            raise UserError(
                f"two files hold {kind} responses", where=f"{files[kind]} and {path}", fix="name one of each"
            )
        files[kind] = path
    stem = next(iter(files.values())).stem
    cut = min((at for names in _NAMES.values() for name in names if (at := stem.find(name)) > 0), default=len(stem))
    model = stem[:cut].removesuffix("_").removesuffix("-").removesuffix("_close")
    return ModelFiles(model=model or "model", files=files)


def _kind_by_name(path: Path, hard: bool | None = None) -> str | None:
    stem = path.stem.lower()
    if stem.startswith(("judge_results", "status", "score")) or (
        hard is not None and stem.endswith("_hard") and not hard
    ):
        return None
    return next((kind for kind, names in _NAMES.items() if any(name in stem for name in names)), None)


def _kind_by_row(path: Path) -> str:
    for _, row in rows_of(path):
        if isinstance(row, dict):
            return MULTIPLE_CHOICE if "options" in row else FREE_FORM
    raise UserError("the file has no rows", where=str(path))


def rows_of(path: Path) -> Iterator[tuple[str, Any]]:
    """(place, row) of each row, of a list or of lines; what cannot be read ends the file with an error."""
    with path.open("rb") as file:
        try:
            shape, entries = json_entries(file)
            for number, (key, row) in enumerate(entries):
                place = f"{path} [{key or number}]" if shape != "lines" else f"{path}, row {number + 1}"
                yield place, {"id": key, **row} if key and isinstance(row, dict) else row
        except BrokenJson as error:
            raise UserError(
                f"the file is not whole: {error}",
                where=str(path),
                fix="copy it again, or remove what follows; nothing was scored",
            ) from None


class Import:
    """The responses of one model as rows of ours, in the order of the files; collects what is odd about them."""

    def __init__(self, files: ModelFiles, items: ItemIndex) -> None:
        self.files = files
        self.items = items
        self.seen: dict[str, set[str]] = {}
        self.different: list[str] = []
        self.unknown: list[str] = []
        self.order: list[str] = []

    def responses(self) -> Iterator[Response]:
        for kind, path in self.files.files.items():
            seen = self.seen.setdefault(kind, set())
            for place, row in rows_of(path):
                if not isinstance(row, dict) or "id" not in row:
                    raise UserError("a response must be an object with an `id`", where=place)
                id = str(row["id"])
                if id in seen:
                    raise UserError(f"two responses have the id {id!r}", where=place, fix="keep one of them")
                seen.add(id)
                item = self.items.get(f"{kind}/{id}")
                if item is None:
                    self.unknown.append(f"{kind}/{id}")
                    continue
                if any(key in row and row[key] != item.data.get(key) for key in _COMPARED):
                    self.different.append(item.id)
                yield self._response(item, row)

    def _response(self, item: Item, row: dict[str, Any]) -> Response:
        answer = row.get("response")
        text = answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer)
        failed = answer is None
        return Response(
            item_id=item.id,
            sample_id=f"{item.id}_sample_0",
            model_name=self.files.model,
            prompt=str(row.get("formated_input") or item.data["formated_input"]),
            response=text,
            metadata={"model_id": self.files.model, "prompt_template": "mixeval"},
            error="there is no response" if failed else None,
            key=digest("mixeval", item.id.encode(), self.files.model.encode(), text.encode("utf-8", "replace")).hex(),
            task=self.files.model,
            outcome="errored" if failed else "ok",
            error_kind="permanent" if failed else None,
        )


def entry_rows(items: Iterable[Item], responses: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of a response file: every key of the entry, `formated_input`, `id` and `response`."""
    for item in items:
        if item.id in responses:
            entry = {key: value for key, value in item.data.items() if key != "formated_input"}
            yield {
                **entry,
                "target": item.ground_truth,
                "formated_input": item.data["formated_input"],
                "id": item.id.partition("/")[2],
                "response": responses[item.id],
            }


def write_rows(path: Path, rows: Iterable[dict[str, Any]], layout: Layout = "lines") -> None:
    """Write a file of rows, atomically."""
    lines = (json.dumps(row, ensure_ascii=False).encode() for row in rows)
    write_file(path, (line + b"\n" for line in lines) if layout == "lines" else _array(lines))


def _array(lines: Iterable[bytes]) -> Iterator[bytes]:
    before = b"[\n"
    for line in lines:
        yield before + line
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"
