"""`evaluate.load(name)`: metrics whose code is on the Hugging Face hub. The common ones are Assay's own; all others are
left to the package `evaluate` and to the hub."""

import builtins
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from assay.errors import UserError
from assay.formats.lm_eval.facade.packages import install_line

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
