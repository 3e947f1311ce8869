"""The values that the harness gives to one document's answers, as labels."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from assay.formats.lm_eval.chosen import task
from assay.formats.lm_eval.scoring.results import results as results_of
from assay.sdk import Item, Response, Score, as_object, scorer

NO_FILTER = "none"
SOUND = " (sound)"


@scorer(name="lm_eval.results", reads="item", version=1)
def results(
    item: Item,
    response: Response,
    *,
    sound: bool = False,
    sandbox: Literal["", "closed", "weak"] = "",
    task_folders: Sequence[str] = (),
) -> list[Score]:
    """Every metric of the item's task for every filter: labels `acc`, or `exact_match,strict-match` with a filter.

    Parameters:
    sound: beside each label the one without the harness's mistakes, `acc (sound)`
    sandbox: consent to run code in answers, as `code_tests` does; without it such tasks are refused
    task_folders: folders and files of tasks whose code may be run
    """
    definition = task(item.metadata["request"], item.metadata["task"], tuple(task_folders))
    scores: list[Score] = []
    for right in (False, True) if sound else (False,):
        values = results_of(
            definition,
            item.data["doc"],
            item.ground_truth,
            item.data.get("choices"),
            _answers(response),
            multiple_target=bool(item.metadata.get("multiple_target")),
            sandbox=sandbox or None,
            sound=right,
        )
        scores += [_score(label(*key) + SOUND * right, value) for key, value in values.items()]
    return scores


def label(metric: str, filter: str) -> str:
    return metric if filter == NO_FILTER else f"{metric},{filter}"


def _answers(response: Response) -> list[Any]:
    output = as_object(response.output)
    if "choices" in output:
        return [(choice["logprob"], bool(choice["greedy"])) for choice in output["choices"]]
    return output.get("answers") or [response.response]


def _score(label: str, value: Any) -> Score:
    """A number is a score; what else a metric keeps of a document is a value for its aggregation."""
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return Score(label=label, score=float(value), passed=value > 0)
    return Score(label=label, value=value)
