"""Facets that one could choose: those with few values, as far as the first rows tell."""

from collections.abc import Sequence
from typing import Any, cast

from assay.sdk import AssayError, JsonObject, Kind
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import LOOKED_AT, Stored, facet_names, first_rows

_FEW = 20  # values that a facet may have to be offered


def choices(experiments: Experiments, entries: Sequence[Stored]) -> list[str]:
    """Facets with few values: of the metrics, of the first responses' metadata, and of the first items."""
    names = dict.fromkeys(
        name for entry in entries for row in entry.rows for name in facet_names(row)
    )
    ids = [entry.id for entry in entries[:_MOST_SAMPLED]]
    try:
        offered = experiments.cached(("choices", *ids), ids, lambda: _offered(experiments, ids))
    except AssayError:  # rows that are out of reach offer nothing
        offered = []
    return list(names) + [
        name for name in offered if not {name, name.removeprefix("metadata.")} & set(names)
    ]


_MOST_SAMPLED = 8  # experiments
_SAMPLED: dict[Kind, int] = {"run": LOOKED_AT // 4, "dataset": LOOKED_AT}


def _offered(experiments: Experiments, ids: Sequence[str]) -> list[str]:
    names: dict[str, None] = {}
    for id in ids:
        seen: dict[str, set[Any]] = {}
        for kind, most in _SAMPLED.items():
            for row in first_rows(experiments, id, kind, JsonObject, max(20, most // len(ids))):
                _see(seen, kind, row)
        names |= {name: None for name, values in seen.items() if 1 < len(values) <= _FEW}
    return list(names)


_NOT_FACETS = {"id", "data", "ground_truth", "metadata"}


def _see(seen: dict[str, set[Any]], kind: Kind, row: JsonObject) -> None:
    inner = cast("JsonObject", row["metadata"] if isinstance(row.get("metadata"), dict) else {})
    fields = {f"metadata.{key}": value for key, value in inner.items()}
    if kind == "run":
        fields |= {key: row.get(key) for key in ("model_name", "task", "served_model")}
    else:
        fields |= {key: value for key, value in row.items() if key not in _NOT_FACETS}
    for key, value in fields.items():
        if isinstance(value, (str, int, float, bool)) and len(seen.setdefault(key, set())) <= _FEW:
            seen[key].add(value if not isinstance(value, str) else value[:200])
