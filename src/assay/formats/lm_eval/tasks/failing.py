"""Tasks of lm-eval that cannot run, whatever their data and the answers, and whose YAML does not tell why."""

from fnmatch import fnmatchcase
from pathlib import Path

_TASKS = "/lm_eval/tasks/"
_TOO = "lm-eval 0.4.13 fails, too: "
_FAILING = {  # by the file's path in the folder of tasks
    "afrobench/mafand/prompt_2/*": f"{_TOO}doc_to_text gives a tuple",
    "afrobench/mafand/prompt_3/african-english/*": f"{_TOO}doc_to_text gives a tuple",
    "afrobench/masakhapos/*": f"{_TOO}the aggregation of acc needs lists, and of several references it gets a number",
    "darija_bench/darija_summarization/*": f"{_TOO}a metric has no aggregation",
    "libra/*": "its aggregation gives a dictionary, not a number",
    "lingoly/*": f"{_TOO}a metric calls exact_match without predictions",
}


def failing(file: str) -> str:
    """Why the task of this file cannot run; "" if nothing is known, and for tasks of other folders."""
    _, _, inside = Path(file).as_posix().rpartition(_TASKS)
    return next(
        (reason for pattern, reason in _FAILING.items() if fnmatchcase(inside, pattern)), ""
    )
