"""Responses and evaluations find each other in whatever order they stand on disk: against a join by hand."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from assay.analysis.look.joining import Joining
from tests.formats.ragicamp.test_export import Tables, export, find_source, load

Row = dict[str, Any]


def write(folder: Path, items: list[str], responses: list[Row], evaluations: list[Row]) -> Path:
    folder.mkdir()
    tables = {"items": [{"id": id, "data": {"question": f"{id}?"}} for id in items]}
    tables |= {"responses": responses, "evaluation_results": evaluations}
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def rows_of(ids: list[str], samples: int, keys: bool = True) -> tuple[list[Row], list[Row]]:
    """Responses, and two evaluations of each, which follow them."""
    responses: list[Row] = []
    evaluations: list[Row] = []
    for number, (id, sample) in enumerate((id, sample) for id in ids for sample in range(samples)):
        place = {"item_id": id, "sample_index": sample, "model_name": "m"}
        key = f"{number + 1:032x}"  # equal in their first 64 bits
        responses.append({**place, "response": f"{id}{sample}", **({"key": key} if keys else {})})
        for label in ("f1", "em"):
            score = {"label": label, "score": number * (1.0 if label == "f1" else 0.5)}
            evaluations.append(
                {**place, **score, "scorer": label, **({"responses": [key]} if keys else {})}
            )
    return responses, evaluations


def joined(folder: Path, samples: Any) -> Any:
    """Answers and scores of each agent by sample index, in order; for means, those of each item together."""
    rows = Joining(Tables(find_source(folder)), means=samples == "mean")
    found: dict[int, Any] = {}
    for group in rows.series():
        cases = [
            (row["response"], {name: one["score"] for name, one in of})
            for row, of in rows.cases(group)
        ]
        if samples == "mean":
            assert sum(map(len, rows.by_item(group))) == len(cases)
        found[max(group.address.sample, 0)] = cases
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.booleans(), st.integers(1, 3), st.sampled_from(["separate", "mean"]))
def test_any_order_gives_what_a_join_by_hand_gives(
    data: st.DataObject, keys: bool, count: int, samples: str
) -> None:
    items = ["b", "a", "d", "c"]
    lost = data.draw(st.sampled_from([[], ["lost"]]))
    responses, evaluations = rows_of([*items, *lost], count, keys)
    expected: dict[int, list[Any]] = {}
    for number, row in enumerate(responses):
        case = (row["response"], {"em": number * 0.5, "f1": number * 1.0})
        expected.setdefault(row["sample_index"] if samples == "separate" else 0, []).append(case)
    if data.draw(st.booleans()):
        responses = data.draw(st.permutations(responses))
    if data.draw(st.booleans()):
        evaluations = data.draw(st.permutations(evaluations))
    with TemporaryDirectory() as temporary:
        assert (
            joined(write(Path(temporary, "out"), items, responses, evaluations), samples)
            == expected
        )


def test_evaluations_of_answers_that_are_gone_are_left_out(tmp_path: Path) -> None:
    responses, evaluations = rows_of(["a", "b", "c"], 1)
    folder = write(tmp_path / "out", ["a", "b", "c"], [responses[0], responses[2]], evaluations)
    assert joined(folder, "separate") == {
        0: [("a0", {"em": 0.0, "f1": 0.0}), ("c0", {"em": 1.0, "f1": 2.0})]
    }


def test_items_that_are_gone_stay_apart_in_the_mean(tmp_path: Path) -> None:
    responses, evaluations = rows_of(["a", "x", "y"], 2)
    folder = write(tmp_path / "out", ["a"], responses[::-1], evaluations)
    export(folder, tmp_path / "rc", samples="mean")
    found = load(tmp_path / "rc" / "m_predictions.json")
    assert found["num_examples"] == 3
    assert {
        row["question_id"]: (row["predictions"], row["metrics"]["f1"])
        for row in found["predictions"]
    } == {
        "a": (["a0", "a1"], 0.5),
        "x": (["x0", "x1"], 2.5),
        "y": (["y0", "y1"], 4.5),
    }
