"""What `sound` changes: each place that scoring/results.py lists against the number worked out by hand or by sacreBLEU."""

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from assay.errors import UserError
from assay.formats.lm_eval.chosen import mark
from assay.formats.lm_eval.metric import groups as group_values
from assay.formats.lm_eval.scoring.aggregations import aggregate, stderr
from assay.formats.lm_eval.scoring.results import results
from assay.formats.lm_eval.tasks.definition import Definition
from assay.interfaces import Group
from tests.formats.lm_eval.test_results import FOLDER, real


def definition(metric: Any, **keys: Any) -> Definition:
    return Definition(task="own", file=str(FOLDER / "own.yaml"), metric_list=real([metric]), **keys)


def values(task: Definition, target: Any, answer: Any, **flags: Any) -> dict[str, Any]:
    answers = answer if isinstance(answer, list) else [answer]
    return {
        key[0]: value
        for key, value in results(task, {}, target, ["a", "b"], answers, **flags).items()
    }


def test_the_best_of_several_references() -> None:
    task = definition({"metric": {"!function": "overlap"}, "aggregation": "mean"})
    targets = ["red house", "big red house there"]
    assert values(task, targets, "a red house", multiple_target=True) == {"overlap": 1.0}
    assert values(task, targets, "a red house", multiple_target=True, sound=True) == {
        "overlap": 2 / 3
    }


def test_the_best_of_a_metric_of_which_less_is_better() -> None:
    task = definition(
        {"metric": {"!function": "lengths"}, "aggregation": "mean", "higher_is_better": False}
    )
    made = values(task, ["four", "seven"], "eight", multiple_target=True, sound=True)
    assert made == {"length": 5, "gap": 0}


def test_all_references_of_a_corpus() -> None:
    golds = [["the cat sat there", "a cat sat on the mat"], ["it is raining hard today"]]
    texts = ["a cat sat there on the mat", "it is raining"]
    for metric, corpus in (
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ):
        task = definition({"metric": metric, "aggregation": metric})
        made = [
            values(task, gold, text, multiple_target=True, sound=True)[metric]
            for gold, text in zip(golds, texts, strict=True)
        ]
        streams = [[golds[0][0], golds[1][0]], [golds[0][1], None]]
        expected = corpus(texts, streams).score  # pyright: ignore
        assert aggregate(task, metric, made, sound=True) == pytest.approx(expected, rel=1e-12)
        assert (stderr(task, metric, made * 5, 100, sound=True) or 0) > 0


def test_each_document_decides_whether_its_target_is_a_list() -> None:
    task = definition({"metric": "acc"}, output_type="multiple_choice", doc_to_choice=["a", "b"])
    answers = [(-2.0, False), (-1.0, True)]
    with pytest.raises(UserError, match="TypeError"):
        values(task, [1], answers)
    assert values(task, [1], answers, sound=True) == {"acc": 1.0}
    assert values(task, 1, answers, multiple_target=True, sound=True) == {"acc": 1.0}


def test_likelihood_can_be_aggregated() -> None:
    task = definition(
        {"metric": "likelihood"}, output_type="multiple_choice", doc_to_choice=["a", "b"]
    )
    answers = [(-2.0, False), (-1.0, True)]
    pair = values(task, 0, answers)["likelihood"]
    assert pair == [0, [-2.0, -1.0]]
    with pytest.raises(UserError, match="likelihood of own cannot be aggregated"):
        aggregate(task, "likelihood", [pair, pair])
    made = [values(task, gold, answers, sound=True)["likelihood"] for gold in (0, 1, [0, 1])]
    assert aggregate(task, "likelihood", made, sound=True) == -4 / 3


def test_too_few_matches_are_no_match() -> None:
    steps = [
        {"function": "regex", "regex_pattern": r"\d", "group_select": 2, "fallback": "none"},
        {"function": "take_first"},
    ]
    task = definition({"metric": "exact_match"}, filter_list=[{"name": "third", "filter": steps}])
    assert values(task, "3", "1 2 3") == {"exact_match": 1.0}
    with pytest.raises(UserError, match="IndexError"):
        values(task, "none", "1 2")
    assert values(task, "none", "1 2", sound=True) == {"exact_match": 1.0}


def test_the_median_of_an_even_number() -> None:
    task = definition({"metric": {"!function": "overlap"}, "aggregation": "median"})
    numbers = [0.1, 0.2, 0.7, 0.9]
    assert aggregate(task, "overlap", numbers) == 0.7
    assert aggregate(task, "overlap", numbers, sound=True) == pytest.approx(0.45)
    assert stderr(task, "overlap", numbers, 3000, sound=True) != stderr(
        task, "overlap", numbers, 3000
    )


def test_a_standard_error_of_a_mean_of_the_tasks_own() -> None:
    task = definition({"metric": {"!function": "overlap"}, "aggregation": {"!function": "fmean"}})
    numbers = [at % 7 / 7 for at in range(60)]
    assert stderr(task, "overlap", numbers) is None
    error = statistics.stdev(numbers) / len(numbers) ** 0.5
    assert stderr(task, "overlap", numbers, sound=True) == pytest.approx(error, rel=0.1)


def test_code_needs_consent() -> None:
    task = definition({"metric": "exact_match"}, unsafe_code=True)
    with pytest.raises(UserError, match="runs code that a model wrote"):
        values(task, "a", "a")
    assert values(task, "a", "a", sandbox="closed") == {"exact_match": 1.0}


def test_a_group_weighs_a_label_by_its_own_documents(tmp_path: Path) -> None:
    keys = {"dataset_path": "json", "test_split": "test", "doc_to_text": "q", "doc_to_target": "a"}
    for name in ("many", "few"):
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"task": name, **keys}))
    group = {"group": "both", "task": ["many", "few"]}
    group |= {"aggregate_metric_list": [{"metric": "exact_match"}]}
    (tmp_path / "both.yaml").write_text(json.dumps(group))
    entry = mark({"task": "both", "include_path": str(tmp_path)})
    tasks = ["many"] * 3 + ["few"]  # of the other documents of `few` nothing has this label
    score = np.array([1.0, 1.0, 0.0, 0.0])
    columns = {
        "value": [None] * 4,
        "item.metadata.request": [entry] * 4,
        "item.metadata.task": tasks,
        "item.metadata.document": [0, 1, 2, 7],
        "item.metadata.benchmark": tasks,
    }
    item = np.arange(4, dtype=np.uint32)
    rows = Group(item=item, sample=item * 0, passed=score > 0, score=score, columns=columns)
    for rows.label in ("exact_match", "exact_match (sound)"):
        [made] = group_values(rows, task_folders=[str(tmp_path)])
        assert made.value == 2 / 4
        assert made.facets == {"benchmark": "both"}
