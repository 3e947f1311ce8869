"""The original's `score.json` from single verdicts: the mean of each kind and benchmark rounded to three places, then
weighted by the kinds' shares of the entries."""

from collections.abc import Iterator

OVERALL = "overall"


class Tally:
    """What verdicts counted, by label, benchmark and kind, added up in the order of their rows."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, dict[str, list[float]]]] = {}

    def add(self, label: str, kind: str, benchmark: str, counted: float) -> None:
        of = self._cells.setdefault(label, {})
        for name in (OVERALL, benchmark):
            cell = of.setdefault(name, {}).setdefault(kind, [0.0, 0])
            cell[0] += counted
            cell[1] += 1

    def labels(self) -> Iterator[str]:
        return iter(self._cells)

    def scores(self, label: str) -> dict[str, float]:
        """What `score.json` has of a label."""
        return {name: _weighted(kinds) for name, kinds in self._cells.get(label, {}).items()}


def _weighted(kinds: dict[str, list[float]]) -> float:
    total = sum(count for _, count in kinds.values())
    return sum(round(added / count, 3) * (count / total) for added, count in kinds.values())
