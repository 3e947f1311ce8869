"""The page of an item is `trace`, found by the index instead of a scan."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

import assay
from assay.analysis.look.trace import Judging
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page
from tests.support import Lab
from tests.viewer.generated import Row, evaluations, experiment, responses, write


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def check(experiments: Experiments, id: str, folder: Path, item: str) -> None:
    answer = plain(page(experiments, "sample", {"item": [item], "experiment": [id]}))
    traced = plain(assay.trace(folder, item))
    (shown,) = answer["experiments"]
    assert answer["item"] == traced["item"]
    assert {name: shown[name] for name in ("samples", "matches", "calls")} == {
        name: traced[name] for name in ("samples", "matches", "calls")
    }


@pytest.mark.parametrize("keys", [True, False])
def test_the_page_is_the_trace(tmp_path: Path, keys: bool) -> None:
    folder = experiment(tmp_path / "runs/e", 1, keys=keys)
    experiments = Experiments([tmp_path / "runs"])
    for number in range(12):
        check(experiments, "e", folder, f"q{number:03}")


def test_the_page_of_a_run_is_its_trace(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    lab = Lab(tmp_path / "lab")
    lab.run()
    folder = tmp_path / "lab/out"
    experiments = Experiments([folder])
    (id,) = experiments.list()
    base = {"owner": "judge", "step": "s", "messages": [{"content": "q1 q2"}]}
    calls = [{"item_id": f"q{at % 4}", "ordinal": at, **base} for at in range(9)]
    write(folder / "calls.jsonl", [*calls, {"item_id": "q10"}, {"owner": "q1"}])
    for number in range(4):
        check(experiments, id, folder, f"q{number}")
    shown = page(experiments, "sample", {"item": ["q1"], "experiment": [id]})["experiments"][0]
    assert len(shown["calls"]) == 2
    entered = {
        metric["metric_name"]
        for row in shown["samples"][0].evaluations
        for metric in row["metrics"]
    }
    assert entered == {"pass@1"}


def test_matches_and_labels_without_responses_are_traced(tmp_path: Path) -> None:
    rows = responses(2, 3)
    players = [row for row in rows if row["item_id"] == "q000"][:2]
    base = {
        "item_id": "q000",
        "label": "better",
        "scorer": "better",
        "outcome": "scored",
        "passed": True,
        "score": 1.0,
    }
    match = base | {
        "players": ["small", "large"],
        "model_name": "small vs large",
        "sample_index": 0,
    }
    seats = [
        {**match, "seat": seat, "responses": [row["key"] for row in players]} for seat in (0, 1)
    ]
    write(tmp_path / "runs/pairs/responses.jsonl", rows)
    write(tmp_path / "runs/pairs/evaluation_results.jsonl", [*evaluations(rows, 3), *seats])
    write(
        tmp_path / "runs/judged/evaluation_results.jsonl",
        evaluations(responses(4, 3, keys=False), 5),
    )
    experiments = Experiments([tmp_path / "runs"])
    for name in ("pairs", "judged"):
        (tmp_path / "runs" / name / "manifest.json").write_text("{}")
        for number in range(3):
            check(experiments, name, tmp_path / "runs" / name, f"q{number:03}")
    both = page(experiments, "sample", {"item": ["q000"]})
    assert [shown["experiment"] for shown in both["experiments"]] == ["judged", "pairs"]
    assert len(both["experiments"][1]["matches"][0].evaluations) == 2


_KEYS = st.sampled_from(["a", "b", ""])
_PLACE = {
    "model_name": st.sampled_from(["small", "large", "", None]),
    "sample_index": st.integers(0, 2),
}


@given(
    evaluations=st.lists(
        st.fixed_dictionaries(
            {**_PLACE, "responses": st.none() | st.lists(_KEYS)},
            optional={"players": st.just(["small", "large"])},
        )
    ),
    response=st.fixed_dictionaries({**_PLACE, "key": st.none() | _KEYS}),
)
def test_an_evaluation_is_of_the_response_it_names_or_stands_by(
    evaluations: list[Row], response: Row
) -> None:
    def judges(row: Row) -> bool:
        if row["responses"] and response["key"]:
            return response["key"] in row["responses"]
        same_model = "players" in row or (row["model_name"] or "") == (response["model_name"] or "")
        return same_model and row["sample_index"] == response["sample_index"]

    assert Judging(evaluations).of(response) == [
        at for at, row in enumerate(evaluations) if judges(row)
    ]


def test_an_item_with_very_many_samples(tmp_path: Path) -> None:
    rows = [
        {"item_id": "q", "sample_index": at, "model_name": "m", "key": f"{at:032x}"}
        for at in range(10_000)
    ]
    labels = [
        {**row, "label": "l", "outcome": "scored", "score": 1.0, "responses": [row["key"]]}
        for row in rows
    ]
    write(tmp_path / "e/responses.jsonl", rows)
    write(tmp_path / "e/evaluation_results.jsonl", labels)
    (tmp_path / "e/manifest.json").write_text("{}")
    began = time.process_time()
    (shown,) = page(Experiments([tmp_path]), "sample", {"item": ["q"]})["experiments"]
    assert time.process_time() - began < 20  # each with each would take minutes
    assert [len(sample.evaluations) for sample in shown["samples"]] == [1] * len(rows)


def test_an_item_that_is_not_there_is_named_with_its_neighbours(tmp_path: Path) -> None:
    experiment(tmp_path / "runs/e", 6)
    with pytest.raises(UserError) as error:
        page(Experiments([tmp_path / "runs"]), "sample", {"item": ["q0001"]})
    assert "q001" in (error.value.fix or "")
