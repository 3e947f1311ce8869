"""Evaluation rows for tests of metrics, as a scorer would write them."""

from typing import Any

import numpy as np

from assay.interfaces import Group

Row = dict[str, Any]


def group(*items: list[float], columns: dict[str, list[Any]] | None = None) -> Group:
    """A group from each item's scores, in order of samples; a score above 0 has passed."""
    return Group(
        item=np.array(
            [number for number, scores in enumerate(items) for _ in scores], dtype=np.int32
        ),
        sample=np.array(
            [sample for scores in items for sample in range(len(scores))], dtype=np.int32
        ),
        passed=np.array([score > 0 for scores in items for score in scores], dtype=np.bool_),
        score=np.array([score for scores in items for score in scores], dtype=np.float64),
        columns=columns or {},
    )


def rows(*items: list[float], **more: list[Any]) -> list[Row]:
    """The same as dicts; `more` has a value of a further field for each row."""
    made = [
        {
            "item_id": f"i{number}",
            "sample_index": sample,
            "label": "l",
            "passed": score > 0,
            "score": score,
        }
        for number, scores in enumerate(items)
        for sample, score in enumerate(scores)
    ]
    return [
        {**row, **{name: values[at] for name, values in more.items()}}
        for at, row in enumerate(made)
    ]
