"""The page docs/benchmarks_matrix.md from the outcomes: `python -m tools.benchmark_matrix.page OUTCOMES.json`."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/benchmarks_matrix.md"
STAGES = ("loads", "binds", "runs")
KINDS = {  # of reasons, by how they begin
    "needs code of the hub": "needs code of the hub",
    "needs": "needs a package that was not installed for this table",
    "its documents have": "its documents have images or audio",
    "lm-eval": "fails in lm-eval 0.4.13 as well",
}
OTHER = "other reasons"
NO_ROWS = "no rows were found on which it runs; on its own data it may"
HEAD = """# What runs

All tasks of lm-evaluation-harness 0.4.13 on synthetic rows, which have the fields that a task's templates and functions
read. *Loads*: the YAML and its functions; *binds*: documents and requests are made; *runs*: answers are scored and
aggregated, with standard errors. The page is made by `tools/benchmark_matrix` (see its files), on a machine with the
packages that tasks import as far as they can be installed by pip. Tasks that differ in names, texts of descriptions and
configs of their data alone are tried once.

`assay list benchmarks --unsupported` prints the reason of every task that cannot run on the machine it is on. Tasks for
which no rows were found are not among them: what they need of their data is not in their code.
"""


def kind(reason: str) -> str:
    if not reason:
        return NO_ROWS
    return next((name for start, name in KINDS.items() if reason.startswith(start)), OTHER)


def reached(rows: list[dict[str, Any]]) -> list[int]:
    return [sum(row["stage"] in STAGES[at:] for row in rows) for at in range(len(STAGES))]


def page(rows: list[dict[str, Any]]) -> str:
    lines = [HEAD, "| output type | tasks | load | bind | run |", "|---|---:|---:|---:|---:|"]
    types = Counter(row["output_type"] for row in rows)
    for name, count in types.most_common():
        lines.append(
            _line(f"`{name}`", count, reached([row for row in rows if row["output_type"] == name]))
        )
    lines.append(_line("**all**", len(rows), reached(rows)))
    lines.append(
        "| share | | " + " | ".join(f"{count / len(rows):.1%}" for count in reached(rows)) + " |"
    )
    hub = [row for row in rows if kind(row["reason"]) == KINDS["needs code of the hub"]]
    rest = [row for row in rows if row not in hub]
    lines.append(_line("without those that need code of the hub", len(rest), reached(rest)))
    stopped = [row for row in rows if row["stage"] != "runs"]
    lines += [
        "",
        f"Why {len(stopped)} do not run:",
        "",
        "| reason | tasks | load | bind | for example |",
        "|---|---:|---:|---:|---|",
    ]
    for name, count in Counter(kind(row["reason"]) for row in stopped).most_common():
        part = [row for row in stopped if kind(row["reason"]) == name]
        lines.append(_line(name, count, reached(part)[:2]) + f" `{part[0]['task']}` |")
    lines += ["", "In detail:", "", "| reason | tasks |", "|---|---:|"]
    details = Counter(re.sub(r": pip install .*", "", row["reason"] or NO_ROWS) for row in stopped)
    lines += [
        f"| {reason.replace('|', '/')} | {count} |" for reason, count in details.most_common()
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, count: int, parts: list[int]) -> str:
    return f"| {name} | {count} | " + " | ".join(map(str, parts)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(Path(sys.argv[1]).read_text())))
