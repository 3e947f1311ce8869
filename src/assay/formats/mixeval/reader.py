"""MixEval's response files, verdicts and `score.json` as an experiment, without the benchmark's data: rows hold their
entries. What lies in one benchmark's folders of several models is one experiment.

Files are known by the fields of their first row, whatever they are called: `id`, `response`, and the entry's.
"""

from pathlib import Path
from typing import Any, cast

import msgspec

from assay.foreign import (
    Foreign,
    files_below,
    head_of,
)
from assay.sdk import JsonObject, UserError, reader
from assay.text.json_stream import file_entries


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
    if not found:
        return []
    from assay.formats.mixeval.cases import MixEvalAnswers

    groups: dict[tuple[str, str], list[File]] = {}
    for file in found:
        groups.setdefault((file.benchmark, file.version), []).append(file)
    return [
        MixEvalAnswers(*of, files)
        for of, files in sorted(groups.items())
        if benchmark.replace("-", "_") in ("", of[0])
        and version in ("", of[1])
        and any(file.holds != "entries" for file in files)
    ]


class File(msgspec.Struct):
    """A file and what it holds: responses, verdicts or entries."""

    path: Path
    holds: str
    benchmark: str
    version: str
    model: str


def _look(path: Path) -> File | None:
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
    fields = cast("JsonObject", row)
    holds = _holds(fields)
    return _file_at(path, holds) if holds else None


def _holds(row: JsonObject) -> str:
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


def _file_at(path: Path, holds: str) -> File:
    """Return a file with its owner: `<model>/<benchmark>/<version>/`, or `mixeval-<version>/<benchmark>/` of the data."""
    from assay.formats.mixeval.dataset import BENCHMARKS
    from assay.formats.mixeval.finding import model_by_name

    names = [folder.name for folder in path.absolute().parents[:3]]
    names += [""] * (3 - len(names))
    plain = [name.lower().replace("-", "_") for name in names]
    if holds == "entries":
        version = names[1].removeprefix("mixeval-") if names[1].startswith("mixeval-") else ""
        return File(path, holds, plain[0] if plain[0] in BENCHMARKS else "mixeval", version, "")
    if plain[1] in BENCHMARKS:
        return File(path, holds, plain[1], names[0], names[2])
    if plain[0] in BENCHMARKS:
        return File(path, holds, plain[0], "", names[1])
    hard = "mixeval_hard" if path.stem.lower().endswith("_hard") else "mixeval"
    return File(
        path,
        holds,
        hard,
        "",
        _model(path) if holds == "verdicts" else model_by_name(path) or names[0],
    )


def _model(path: Path) -> str:
    """Return the model whose verdicts lie in a folder: the one that its response files name, if they agree."""
    from assay.formats.mixeval.finding import model_by_name

    names = {model_by_name(file) for file in path.parent.glob("*.json*")} - {""}
    return names.pop() if len(names) == 1 else path.absolute().parent.name
