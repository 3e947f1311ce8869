"""Every shipped task on synthetic rows, with an interpreter that has lm-eval 0.4.13 and what its tasks import:

python -m tools.benchmark_matrix [--tasks PATTERN] [-o OUTCOMES.json]
"""

import argparse
import fnmatch
import json
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def family(file: str, root: Path) -> str:
    return Path(file).relative_to(root).parts[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", default="*")
    parser.add_argument("--each", type=int, default=0, help="at most this many of a folder")
    parser.add_argument(
        "--again",
        default="",
        help="only the tasks that do not run by this file, whose rest is kept",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", default="")
    options = parser.parse_args()
    from assay.formats.lm_eval.tasks.index import index, roots
    from tools.benchmark_matrix.sweep import work

    root = roots()[-1]
    entries = [entry for entry in index().entries.values() if entry.kind == "task"]
    chosen = [entry for entry in entries if fnmatch.fnmatch(entry.name, options.tasks)]
    kept: list[dict[str, Any]] = []
    if options.again:
        kept = [
            row for row in json.loads(Path(options.again).read_text()) if row["stage"] == "runs"
        ]
        done = {row["task"] for row in kept}
        chosen = [entry for entry in chosen if entry.name not in done]
    if options.each:
        folders: dict[Path, list[Any]] = defaultdict(list)
        for entry in chosen:
            folders[Path(entry.file).parent].append(entry)
        chosen = [
            entry
            for part in folders.values()
            for entry in part[:: max(1, len(part) // options.each)]
        ]
    batches: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for entry in chosen:
        batches[family(entry.file, root)].append((entry.name, entry.file))
    parts = [part[at : at + 1000] for part in batches.values() for at in range(0, len(part), 1000)]
    parts.sort(key=len, reverse=True)
    reasons = {entry.name: entry.unsupported for entry in entries}
    types = {entry.name: entry.output_type for entry in entries}
    made = [
        row | {"reason": reasons[row["task"]], "output_type": types[row["task"]]} for row in kept
    ]
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=40) as pool:
        for number, part in enumerate(pool.imap_unordered(work, parts)):
            made += [
                row | {"reason": reasons[row["task"]], "output_type": types[row["task"]]}
                for row in part
            ]
            if options.output:
                Path(options.output).write_text(json.dumps(made, indent=0))
            if sys.stderr.isatty() or number % 20 == 0:
                print(
                    number,
                    len(parts),
                    len(made),
                    round(time.perf_counter() - begin),
                    file=sys.stderr,
                    flush=True,
                )
    made.sort(key=lambda row: row["task"])
    print(Counter(row["stage"] for row in made), round(time.perf_counter() - begin), "s")
    if options.output:
        Path(options.output).write_text(json.dumps(made, indent=0))


if __name__ == "__main__":
    main()
