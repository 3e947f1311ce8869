"""Scorers made ready: what form a function has is recognised once, from its signature; what it returned becomes
labels of one shape."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from assay import registry
from assay.errors import UserError
from assay.interfaces import Context, Model, Score
from assay.records import Item, Response
from assay.steps.judges import settle_judge
from assay.steps.people import PeoplesVerdicts
from assay.store.keys import canonical, digest
from assay.usercode import identity

Form = Literal["item", "match", "seed"]
Mode = Literal["inline", "thread", "async"]
Reads = Literal["item", "ground_truth"]

_SEED_NAMES = {"response", "ground_truth"}
_CONTEXTS = ("context", "contexts")


class Case(msgspec.Struct, gc=False):
    """What one scorer call is about: an item and one response, or two for a match. `lines` are the raw rows."""

    item: Item
    responses: list[Response]
    lines: list[bytes] = []


class BoundScorer(msgspec.Struct, kw_only=True):
    """A scorer with its parameters. `reads` says which part of an item its identity depends on; `batch` is how many
    cases one call takes (0: one, unbatched); `judges` are the identities of the models that it asks, by name.

    Of a match, `player` is the field that names its two sides, `same_items` refuses players that answer different
    items, `skip_failures` leaves out matches in which a response failed, and `people` has what people decided."""

    name: str
    function: Callable[..., Any]
    params: dict[str, Any]
    identity: bytes
    form: Form
    mode: Mode
    reads: Reads
    takes_context: bool
    timeout: float | None = None
    batch: int = 0
    player: str = "model_name"
    both_seats: bool = True
    same_items: bool = False
    skip_failures: bool = False
    people: PeoplesVerdicts | None = None
    judges: dict[str, Any] = {}

    def arguments(self, case: Case, context: Context | None) -> tuple[list[Any], dict[str, Any]]:
        keywords = dict(self.params)
        if self.takes_context:
            keywords["context"] = context
        if self.form == "seed":
            row = msgspec.json.decode(case.lines[0]) if case.lines else msgspec.to_builtins(case.responses[0])
            keywords["inference_result"] = row
            return [case.responses[0].response, case.item.ground_truth], keywords
        return [case.item, *case.responses], keywords


def bind_scorer(
    function: Callable[..., Any],
    *,
    name: str = "",
    params: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    models: Mapping[str, Model] | None = None,
    helpers: Sequence[str] = (),
    base: Path | None = None,
    where: str = "",
) -> BoundScorer:
    """A scorer from a function; its name is the label of what it returns without one. A judge finds its model among
    `models`, by default the only one of `helpers`, and its prompt in the folder `base`."""
    marks: dict[str, Any] = getattr(function, "__assay__", {})
    built_in = str(getattr(function, "__module__", "")).startswith("assay.")
    called = inspect.signature(function).parameters
    batch = int(marks.get("batch", 0))
    form = _form(function, called, batch, where)
    checked = registry.check_params(
        _parameter_view(function, form),
        params or {},
        where=where,
        reserved=["context", "contexts"],
        given=_given(form, batch),
    )
    judges: dict[str, Any] = {}
    if marks.get("judge"):
        defaults = {name: p.default for name, p in called.items() if name in ("model", "prompt")}
        checked = settle_judge({**defaults, **checked}, models or {}, helpers, base=base or Path(), where=where)
        judges = {each: dict((models or {})[each].identity) for each in checked["model"]}
    if check := marks.get("check"):
        check({**{each: p.default for each, p in registry.parameters(function).items()}, **checked}, where)
    is_async = inspect.iscoroutinefunction(function)
    reads: Reads = marks.get("reads", "ground_truth" if form == "seed" else "item")
    label = name or str(marks.get("name", getattr(function, "__name__", "scorer")))
    return BoundScorer(
        name=label,
        function=_seed_call(function) if form == "seed" else function,
        params=checked,
        identity=digest("scorer", canonical((label, identity(function), checked, *([judges] if judges else [])))),
        form=form,
        mode="async" if is_async else "inline" if built_in and timeout is None else "thread",
        reads=reads,
        takes_context=("contexts" if batch else "context") in called and form != "seed",
        timeout=timeout,
        batch=batch,
        player=str(marks.get("player", "model_name")),
        both_seats=bool(marks.get("both_seats", True)),
        judges=judges,
    )


def load_scorer(
    type: str, *, path: str | None, module: str | None, function_name: str | None, base: Path, where: str = ""
) -> Callable[..., Any]:
    """The function that a config's evaluation method names."""
    if path is not None:
        return registry.load_function(path, function_name or type, base=base, where=where)
    if module is not None:
        return registry.scorer.get(f"{module}.{function_name or type}", base=base, where=where)
    return registry.scorer.get(function_name if type == "custom" and function_name else type, base=base, where=where)


def _given(form: Form, batch: int) -> int:
    """How many arguments come from the engine."""
    return {"seed": 0, "match": 3, "item": 1 if batch else 2}[form]


