"""What scorers declare of their scores: which way is better, and between which ends they lie.
Manifests say it, and for rows without one the plug-in itself."""

import math
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from assay import registry
from assay.sdk import JsonObject, Manifest, Scale, UserError
from assay.usercode import marks_of

LOWER = "lower_is_better"
SCALE = "scale"


class Directions:
    """What `@scorer(lower_is_better=True, scale=(1, 5))` or a config declares about the scorers of
    some evaluations."""

    def __init__(self, manifests: Iterable[Manifest | None]) -> None:
        self._plans: dict[str, JsonObject] = {}
        self._marks: dict[str, JsonObject] = {}
        for manifest in manifests:
            plan: JsonObject = manifest.plan if manifest else {}
            for entry in cast("list[JsonObject]", plan.get("scorers") or []):
                self._plans.setdefault(str(entry.get("name")), {}).update(entry)

    def lower(self, scorers: Iterable[str]) -> bool:
        """Return whether less is better under labels that all these scorers gave."""
        names = [name for name in scorers if name]
        return bool(names) and all(self._of(name).get(LOWER) for name in names)

    def scale(self, scorers: Iterable[str]) -> Scale | None:
        """Return the ends of the scores, where all these scorers declare the same."""
        scales = {checked_scale(self._of(name).get(SCALE)) for name in scorers if name}
        return scales.pop() if len(scales) == 1 else None

    def _of(self, scorer: str) -> JsonObject:
        if scorer not in self._marks:
            function = None
            if scorer in registry.scorer.names():
                function = registry.scorer.get(scorer)
            elif scorer.partition(".")[0] in registry.formats():
                function = registry.scorer.of_format(scorer)
            self._marks[scorer] = marks_of(function) | self._plans.get(scorer, {})
        return self._marks[scorer]


def checked_scale(scale: Any) -> Scale | None:
    """Return the ends of a scale, one of which may be open; None where both are."""
    try:
        low, high = found = msgspec.convert(scale or (None, None), Scale)
        if low is None or high is None or -math.inf < low < high < math.inf:
            return None if low is high else found
    except msgspec.ValidationError:
        pass
    raise UserError(
        f"{scale!r} is not a scale",
        fix="name the lowest and the highest value, `scale: [1, 5]`; null is an open end",
    )
