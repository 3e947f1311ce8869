"""RAGiCamp's own means beside those of the rows: a summary counts what its predictions show."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from assay.engine.experiment.imports.foreign import Headline
from assay.formats.ragicamp.agents import AgentFile
from assay.formats.ragicamp.rows import Row
from assay.records import Evaluation

_ALONE = "only the summary has it: no prediction has such a score"
_Sum = list[Any]  # what was added up, how many numbers, and whether a failure counted as one


class Reported:
    """What was read of each agent's scores, while they are read."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], dict[str, _Sum]] = {}

    def add(self, file: AgentFile, row: Row, evaluations: Iterable[Evaluation]) -> None:
        metrics = row.get("metrics")
        sums = self._sums.setdefault((file.agent.name, file.agent.sample_index), {})
        for evaluation in evaluations:
            shown = metrics.get(evaluation.label) if isinstance(metrics, dict) else None
            if isinstance(shown, (int, float)) and math.isfinite(shown):
                own = sums.setdefault(evaluation.label, [0.0, 0, False])
                own[0] += shown
                own[1] += 1
                own[2] = own[2] or evaluation.outcome != "scored" or evaluation.score != shown

    def headlines(self, files: Iterable[AgentFile]) -> Iterator[Headline]:
        """Each number of the agents' summaries; where failures count as wrong answers in it, so they do in ours."""
        told = {(file.agent.name, file.agent.sample_index): file for file in files if file.overall}
        models = Counter((_model(file), file.agent.sample_index) for file in told.values())
        for address, file in told.items():
            where: Row = {"model_name": _model(file)}
            where |= (
                {"sample_index": file.agent.sample_index} if file.agent.total_samples > 1 else {}
            )
            shared = models[_model(file), file.agent.sample_index] > 1
            sums = self._sums.get(address, {})
            for name, value in file.overall.items():
                if not isinstance(value, (int, float)) or isinstance(value, bool):
                    continue
                own = sums.get(name)
                yield Headline(
                    label=name,
                    metric="mean",
                    value=float(value),
                    where=where,
                    ours=own[0] / own[1] if own is not None and (own[2] or shared) else None,
                    reason=_ALONE if own is None else "",
                )


def _model(file: AgentFile) -> str:
    return file.agent.model_name or file.agent.name
