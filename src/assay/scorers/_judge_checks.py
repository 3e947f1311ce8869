"""What is wrong with a judge's parameters, reported when it is bound: before anything is paid."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import UserError
from assay.registry import nearest
from assay.scorers._judge_prompt import ALWAYS_KNOWN, names_used

_FILLED = ("messages", "model", "step", "temperature", "response_format")


def check_panel(params: Mapping[str, Any], where: str, *, must: Sequence[str], may: Sequence[str] = ()) -> None:
    """Refuse what no judge can work with; its prompt must show some variables and may show some more."""
    for name in ("repeats", "tries"):
        if params[name] < 1:
            raise UserError(f"{name} is {params[name]}", where=where, fix="give a whole number from 1")
    models: Any = params["model"]
    twice = [name for name, count in Counter(models if isinstance(models, list) else []).items() if count > 1]
    if twice:
        raise UserError(f"the judge {twice[0]!r} sits twice on the panel", where=where, fix="use `repeats: 2`")
    filled = next((name for name in _FILLED if name in (params["params"] or {})), None)
    if filled is not None:
        fix = "use the judge's own parameter `temperature`" if filled == "temperature" else "leave it out"
        raise UserError(f"params must not hold {filled!r}: the judge fills it", where=where, fix=fix)
    try:
        used = names_used(params["prompt"])
    except UserError as error:
        raise UserError(f"{error.what} ({error.where})", where=where, fix=error.fix) from None
    known = {*must, *may, *ALWAYS_KNOWN}
    for name in sorted(used - known):
        what = f"the judge's prompt uses {name!r}, which does not exist"
        raise UserError(what, where=where, fix=nearest(name, known))
    for name in must:
        if name not in used:
            fix = f"write {{{{{name}}}}} into it"
            raise UserError(f"the judge's prompt does not show {name!r}", where=where, fix=fix)


def check_threshold(threshold: float | None, low: float, high: float, where: str) -> None:
    if threshold is not None and not low < threshold <= high:
        raise UserError(f"the threshold {threshold:g} is outside the scale from {low:g} to {high:g}", where=where)


def check_scale(scale: Any, where: str) -> None:
    """`yes_no`, or two whole numbers in order."""
    if scale == "yes_no":
        return
    if not isinstance(scale, list) or len(scale) != 2 or any(type(grade) is not int for grade in scale):
        raise UserError(f"the scale {scale!r} is none", where=where, fix="write `yes_no`, or `[1, 5]`: lowest, highest")
    if scale[0] >= scale[1]:
        raise UserError(f"the scale {scale!r} does not rise", where=where, fix="write the lowest grade first: `[1, 5]`")
