"""Why a task cannot run, decided by reading its files only."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from assay.formats.lm_eval.facade.class_tasks import REFUSED, is_plain
from assay.formats.lm_eval.facade.hub_metrics import METRICS
from assay.formats.lm_eval.facade.names import NAMES
from assay.formats.lm_eval.facade.packages import ALWAYS, PACKAGE
from assay.formats.lm_eval.facade.sources import reach, source
from assay.formats.lm_eval.tasks.hooks import Hook


def hooks_in(value: Any) -> Iterator[Hook]:
    """Every hook in a value of YAML."""
    if isinstance(value, Hook):
        yield value
    elif isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            yield from hooks_in(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from hooks_in(part)


def refusal(keys: Mapping[str, Any]) -> str:
    """Why a task of these keys cannot run on any machine; "" if it can."""
    for hook in hooks_in(dict(keys)):
        problem = source(hook.file).problem if hook.file else ""
        if problem:
            return f"broken Python: {problem}"
    kind = keys.get("class")
    if kind is not None and not (isinstance(kind, Hook) and is_plain(kind)):
        return REFUSED
    if keys.get("doc_to_image") is not None:
        return "its documents have images"
    if keys.get("doc_to_audio") is not None:
        return "its documents have audio"
    return ""


def packages(keys: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages that a task's hooks import besides Python's and Assay's own, and the metrics that they take from
    the hub and that are not computed here."""
    modules: set[str] = set()
    metrics: set[str] = set()
    for hook in hooks_in(dict(keys)):
        if hook.file is None:
            modules.add(hook.name.split(".")[0])
            continue
        part = reach(hook.file, hook.name.rpartition(".")[2])
        modules |= {name.split(".")[0] for name in part.modules if name not in NAMES}
        metrics |= part.loads - METRICS
    modules -= {PACKAGE, "", *ALWAYS, *sys.stdlib_module_names}
    return tuple(sorted(modules)), tuple(sorted(metrics))
