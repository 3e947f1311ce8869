"""Scorers made ready: what form a function has is recognised once, from its signature; `pairwise` makes any decider a
scorer of matches."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from itertools import compress
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import msgspec

from assay import registry
from assay.engine.evaluate.directions import LOWER, SCALE, checked_scale
from assay.engine.evaluate.judges import settle_judge
from assay.engine.evaluate.people import PeoplesVerdicts, read_verdicts
from assay.sdk import (
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Model,
    Response,
    UserError,
    canonical,
    digest,
)
from assay.usercode import identity, is_built_in, marks_of

Form = Literal["item", "match", "together", "een"]
Mode = Literal["inline", "thread", "async"]
Reads = Literal["item", "ground_truth"]

_EEN_NAMES = {"response", "ground_truth"}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Case(msgspec.Struct, gc=False):
    """What one scorer call is about: an item and one response, or all that belong together (two for a match). `lines`
    are the raw rows, `sides` the players of responses that belong together."""

    item: Item
    responses: list[Response]
    lines: list[bytes] = []
    sides: tuple[str, ...] = ()


class BoundScorer(msgspec.Struct, kw_only=True, dict=True):
    """A scorer with its parameters. `reads` says which part of an item its identity depends on; `batch` is how many
    cases one call takes (0: one, unbatched); `judges` are the identities of the models that it asks, by name.

    Of a scorer of several responses, `player` is the field that names their sides (`run`: in the order of the runs),
    `same_items` refuses players that answer different items, `skip_failures` leaves out what a failed response takes
    part in, `takes_sides` passes the players of the responses as `sides`, also where all failed and none is left, and
    `limit` bounds how many items are scored together. `people` has what people decided in matches.
    `declared` is what its plan says of the scores: the `scale` of a function that its name does not
    tell, and what a config says."""

    name: str
    function: Callable[..., Any]
    params: JsonObject
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
    takes_sides: bool = False
    limit: int | None = None
    people: PeoplesVerdicts | None = None
    judges: JsonObject = {}
    lower_is_better: bool = False
    declared: JsonObject = {}

    @cached_property
    def shown_params(self) -> JsonObject:
        """Return what its rows have in `metadata.evaluation`: its parameters; a judge's, which are
        long, are in the plan."""
        return {"params": self.params} if self.params and not self.judges else {}

    @cached_property
    def strips_reasoning(self) -> bool:
        """Return whether it has the parameter `strip_reasoning`, and it is on."""
        settable = inspect.signature(self.function).parameters.get("strip_reasoning")
        return bool(settable and self.params.get("strip_reasoning", settable.default))

    @cached_property
    def verdicts(self) -> bool:
        """Return whether its labels have verdicts; a mark may name the parameter that it takes."""
        mark = marks_of(self.function).get("verdicts", True)
        return self.params.get(mark) is not None if isinstance(mark, str) else mark

    @property
    def of_several(self) -> bool:
        """Return whether a call takes several responses."""
        return self.form in ("match", "together")

    def arguments(self, case: Case, context: Context | None) -> tuple[list[Any], JsonObject]:
        keywords = dict(self.params)
        if self.takes_context:
            keywords["context"] = context
        if self.form == "een":
            row = (
                msgspec.json.decode(case.lines[0])
                if case.lines
                else msgspec.to_builtins(case.responses[0])
            )
            keywords["inference_result"] = row
            return [case.responses[0].response, case.item.ground_truth], keywords
        if not self.takes_sides:
            return [case.item, *case.responses], keywords
        answered = [response.outcome == "ok" for response in case.responses]
        keywords["sides"] = tuple(compress(case.sides, answered))
        return [case.item, *compress(case.responses, answered)], keywords


def bind_scorer(
    function: Callable[..., Any],
    *,
    name: str = "",
    params: JsonMapping | None = None,
    timeout: float | None = None,
    models: Mapping[str, Model] | None = None,
    helpers: Sequence[str] = (),
    base: Path | None = None,
    where: str = "",
) -> BoundScorer:
    """A scorer from a function; its name is the label of what it returns without one. A judge finds its model among
    `models`, by default the only one of `helpers`, and its prompt in the folder `base`."""
    marks, known = marks_of(function), models or {}
    called = inspect.signature(function).parameters
    batch = int(marks.get("batch", 0))
    form = _form(function, called, batch, where)
    checked = registry.check_params(
        registry.by_keyword(function, *_EEN_NAMES, "inference_result")
        if form == "een"
        else function,
        params or {},
        where=where,
        reserved=["context", "contexts"],
        given=_engine_arguments(form, batch),
    )
    defaults = {name: p.default for name, p in called.items()}
    judges: JsonObject = {}
    if marks.get("judge"):
        own = {name: defaults[name] for name in ("model", "prompt") if name in defaults}
        checked = settle_judge({**own, **checked}, known, helpers, base=base or Path(), where=where)
        judges = {each: dict(known[each].identity) for each in checked["model"]}
    if check := marks.get("check"):
        settable = registry.parameters(function)
        check({**{each: defaults[each] for each in settable}, **checked}, where)
    label = name or str(marks.get("name", getattr(function, "__name__", "scorer")))
    identified = (label, identity(function), checked, *([judges] if judges else []))
    is_een = form == "een"
    return BoundScorer(
        name=label,
        function=_een_call(function) if is_een else function,
        params=checked,
        identity=digest("scorer", canonical(identified)),
        form=form,
        mode=_mode(function, timeout),
        reads=marks.get("reads", "ground_truth" if is_een else "item"),
        takes_context=("contexts" if batch else "context") in called and not is_een,
        timeout=timeout,
        batch=batch,
        player=str(marks.get("player", "model_name")),
        both_seats=bool(marks.get("both_seats", True)),
        judges=judges,
        **_score_fields(function, label),
    )


def _engine_arguments(form: Form, batch: int) -> int:
    """Return how many arguments come from the engine."""
    return {"een": 0, "match": 3, "together": 1, "item": 1 if batch else 2}[form]


def _mode(function: Callable[..., Any], timeout: float | None) -> Mode:
    if inspect.iscoroutinefunction(function):
        return "async"
    return "inline" if is_built_in(function) and timeout is None else "thread"


def _score_fields(function: Callable[..., Any], name: str) -> JsonObject:
    """Return the fields of what a function declares of its scores."""
    marks = marks_of(function)
    scale = checked_scale(marks.get(SCALE))
    known = scale is None or (is_built_in(function) and marks["name"] == name)
    return {LOWER: bool(marks.get(LOWER)), "declared": {} if known else {SCALE: scale}}


def _form(
    function: Callable[..., Any], called: Mapping[str, inspect.Parameter], batch: int, where: str
) -> Form:
    if set(called) >= _EEN_NAMES:
        return "een"
    kinds = [p.kind for p in called.values() if p.name != "context"]
    positional = sum(kind in _POSITIONAL for kind in kinds)
    if inspect.Parameter.VAR_POSITIONAL in kinds and positional == 1 and not batch:
        return "together"
    if positional == (1 if batch else 2):
        return "item"
    if positional == 3 and not batch:
        return "match"
    raise UserError(
        f"{getattr(function, '__name__', function)} is not a scorer: {inspect.signature(function)}",
        where=where,
        fix="use (item, response, *, …), (item, first, second, *, …), (item, *responses, …), "
        "(response, ground_truth, **params) or, with @scorer(batch=128), (cases, *, …)",
    )


def _een_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """EEN's form, called by keyword; `inference_result` only if the function takes it."""
    called = inspect.signature(function).parameters
    takes = "inference_result" in called or any(p.kind is p.VAR_KEYWORD for p in called.values())

    @wraps(function)
    def call(response: str, ground_truth: Any, *, inference_result: Any, **params: Any) -> Any:
        if takes:
            params["inference_result"] = inference_result
        return function(response=response, ground_truth=ground_truth, **params)

    return call


