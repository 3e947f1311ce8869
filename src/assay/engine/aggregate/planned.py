"""How many rows a group should have, as far as the runs' plans say."""

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import UNSET

from assay.sdk import JsonMapping, Log, Manifest
from assay.store.table.decode import decode_row
from assay.store.table.facets import find_in_row, typed

_LOOKED_AT = 1000


class Planned:
    """Knows the runs' tasks, and which scorers give one label of a name to each response (not those of matches)."""

    def __init__(self, runs: Sequence[Manifest | None], evaluations: Sequence[Log]) -> None:
        self._runs = runs
        self._plain = _plain_scorers(evaluations)

    def count(self, facets: JsonMapping, scorers: Iterable[str]) -> int | None:
        """The planned rows of one label of a group; None if a facet is not a property of the tasks."""
        if not self._runs or not set(scorers) <= self._plain:
            return None
        total = 0
        for manifest in self._runs:
            tasks = manifest.plan.get("tasks") if manifest else None
            if manifest is None or manifest.planned is None or not tasks:
                return None
            belongs = [_belongs(task, facets) for task in tasks]
            if None in belongs:
                return None
            total += manifest.planned // len(tasks) * belongs.count(True)
        return total


def _belongs(task: JsonMapping, facets: JsonMapping) -> bool | None:
    """Whether the task's rows are in the group; None if it does not say."""
    shown = task.get("facets") or {}
    row = {"task": task.get("name"), "metadata": shown}
    if "model_id" in shown:
        row["model_name"] = shown["model_id"]
    found = {facet: find_in_row(row, facet) for facet in facets}
    if UNSET in found.values():
        return None
    return all(typed(found[facet]) == typed(value) for facet, value in facets.items())


def _plain_scorers(logs: Sequence[Log]) -> set[str]:
    seen: dict[str, bool] = {}
    for log in logs:
        for _, line in islice(log.scan(), _LOOKED_AT):
            row = decode_row(line if line.strip() else b"{}", "evaluation row")
            answers = row.get("responses")
            plain = not row.get("players") and not (isinstance(answers, list) and len(answers) > 1)
            seen.setdefault(str(row.get("scorer") or ""), plain)
    return {name for name, plain in seen.items() if plain and name}
