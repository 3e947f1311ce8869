"""Where MixEval's response files are, in the original's layout or named one by one. Judge files lie beside them.

`<model>/<benchmark>/<version>/<model>_close_{freeform,multichoice}[_hard].jsonl`, below a folder of models.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from assay import reading
from assay.formats.mixeval.dataset import benchmark_name
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.sdk import UserError
from assay.text.json_stream import BrokenJson, json_entries

SPLITS = {FREE_FORM: "freeform", MULTIPLE_CHOICE: "multichoice"}
_NAMES = {
    FREE_FORM: ("freeform", "free-form", "free_form"),
    MULTIPLE_CHOICE: ("multichoice", "multiple-choice", "multiple_choice", "multi-choice"),
}
_JUDGED = {
    FREE_FORM: "judge_results_ff_model_judge_",
    MULTIPLE_CHOICE: "judge_results_mp_model_judge_",
}


class ModelFiles(msgspec.Struct, kw_only=True):
    """The response files of one model, by kind."""

    model: str
    files: dict[str, Path]


def file_name(model: str, kind: str, benchmark: str) -> str:
    hard = "_hard" if benchmark_name(benchmark) == "mixeval_hard" else ""
    return f"{model}_close_{SPLITS[kind]}{hard}.jsonl"


def find_responses(
    paths: Sequence[str | Path], benchmark: str, version: str, *, judged: bool = False
) -> list[ModelFiles]:
    """The models behind some paths: response files (judge files if `judged`), a model's folder, a folder of such."""
    name = benchmark_name(benchmark)
    given = [Path(path) for path in paths]
    for path in given:
        if not os.path.exists(path):
            raise UserError(
                f"there is no file or folder {str(path)!r}",
                fix="name a model's folder or its two files",
            )
    found = _of_files([path for path in given if path.is_file()], judged)
    for folder in (path for path in given if path.is_dir()):
        found += _below(folder, name, version, judged)
    counts = Counter(one.model for one in found)
    repeated = next((model for model, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise UserError(f"the model {repeated!r} is given twice", fix="score it once")
    return found


def _below(folder: Path, name: str, version: str, judged: bool) -> list[ModelFiles]:
    """Return the models of a folder: it is one's own, or that of several."""
    if own := _in_folder(folder, name, version, judged):
        return [own]
    inner = (sub for sub in sorted(folder.iterdir()) if sub.is_dir())
    models = [one for sub in inner if (one := _in_folder(sub, name, version, judged))]
    if not models:
        expected = folder / name / version / file_name(folder.resolve().name, FREE_FORM, name)
        what = f"there are no {name} responses in {str(folder)!r}"
        raise UserError(what, fix=f"looked for {expected}")
    return models


def _in_folder(folder: Path, benchmark: str, version: str, judged: bool) -> ModelFiles | None:
    for place in (folder / benchmark / version, folder / benchmark, folder):
        if kinds := _kinds_in(place, benchmark, judged):
            named = model_by_name(next(iter(kinds.values()))) if place == folder else ""
            return ModelFiles(model=named or folder.resolve().name, files=_in_order(kinds))
    return None


def _kinds_in(place: Path, benchmark: str, judged: bool) -> dict[str, Path]:
    """Return the response files that lie in a folder, by kind; of the hard ones those on it."""
    kinds: dict[str, Path] = {}
    for path in sorted(place.glob("*.json*")):
        kind, hard = _kind_by_name(path, judged), _is_hard(path)
        is_data = path.stem in SPLITS
        if kind is None or is_data or not path.is_file() or (hard and benchmark != "mixeval_hard"):
            continue
        known = kinds.get(kind)
        if known is not None and hard == _is_hard(known):
            raise _two_files(kind, known, path)
        if known is None or hard:
            kinds[kind] = path
    return kinds


def _is_hard(path: Path) -> bool:
    return path.stem.lower().endswith("_hard")


def _of_files(paths: Sequence[Path], judged: bool) -> list[ModelFiles]:
    models: dict[str, dict[str, Path]] = {}
    for path in paths:
        kind = _kind_by_name(path, judged) or _kind_by_row(path)
        files = models.setdefault(model_by_name(path) or "model", {})
        if kind in files:
            raise _two_files(kind, files[kind], path)
        files[kind] = path
    return [ModelFiles(model=model, files=_in_order(files)) for model, files in models.items()]


def _in_order(files: dict[str, Path]) -> dict[str, Path]:
    return {kind: files[kind] for kind in (FREE_FORM, MULTIPLE_CHOICE) if kind in files}


def _two_files(kind: str, first: Path, second: Path) -> UserError:
    return UserError(
        f"two files hold {kind} responses",
        where=f"{first} and {second}",
        fix="keep or name one of them",
    )


def model_by_name(path: Path) -> str:
    """The model in the name of its file: what stands before the kind; empty if nothing does."""
    stem = path.stem
    places = [
        at for names in _NAMES.values() for name in names if (at := stem.lower().find(name)) >= 0
    ]
    return stem[: min(places, default=0)].rstrip("_-").removesuffix("_close")


def _kind_by_name(path: Path, judged: bool) -> str | None:
    stem = path.stem.lower()
    if judged:
        return next((kind for kind, start in _JUDGED.items() if stem.startswith(start)), None)
    if stem.startswith(("judge_results", "status", "score")):
        return None
    return next(
        (kind for kind, names in _NAMES.items() if any(name in stem for name in names)), None
    )


def _kind_by_row(path: Path) -> str:
    """By the first row that is one: only multiple-choice entries have options."""
    with reading.opened(path) as file:
        try:
            for _, row in json_entries(file)[1]:
                if isinstance(row, dict):
                    return MULTIPLE_CHOICE if "options" in row else FREE_FORM
        except BrokenJson as error:
            raise UserError(f"the file is not JSON: {error}", where=str(path)) from None
    raise UserError("the file has no rows", where=str(path))