PEOPLE = "people"


class Binding(TypedDict):
    """What every scorer is bound with; see `bind_scorer`."""

    name: str
    params: JsonMapping
    timeout: float | None
    models: Mapping[str, Model]
    helpers: Sequence[str]
    base: Path


def is_pairwise(function: Callable[..., Any]) -> bool:
    return bool(marks_of(function).get("pairwise"))


def bind_pairwise(
    function: Callable[..., Any], *, folder: Path, **binding: Unpack[Binding]
) -> BoundScorer:
    """The decider that `decide` names, as a scorer of matches. Parameters that are not ours are the decider's own;
    `folder` is the experiment's, where the review leaves its labels."""
    given = binding["params"]
    own = registry.parameters(function)
    settings = {name: p.default for name, p in own.items()}
    settings |= registry.check_params(
        function, {name: value for name, value in given.items() if name in own}
    )
    rest = {name: value for name, value in given.items() if name not in own}
    if settings["decide"] == PEOPLE:
        bound = _people(binding["name"], rest, folder, binding["base"])
    else:
        decider = registry.scorer.get(settings["decide"], base=binding["base"])
        if is_pairwise(decider):
            raise UserError("`pairwise` cannot decide for itself", fix="decide: judge_pairwise")
        binding["params"] = rest
        bound = bind_scorer(decider, **binding)
    if bound.form != "match":
        raise UserError(
            f"{settings['decide']!r} looks at one answer, and cannot decide between two",
            fix="a function of the form (item, first, second, *, …), `judge_pairwise` or `people`",
        )
    return msgspec.structs.replace(
        bound,
        player=settings["players"],
        both_seats=settings["both_seats"] and bound.people is None,
        same_items=settings["items"] == "refuse",
        skip_failures=settings["skip_on_any_failure"],
    )


def _people(name: str, params: JsonMapping, folder: Path, base: Path) -> BoundScorer:
    """Nobody is called: what people have said is there, or is not. They see each pair once, in an order that is drawn,
    so that there is one seat."""
    unknown = [each for each in params if each != "labels"]
    if unknown:
        raise UserError(
            f"people have no parameter {unknown[0]!r}", fix=registry.nearest(unknown[0], ["labels"])
        )
    file = base / str(params["labels"]) if params.get("labels") else None
    return BoundScorer(
        name=name,
        function=_ask_nobody,
        params=dict(params),
        identity=digest("scorer", canonical((name, PEOPLE))),
        form="match",
        mode="inline",
        reads="item",
        takes_context=False,
        people=read_verdicts(name, folder, file),
    )


def _ask_nobody(item: Any, first: Any, second: Any) -> None:
    raise AssertionError("every match that people decide is settled")
