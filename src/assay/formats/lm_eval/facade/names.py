"""What modules of tasks import from `lm_eval`, and from packages that are too large for what is used of them."""

import builtins
import logging
import re
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any, Literal

from assay.errors import UserError
from assay.formats.lm_eval.facade import class_tasks
from assay.formats.lm_eval.facade.packages import PACKAGE, install_line
from assay.text.normalise import squad

# of assay.formats.lm_eval.scoring.hub
METRICS = frozenset(["accuracy", "bleu", "code_eval", "exact_match", "f1", "rouge", "wer"])

Sandbox = Literal["closed", "weak"]
# where `code_eval` runs code; None: nowhere
SANDBOX: ContextVar[Sandbox | None] = ContextVar("SANDBOX", default=None)


@contextmanager
def code_runs_in(sandbox: Sandbox | None) -> Generator[None]:
    token = SANDBOX.set(sandbox)
    try:
        yield
    finally:
        SANDBOX.reset(token)


def load(name: str, *args: Any, **parameters: Any) -> Any:
    if name in METRICS:
        from assay.formats.lm_eval.scoring.hub import Metric

        return Metric(name)
    try:
        return builtins.__import__("evaluate").load(name, *args, **parameters)
    except ImportError:
        raise UserError(
            f"the metric {name!r} needs the package evaluate", fix=install_line("evaluate")
        ) from None
    except Exception as error:
        what = f"the metric {name!r} is code of the Hugging Face hub, and could not be fetched: {type(error).__name__}"
        raise UserError(what, fix="run it once where the hub can be reached") from error


_registered: dict[tuple[str, str], Any] = {}  # (kind, name): what a task's own module registered


def registered(kind: str, name: str) -> Any:
    """What a hook's module registered as a `filter`, `metric` or `aggregation`; None if none that is loaded did."""
    return _registered.get((kind, name))


def _register(kind: str) -> Callable[..., Any]:
    def decorator(*names: Any, **parameters: Any) -> Callable[[Any], Any]:
        labels = [*names, *([parameters["metric"]] if "metric" in parameters else [])]

        def register(value: Any) -> Any:
            _registered.update({(kind, str(label)): value for label in labels})
            return value

        return register

    return decorator


def general_detokenize(string: str) -> str:
    for spaced, plain in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        string = string.replace(spaced, plain)
    return re.sub(r" (['.,])", r"\1", string)


def metric_max_over_ground_truths(
    metric_fn: Callable[[Any, Any], Any], prediction: Any, ground_truths: Any
) -> Any:
    return max(metric_fn(prediction, reference) for reference in ground_truths)


def compute_exact(a_gold: str, a_pred: str) -> int:
    return int(squad(a_gold) == squad(a_pred))


def compute_f1(a_gold: str, a_pred: str) -> float:
    """The F1 of the words of two answers, as SQuAD has it."""
    reference, prediction = squad(a_gold).split(), squad(a_pred).split()
    common = (Counter(reference) & Counter(prediction)).total()
    if not reference or not prediction or not common:
        return int(reference == prediction)
    precision, recall = common / len(prediction), common / len(reference)
    return (2 * precision * recall) / (precision + recall)


NAMES: dict[str, dict[str, Any]] = {
    "evaluate": {"load": load},
    f"{PACKAGE}.api.filter": {},
    f"{PACKAGE}.api.instance": {"Instance": class_tasks.Instance},
    f"{PACKAGE}.api.metrics": {"metric_max_over_ground_truths": metric_max_over_ground_truths},
    f"{PACKAGE}.api.registry": {
        f"register_{kind}": _register(kind)
        for kind in ("filter", "metric", "aggregation", "model", "task")
    },
    f"{PACKAGE}.api.samplers": {},
    f"{PACKAGE}.api.task": {"ConfigurableTask": class_tasks.ConfigurableTask},
    f"{PACKAGE}.filters.extraction": {},
    f"{PACKAGE}.utils": {
        "eval_logger": logging.getLogger("lm-eval"),
        "general_detokenize": general_detokenize,
        "logging": logging,
    },
    "transformers.data.metrics.squad_metrics": {  # for three small functions nobody needs transformers
        "compute_exact": compute_exact,
        "compute_f1": compute_f1,
        "normalize_answer": squad,
    },
}


@cache
def modules() -> dict[str, ModuleType]:
    """Every module of the façade by its full name; each is an attribute of the module above it."""
    made: dict[str, ModuleType] = {}
    for name, values in NAMES.items():
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            full = ".".join(parts[:depth])
            if full not in made:
                made[full] = ModuleType(full)
                if depth > 1:
                    setattr(made[full.rpartition(".")[0]], parts[depth - 1], made[full])
        vars(made[name]).update(values)
    for name, values in _ours().items():
        vars(made[f"{PACKAGE}.{name}"]).update(values)
    return made


def _ours() -> dict[str, dict[str, Any]]:
    """What the evaluation itself uses: it knows a function by its identity. Imported once a hook is."""
    from assay.formats.lm_eval.asking import fewshot
    from assay.formats.lm_eval.scoring import aggregations, corpora, filters

    steps = {"Filter": filters.Filter, "RegexFilter": filters.RegexFilter}
    return {
        "api.filter": steps,
        "api.metrics": aggregations.BY_IDENTITY,
        "api.samplers": {kind.__name__: kind for kind in fewshot.SAMPLERS.values()},
        "filters.extraction": steps,
        "utils": {"weighted_f1_score": corpora.weighted_f1_score},
    }
