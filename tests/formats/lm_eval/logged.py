"""Logs of lm-eval for tests: the committed ones, and folders with lines of a test's own."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.experiment.imports.headlines import HeadlineCheck
from assay.engine.experiment.imports.results import Imported, import_results
from assay.foreign import ForeignCase
from assay.formats.lm_eval.reader import HarnessLog, lm_eval

LOGS = Path(__file__).parent / "logs"
STAMP, LATER = "2026-01-02T03-04-05.678901", "2026-02-02T03-04-05.678901"


def read(path: Path) -> HarnessLog:
    (results,) = lm_eval(path)
    assert isinstance(results, HarnessLog)
    return results


def item_of(case: ForeignCase) -> dict[str, Any]:
    """The case's item as it is stored."""
    return json.loads(msgspec.json.encode(case.item))


def sample(number: int = 0, **more: Any) -> dict[str, Any]:
    """A line as lm-eval writes it."""
    return {
        "doc_id": number,
        "doc": {"question": f"What is {number} + 1?"},
        "target": str(number + 1),
        "arguments": {
            "gen_args_0": {"arg_0": f"What is {number} + 1?", "arg_1": {"until": ["\n"]}}
        },
        "resps": [[str(number + 1)]],
        "filtered_resps": [str(number + 1)],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": f"d{number}",
        "prompt_hash": f"p{number}",
        "target_hash": f"t{number}",
        "exact_match": 1.0,
    } | more


def report(task: str = "sums", value: float = 1.0, size: int = 3, **more: Any) -> dict[str, Any]:
    """A results file with one task."""
    return {
        "results": {
            task: {"alias": task, "exact_match,none": value, "exact_match_stderr,none": 0.0}
        },
        "group_subtasks": {},
        "configs": {task: {"task": task, "output_type": "generate_until"}},
        "versions": {task: 1.0},
        "n-shot": {task: 0},
        "n-samples": {task: {"original": size, "effective": size}},
        "config": {"model": "local-completions", "limit": None},
        "date": 1_760_000_000.5,
        "lm_eval_version": "0.4.13",
        "model_name": "org/model",
    } | more


def write(
    folder: Path,
    lines: list[dict[str, Any]] | None,
    results: dict[str, Any] | None = None,
    *,
    task: str = "sums",
    stamp: str = STAMP,
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if lines is not None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"samples_{task}_{stamp}.jsonl").write_text(text)
    if results is not None:
        (folder / f"results_{stamp}.json").write_text(json.dumps(results, indent=2))
    return folder


def imported(path: Path, folder: Path) -> Imported:
    (result,) = import_results([path], folder)
    return result


def by_name(result: Imported) -> dict[tuple[str, str], HeadlineCheck]:
    return {(each.where.get("benchmark", ""), each.label): each for each in result.headlines}


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def copied(name: str, folder: Path) -> Path:
    """A committed log, to be damaged."""
    shutil.copytree(LOGS / name, folder / name)
    return folder / name
