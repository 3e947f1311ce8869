"""`make bench [ONLY=name]`: run every benchmark, print one table, exit 1 if a bound is not met."""

import sys
from importlib import import_module

from benchmarks.measure import Line

GROUPS = (
    "engine",
    "graph",
    "streaming",
    "likelihood",
    "faults",
    "startup",
    "scoring",
    "matches",
    "comparison",
    "coverage",
    "gates",
    "ranking",
    "aggregation",
    "verify",
    "workers",
    "cluster",
    "viewer",
    "dimensions",
    "report",
    "mixeval",
    "ragicamp",
    "conversion",
    "lm_eval_logs",
    "text_metrics",
    "harness",
    "imports",
)


def main(only: list[str]) -> int:
    lines: list[Line] = []
    for group in GROUPS:
        for benchmark in import_module(f"benchmarks.{group}").BENCHMARKS:
            if only and benchmark.__name__ not in only:
                continue
            print(f"… {benchmark.__name__}", file=sys.stderr, flush=True)
            lines += benchmark()
    width = max((len(line.what) for line in lines), default=0)
    for line in lines:
        verdict = "ok  " if line.holds() else "MISS"
        print(
            f"{verdict}  {line.what:<{width}}  {line.value:>9.3f}  {line.sign} {line.bound:g}   {line.detail}"
        )
    return 0 if all(line.holds() for line in lines) else 1


sys.exit(main(sys.argv[1:]))
