"""Metric rows that one table does not fit: one table for each set of facets, never a block of lines for each row."""

from itertools import product
from typing import Any

import pytest

from assay.reports.run import metrics_table
from assay.reports.sheet import Sheet
from assay.reports.wrapping import cells

MODELS = ("openai/gpt-4.1-mini", "anthropic/claude-sonnet")
PROMPTS = ("short prompt", "a longer prompt")
KINDS = ("arithmetic", "geography", "translation")


def row(facets: dict[str, str], metric: str, label: str, missing: int = 0) -> dict[str, Any]:
    return {
        "metric_name": metric,
        "metric_type": "mean",
        "facets": list(facets),
        **facets,
        "label": label,
        "value": 0.5,
        "ci_low": 0.45,
        "ci_high": 0.55,
        "ci_level": 0.95,
        "ci_method": "bootstrap",
        "planned_sample_count": 200,
        "total_sample_count": 200,
        "total_item_count": 50,
        "used_sample_count": 200 - missing,
        "errored_count": missing,
        "value_if_missing_wrong": 0.5 - missing / 200,
        "value_if_missing_right": 0.5,
    }


def many(missing: int = 3) -> list[dict[str, Any]]:
    rows = [row({}, "mean", f"label_{at}", missing) for at in range(11)]
    for model, metric in product(MODELS, ("mean", "pass@1", "pass@4", "latency")):
        rows.append(row({"model_name": model}, metric, "exact_match", missing))
    for model, prompt, label, metric in product(MODELS, PROMPTS, ("match", "f1"), ("a", "b", "c")):
        rows.append(row({"model_name": model, "prompt": prompt}, metric, label, missing))
    for number, (model, prompt, kind, metric) in enumerate(
        product(MODELS, PROMPTS, KINDS, ("mean", "pass@1"))
    ):
        facets = {"model_name": model, "prompt": prompt, "kind": kind}
        language = "english" if number % 3 else "german"
        rows.append(row({**facets, "language": language}, metric, "match", missing))
    return rows


@pytest.mark.parametrize("width", [80, 100])
def test_many_rows_are_a_table_for_each_set_of_facets(width: int) -> None:
    rows = many()
    text = Sheet([metrics_table(rows)]).form(width=width)
    lines = text.splitlines()
    assert len(rows) == 67
    assert len(lines) < 200
    assert max(map(cells, lines)) <= width
    assert sum("────" in line for line in lines) == 4


def test_metrics_stand_side_by_side_where_that_fits() -> None:
    rows = [
        row({"model_name": model, "metadata.kind": kind}, metric, "match")
        for model, kind, metric in product(MODELS, KINDS, ("mean", "pass@1", "pass@4"))
    ]
    lines = Sheet([metrics_table(rows)]).form(width=80).splitlines()
    assert lines[0] == "label: match, items: 50, samples: 200, failed: 0"
    assert lines[2].split() == ["model_name", "kind", "mean", "pass@1", "pass@4"]
    assert sum(line.count("0.450–0.550") for line in lines) == len(rows)
    # where there is room, every number has its column
    assert "95% interval" in Sheet([metrics_table(rows)]).form(width=120)


def test_a_group_without_a_metric_has_a_dash() -> None:
    rows = [
        row({"model_name": model, "metadata.kind": kind}, metric, "match")
        for model, kind, metric in product(MODELS, KINDS, ("mean", "pass@1", "pass@4"))
    ]
    lines = Sheet([metrics_table(rows[:-1])]).form(width=80).splitlines()
    assert lines[-2].split() == ["anthropic/claude-sonnet", "translation", "0.500", "0.500", "–"]
