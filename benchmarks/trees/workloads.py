"""What `make bench` measures, as commands that every tree has. Each is so large that it takes one to four seconds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trees.core import (
    PLAYERS,
    aggregate,
    answered,
    compare,
    flow,
    matches,
    rank,
    rouge,
    squad,
)
from benchmarks.trees.formats import LIBRARY, graph, mixeval, three_files

Words = tuple[str, ...]
QUIET = "--no-progress"


@dataclass(frozen=True)
class Workload:
    """`inputs` writes the same files for every tree, `setup` are a tree's own commands before anything is measured,
    `fresh` is removed before each measured command. A command is words for `assay`, or Python code."""

    name: str
    inputs: Callable[[Path], None]
    command: Words | str | list[Words]
    setup: tuple[Words | str, ...] = ()
    fresh: tuple[str, ...] = ()


def _nothing(folder: Path) -> None: ...


VERBS: list[Words] = [
    ("list", "scorer"),
    ("show", "exact_match"),
    ("schema",),
    ("ls", "."),
    ("--version",),
    ("init", "--list"),
    ("dataset", "ls", "--repository", "."),
    ("mixeval", "--help"),
    ("sygra", "--help"),
    ("run", "--help"),
]
_INFERENCE = ("run", "answered.yaml", "--mode", "inference", QUIET)
_EVALUATE = ("evaluate", "out", QUIET)
_SCORE = ("mixeval", "score", "responses", "--data", "data", "-o", "scores", QUIET)
_BY_KIND = ("--free-form-parser", "rule-compat", "--multi-choice-parser", "rule")
_EVALUATIONS = ("out/evaluation*", "out/metrics*", "out/superseded")
_REOPEN = "import assay\nfor _ in range(40):\n    assert assay.run('answered.yaml').run.complete\n"

WORKLOADS = (
    Workload("flow", flow, ("run", "flow.yaml", QUIET), fresh=("out",)),
    Workload("score", answered, _EVALUATE, setup=(_INFERENCE,), fresh=_EVALUATIONS),
    Workload("squad", squad, _EVALUATE, setup=(_INFERENCE,), fresh=_EVALUATIONS),
    Workload("rouge", rouge, _EVALUATE, setup=(_INFERENCE,), fresh=_EVALUATIONS),
    Workload(
        "aggregate",
        aggregate,
        ("aggregate", "rows", "-c", "metrics.yaml"),
        fresh=("rows/manifest*", "rows/metrics*"),
    ),
    Workload("reopen", answered, _REOPEN, setup=(("run", "answered.yaml", QUIET),)),
    Workload("compare", compare, ("compare", "one", "other")),
    Workload(
        "matches",
        matches,
        ("evaluate", "large", "small", "-c", "pairs.yaml", "-o", "arena", QUIET),
        setup=tuple(
            ("run", f"{name}.yaml", "--mode", "inference", "-o", name, QUIET) for name in PLAYERS
        ),
        fresh=("arena",),
    ),
    Workload("rank", rank, ("rank", "evaluation_results.jsonl")),
    Workload(
        "graph",
        graph,
        ("sygra", "--task", "bench", "-n", "0", "-b", "64", "-dm", "True", "-od", "out", QUIET),
        fresh=("out", "tasks/bench/.assay"),
    ),
    Workload("mixeval_rule", mixeval, (*_SCORE, *_BY_KIND), fresh=("scores",)),
    Workload("mixeval_compat", mixeval, (*_SCORE, "--parser", "rule-compat"), fresh=("scores",)),
    Workload(
        "ragicamp_read", three_files, ("import", "given", "-o", "imported"), fresh=("imported",)
    ),
    Workload(
        "ragicamp_write",
        three_files,
        ("export", "imported", "--format", "ragicamp", "-o", "again"),
        setup=(("import", "given", "-o", "imported"),),
        fresh=("again",),
    ),
    Workload("library", _nothing, LIBRARY, fresh=("library",)),
    Workload("help", _nothing, [("--help",)] * 20),
    Workload("verbs", _nothing, VERBS * 2),
)
