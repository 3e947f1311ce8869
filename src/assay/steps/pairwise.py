"""The evaluation method `pairwise`: any decider made a scorer of matches, with the settings of the config."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec

from assay import registry
from assay.errors import UserError
from assay.interfaces import Model
from assay.steps.people import read_verdicts
from assay.steps.scoring import BoundScorer, bind_scorer
from assay.store.keys import canonical, digest

PEOPLE = "people"


class Binding(TypedDict):
    """What every scorer is bound with; see `bind_scorer`."""

    name: str
    params: Mapping[str, Any]
    timeout: float | None
    models: Mapping[str, Model]
    helpers: Sequence[str]
    base: Path


def is_pairwise(function: Callable[..., Any]) -> bool:
    return bool(getattr(function, "__assay__", {}).get("pairwise"))


def bind_pairwise(function: Callable[..., Any], *, folder: Path, **binding: Unpack[Binding]) -> BoundScorer:
    """The decider that `decide` names, as a scorer of matches. Parameters that are not ours are the decider's own;
    `folder` is the experiment's, where labelling sessions leave their labels."""
    given = binding["params"]
    own = registry.parameters(function)
    settings = {name: p.default for name, p in own.items()}
    settings |= registry.check_params(function, {name: value for name, value in given.items() if name in own})
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


def _people(name: str, params: Mapping[str, Any], folder: Path, base: Path) -> BoundScorer:
    """Nobody is called: what people have said is there, or is not. They see each pair once, in an order that is drawn,
    so that there is one seat."""
    unknown = [each for each in params if each != "labels"]
    if unknown:
        raise UserError(f"people have no parameter {unknown[0]!r}", fix=registry.nearest(unknown[0], ["labels"]))
    file = base / str(params["labels"]) if params.get("labels") else None
    return BoundScorer(
        name=name,
        function=_undecided,
        params=dict(params),
        identity=digest("scorer", canonical((name, PEOPLE))),
        form="match",
        mode="inline",
        reads="item",
        takes_context=False,
        people=read_verdicts(name, folder, file),
    )


def _undecided(item: Any, first: Any, second: Any) -> None:
    raise AssertionError("every match that people decide is settled")