def _form(function: Callable[..., Any], called: Mapping[str, inspect.Parameter], batch: int, where: str) -> Form:
    if set(called) >= _SEED_NAMES:
        return "seed"
    positional = [
        p for p in called.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "context"
    ]
    if len(positional) == (1 if batch else 2):
        return "item"
    if len(positional) == 3 and not batch:
        return "match"
    raise UserError(
        f"{getattr(function, '__name__', function)} is no scorer: {inspect.signature(function)}",
        where=where,
        fix="use (item, response, *, …), (item, first, second, *, …), (response, ground_truth, **params) "
        "or, with @scorer(batch=128), (cases, *, …)",
    )


def _parameter_view(function: Callable[..., Any], form: Form) -> Callable[..., Any]:
    """Seed-form functions take their parameters by any keyword: check only what they name."""
    if form != "seed":
        return function

    def view(**params: Any) -> None: ...

    called = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in called.values()):
        return view
    fixed = _SEED_NAMES | {"inference_result"}
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in called.values() if p.name not in fixed]
    view.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    view.__name__ = getattr(function, "__name__", "scorer")
    return view


def _seed_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first seed's form, called by keyword; `inference_result` only if the function takes it."""
    called = inspect.signature(function).parameters
    takes = "inference_result" in called or any(p.kind is p.VAR_KEYWORD for p in called.values())

    def call(response: str, ground_truth: Any, *, inference_result: Any, **params: Any) -> Any:
        if takes:
            params["inference_result"] = inference_result
        return function(response=response, ground_truth=ground_truth, **params)

    return call


# ---- what scorers return


def labels_of(result: Any, name: str) -> tuple[list[Score], dict[str, Any]]:
    """The labels in whatever a scorer returned, and its further fields; ValueError says what was wrong with it."""
    entries, more = [result], {}
    if isinstance(result, (list, tuple)):
        entries = list(result)
    elif isinstance(result, dict) and "labels" in result:
        entries, more = result["labels"], _further(result, "labels")
        if not isinstance(entries, list):
            raise ValueError(f"`labels` must be a list, found {type(entries).__name__}")
    elif isinstance(result, dict) and "result" in result:
        more = _further(result, "label", "result")
    return [_complete(_entry(entry, name), name) for entry in entries], more


def _further(result: dict[str, Any], *own: str) -> dict[str, Any]:
    custom = result.get("custom_fields") or {}
    return {**{key: value for key, value in result.items() if key not in (*own, "custom_fields")}, **custom}


def _entry(entry: Any, name: str) -> Score:
    if isinstance(entry, Score):
        return copy(entry)  # the scorer may return the same one again
    if isinstance(entry, (bool, np.bool_)):
        return Score(passed=bool(entry))
    if isinstance(entry, (int, float, np.number)):
        return Score(score=float(entry))
    if not isinstance(entry, dict):
        raise ValueError(f"a scorer must return a Score, a bool, a number or a dict, found {type(entry).__name__}")
    if "result" not in entry:
        return _score(entry, _label(entry.get("label"), name))
    if not isinstance(entry["result"], dict):
        raise ValueError(f"`result` must be an object, found {type(entry['result']).__name__}")
    label = entry.get("label")
    score = _score(entry["result"], _label(label, name))
    if isinstance(label, dict) and label.get("description"):
        score.details.setdefault("label_description", label["description"])
    return score


def _label(label: Any, name: str) -> str:
    if isinstance(label, dict):
        label = label.get("name")
    return name if label is None or label == "" else str(label)


def _score(fields: dict[str, Any], label: str) -> Score:
    custom = fields.get("custom_fields")
    details = {key: value for key, value in fields.items() if key not in ("passed", "score", "custom_fields", "label")}
    if isinstance(custom, dict):
        details.update(custom)
    return Score(label=label, passed=fields.get("passed"), score=fields.get("score"), details=details)


def _complete(score: Score, name: str) -> Score:
    """Fill in what follows from what is there; refuse what cannot be a score."""
    if not score.label or score.label[0] == ".":
        score.label = name + score.label
    if score.outcome != "scored":
        return score
    passed: Any = score.passed
    number: Any = score.score
    if passed is not None and not isinstance(passed, (bool, int, np.bool_)):
        raise ValueError(f"`passed` must be true or false, found {passed!r}")
    if number is not None and not isinstance(number, (bool, int, float, np.number)):
        raise ValueError(f"`score` must be a number, found {number!r}")
    if number is not None and not math.isfinite(number):
        raise ValueError(f"the score is {number}, which is no number to compute with")
    if passed is None and number is None:
        if score.value is None:
            raise ValueError("the scorer gave neither `passed` nor `score`")
        return score
    score.score = float(number) if number is not None else 1.0 if passed else 0.0
    score.passed = bool(passed) if passed is not None else score.score > 0
    return score
