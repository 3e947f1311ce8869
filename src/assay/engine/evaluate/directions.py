"""Which scorers give scores where less is better: what manifests say, and for rows without one the plug-in itself."""

from collections.abc import Iterable
from typing import Any, cast

from assay import registry
from assay.records import Manifest

LOWER = "lower_is_better"


class Directions:
    """What is declared by `@scorer(lower_is_better=True)` about the scorers of some evaluations."""

    def __init__(self, manifests: Iterable[Manifest | None]) -> None:
        self._lower: dict[str, bool] = {}
        for manifest in manifests:
            plan: dict[str, Any] = manifest.plan if manifest else {}
            for entry in cast("list[dict[str, Any]]", plan.get("scorers") or []):
                if entry.get(LOWER):
                    self._lower[str(entry.get("name"))] = True

    def lower(self, scorers: Iterable[str]) -> bool:
        """Whether less is better under labels that all these scorers gave."""
        names = [name for name in scorers if name]
        return bool(names) and all(self._is_lower(name) for name in names)

    def _is_lower(self, scorer: str) -> bool:
        if scorer not in self._lower:
            function = None
            if scorer in registry.scorer.names():
                function = registry.scorer.get(scorer)
            elif scorer.partition(".")[0] in registry.formats():
                function = registry.scorer.of_format(scorer)
            self._lower[scorer] = bool(getattr(function, "__assay__", {}).get(LOWER))
        return self._lower[scorer]
