"""Work directories of evalscope, really made by it (`make_logs.py`), and what can be wrong with them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.evalscope.reader import evalscope
from assay.formats.evalscope.scores import Sums, words
from tests.formats.imports import bring, bring_one, rows_of

LOGS = Path(__file__).parent / "logs"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A copy of the run of `large`."""
    return shutil.copytree(LOGS / "large", tmp_path / "work")


def edit_lines(file: Path, change: Change) -> None:
    rows = rows_of(file)
    for row in rows:
        change(row)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_report(work: Path, change: Change, name: str = "reports/large/sums.json") -> None:
    report = json.loads((work / name).read_text())
    change(report)
    (work / name).write_text(json.dumps(report))


@pytest.mark.parametrize(
    ("model", "score", "with_failure"), [("large", 0.6364, 7 / 12), ("tiny", 0.3636, 4 / 12)]
)
def test_the_score_is_the_tools_own_and_shows_what_it_hides(
    tmp_path: Path, model: str, score: float, with_failure: float
) -> None:
    brought = bring_one(LOGS / model, tmp_path / "out")
    assert brought.unequal() == []
    headline = brought.headline("accuracy", "score", dataset="sums")
    assert headline.theirs == score
    assert headline.ours == pytest.approx(score, abs=5e-5)
    assert (headline.failed, headline.with_failures) == (1, pytest.approx(with_failure))
    assert brought.headline("accuracy", "score", dataset="sums", subset="capitals").failed == 0
    assert brought.headline("accuracy", "macro score of default", dataset="sums").equal
    assert brought.result.agents == [model]


def test_every_field_lands(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "large", tmp_path / "out")
    item = brought.items["sum-9-9"]
    assert (item["data"], item["ground_truth"]) == ({"question": "What is 9 + 9?"}, "18")
    assert item["metadata"] == {"dataset": "sums", "subset": "sums", "id": "sum-9-9"}
    (response,) = brought.responses_to("sum-9-9")
    assert [message["role"] for message in response["messages"]] == ["user", "assistant"]
    assert (response["prompt_tokens"], response["completion_tokens"], response["total_tokens"]) == (
        5,
        4,
        9,
    )
    assert response["served_model"] == "large-2026"
    assert response["inference_time"] > 0
    assert response["metadata"]["finish_reason"] == "stop"
    assert "latency" in response["metadata"]["source"]["perf_metrics"]
    label = brought.labels_of("sum-9-9")["accuracy"]
    assert (label["score"], label["passed"]) == (0.0, False)
    assert label["detailed_results"]["extracted_prediction"] == "0"
    assert label["metadata"] == {"model_id": "large", "dataset": "sums", "subset": "sums"}


def test_refusals_are_told_from_answers(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "large", tmp_path / "out")
    refused = [row["item_id"] for row in brought.responses if row["outcome"] == "refused"]
    # the model's own, and a prompt that the server rejected
    assert sorted(refused) == ["sum-14-6", "sum-33-9"]
    assert brought.responses_to("sum-5-50")[0]["metadata"]["finish_reason"] == "max_tokens"


def test_samples_that_are_in_no_file_are_responses_with_an_error(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "large", tmp_path / "out")
    assert len(brought.responses) == brought.result.planned == 12
    (response,) = brought.responses_to("sums/sums/8")
    assert (response["outcome"], response["metadata"]["subset"]) == ("errored", "sums")
    label = brought.labels_of("sums/sums/8")["accuracy"]
    assert (label["outcome"], label["score"], label["responses"]) == (
        "errored",
        None,
        [response["key"]],
    )


def test_repeats_are_samples_of_one_item(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "repeated", tmp_path / "out")
    assert brought.unequal() == []
    assert len(brought.items) == 6
    assert {(row["sample_index"], row["total_samples"]) for row in brought.responses} == {
        (0, 2),
        (1, 2),
    }
    assert len(brought.responses_to("capital-peru")) == 2
    assert [row["outcome"] for row in brought.responses_to("sums/sums/2")] == ["errored", "errored"]


def test_one_of_two_repeats_that_failed_is_a_sample_of_its_item(tmp_path: Path) -> None:
    work = shutil.copytree(LOGS / "repeated", tmp_path / "work")
    for kind in ("predictions", "reviews"):
        file = work / kind / "tiny/sums_capitals.jsonl"
        kept = [row for row in rows_of(file) if row["index"] != 3]
        file.write_text("".join(json.dumps(row) + "\n" for row in kept))
    brought = bring_one(work, tmp_path / "out")
    assert sorted(row["outcome"] for row in brought.responses_to("capital-peru")) == [
        "errored",
        "ok",
    ]
    assert len(brought.items) == 6


def test_several_datasets_and_a_metric_that_failed(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "metrics", tmp_path / "out")
    assert brought.unequal() == []
    assert brought.result.dataset == "general_mcq+general_qa-large"
    bleu = [row for row in brought.evaluations if row["label"] == "bleu-1"]
    assert {(row["outcome"], row["score"]) for row in bleu} == {("errored", None)}
    assert {row["error"] for row in bleu} >= {"LookupError: a resource is missing"}
    assert brought.headline("Rouge-L-R", "score", dataset="general_qa").theirs == 1.0
    assert brought.headline("accuracy", "score", dataset="general_mcq").failed == 0
    assert any(
        "scores that are 0.0 because the metric failed, which are errors here: 20" in note
        for note in brought.result.notes
    )


def test_items_without_an_id_are_known_by_their_content(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "metrics", tmp_path / "out")
    ids = {row["data"].get("question"): id for id, row in brought.items.items()}
    work = shutil.copytree(LOGS / "metrics", tmp_path / "work")
    for kind in ("predictions", "reviews"):  # in another order, as another run would leave them
        file = work / kind / "large/general_qa_first.jsonl"
        file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    again = bring_one(work, tmp_path / "again")
    assert {row["data"].get("question"): id for id, row in again.items.items()} == ids
    assert len(ids["What is 2 + 3?"]) == 16


def test_a_work_directory_has_an_experiment_for_each_run(tmp_path: Path) -> None:
    assert len(bring(LOGS, tmp_path / "out")) == 4


@pytest.mark.parametrize(
    ("file", "answers"),
    [
        ("reviews/large/sums_capitals.jsonl", 2),
        ("predictions/large/sums_capitals.jsonl", 2),
        ("reports/large/sums.json", 12),
    ],
)
def test_one_file_brings_those_that_belong_to_it(tmp_path: Path, file: str, answers: int) -> None:
    brought = bring_one(LOGS / "large" / file, tmp_path / "out")
    assert len(brought.responses) == answers
    assert brought.headline("accuracy", "score", dataset="sums", subset="capitals").equal
    assert brought.responses_to("capital-peru")[0]["total_tokens"] == 10


@pytest.mark.parametrize(("kind", "scored"), [("predictions", 0), ("reviews", 9)])
def test_a_file_alone(tmp_path: Path, kind: str, scored: int) -> None:
    shutil.copy(LOGS / "large" / kind / "large/sums_sums.jsonl", tmp_path / "mine.jsonl")
    brought = bring_one(tmp_path / "mine.jsonl", tmp_path / "out")
    assert len(brought.responses) == 10  # a gap in the numbers is a sample that failed
    assert brought.responses_to("sum-2-3")[0]["response"] == "The answer is 5."
    assert sum(row["outcome"] == "scored" for row in brought.evaluations) == scored
    assert any("no report" in note for note in brought.result.notes)


def test_a_run_that_did_not_end_has_no_report(tmp_path: Path, work: Path) -> None:
    shutil.rmtree(work / "reports")
    brought = bring_one(work, tmp_path / "out")
    assert brought.result.headlines == []
    assert any("there is no report on sums" in note for note in brought.result.notes)


def test_answers_without_a_review(tmp_path: Path, work: Path) -> None:
    file = work / "reviews/large/sums_sums.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:4]))
    brought = bring_one(work, tmp_path / "out")
    assert any("answers without a review: 5" in note for note in brought.result.notes)
    assert sum(row["outcome"] == "errored" for row in brought.evaluations) == 6
    assert brought.headline("accuracy", "score", dataset="sums").equal is False


def test_a_judge_that_failed_is_not_a_zero(tmp_path: Path, work: Path) -> None:
    def unjudged(row: dict[str, Any]) -> None:
        if row["index"] == 0:
            row["sample_score"]["score"] |= {"value": {}, "status": "parse_error"}

    edit_lines(work / "reviews/large/sums_sums.jsonl", unjudged)
    label = bring_one(work, tmp_path / "out").labels_of("sum-2-3")["accuracy"]
    assert (label["outcome"], label["score"]) == ("unparsed", None)


def test_a_resumed_run_has_the_last_line_of_each_sample(tmp_path: Path, work: Path) -> None:
    file = work / "reviews/large/sums_sums.jsonl"
    row = next(row for row in rows_of(file) if row["index"] == 3)
    row["sample_score"]["score"]["value"]["accuracy"] = 1.0
    with file.open("a") as opened:
        opened.write(json.dumps(row) + "\n")
    brought = bring_one(work, tmp_path / "out")
    assert brought.labels_of("sum-9-9")["accuracy"]["score"] == 1.0
    assert len(brought.responses) == 12


def test_a_torn_line_is_counted(tmp_path: Path, work: Path) -> None:
    file = work / "predictions/large/sums_capitals.jsonl"
    file.write_bytes(file.read_bytes()[:-200])
    brought = bring_one(work, tmp_path / "out")
    assert brought.result.rejected == 1
    assert len(brought.responses) == 12  # the review of it is whole
    assert brought.headline("accuracy", "score", dataset="sums").equal


def test_a_newer_report_is_refused(tmp_path: Path, work: Path) -> None:
    edit_report(work, lambda report: report.update(schema_version=3))
    with pytest.raises(UserError, match="version 3"):
        bring(work, tmp_path / "out")


def test_other_aggregations_are_shown_with_a_reason(tmp_path: Path, work: Path) -> None:
    edit_report(
        work, lambda report: report["metrics"][0]["identity"].update(aggregation="pass_at_k")
    )
    (headline,) = bring_one(work, tmp_path / "out").result.headlines
    assert headline.equal is None
    assert "pass_at_k" in headline.reason


def test_a_score_that_is_not_that_of_the_rows_is_named(tmp_path: Path, work: Path) -> None:
    edit_report(work, lambda report: report["metrics"][0].update(score=0.9))
    assert bring_one(work, tmp_path / "out").unequal() == ["accuracy score"]


def test_unknown_fields_are_kept_and_named(tmp_path: Path, work: Path) -> None:
    edit_lines(work / "predictions/large/sums_sums.jsonl", lambda row: row.update(weather="fine"))
    brought = bring_one(work, tmp_path / "out")
    assert brought.responses_to("sum-2-3")[0]["metadata"]["source"]["weather"] == "fine"
    assert any("weather (9)" in note for note in brought.result.notes)


def test_secrets_do_not_come_in(tmp_path: Path, work: Path) -> None:
    config = work / "configs/task_config.yaml"
    text = config.read_text().replace("http://127.0.0.1", "http://me:hidden@127.0.0.1")
    config.write_text(
        text.replace("api_key:", "generation_config: {api_key: hidden-too}\napi_key:")
    )
    bring_one(work, tmp_path / "out")
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert not [file for file in files if b"hidden" in file.read_bytes()]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(messages=None, model_output=None),
        lambda row: row.update(messages=[1, {"role": 3, "content": [None, {"type": "text"}]}]),
        lambda row: row["model_output"].update(
            choices=[], usage={"input_tokens": "many"}, time="long"
        ),
        lambda row: row["model_output"].update(choices=[{"message": None, "logprobs": 3}]),
        lambda row: row.update(index=row["index"] + 10**15),
        lambda row: row.update(metadata=["x"]),
    ],
)
def test_odd_predictions(tmp_path: Path, work: Path, change: Change) -> None:
    edit_lines(work / "predictions/large/sums_sums.jsonl", change)
    brought = bring_one(work, tmp_path / "out")
    assert len(brought.responses) >= 11


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(sample_score=None),
        lambda row: row["sample_score"].update(
            score={"value": {"accuracy": "high"}, "status": "success"}
        ),
        lambda row: row["sample_score"].update(
            group_id=None, generation_index=None, sample_metadata=None
        ),
        lambda row: row.update(target=None, messages="none"),
    ],
)
def test_odd_reviews(tmp_path: Path, work: Path, change: Change) -> None:
    edit_lines(work / "reviews/large/sums_sums.jsonl", change)
    brought = bring_one(work, tmp_path / "out")
    assert len(brought.responses) == 12


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report.update(metrics=None),
        lambda report: report.update(metrics=[{"identity": {}, "categories": [3]}]),
        lambda report: report["execution_summary"]["subsets"]["sums"].update(requested=10**15),
        lambda report: report["execution_summary"].update(subsets=None),
    ],
)
def test_odd_reports(tmp_path: Path, work: Path, change: Change) -> None:
    edit_report(work, change)
    assert len(bring_one(work, tmp_path / "out").responses) in (11, 12)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", '{"index": 0, "text": "x"}\n'),
        ("rows.jsonl", "\x00"),
        ("report.json", '{"name": "x", "metrics": []}'),
        (
            "report.json",
            '{"schema_version": 2, "dataset_name": "x", "metrics": [], "execution_summary": {}}',
        ),
    ],
)
def test_what_is_not_of_evalscope(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert evalscope(tmp_path) == []


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("accuracy", {"accuracy"}),
        ("acc", {"accuracy"}),
        ("bleu-1", {"bleu", "1"}),
        ("Rouge-L-R", {"rouge", "l", "recall"}),
        ("Rouge-2-F", {"rouge", "2", "f1"}),
    ],
)
def test_names_of_metrics(label: str, meant: set[str]) -> None:
    assert words(label) == meant


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=7), min_size=1, max_size=4
    )
)
def test_means_of_rounded_means_are_found_again(subsets: list[list[float]]) -> None:
    sums = Sums()
    entries = []
    for number, scores in enumerate(subsets):
        for score in scores:
            sums.add(("m", "d", str(number)), "acc", score, counted=True)
        mean = round(sum(scores) / len(scores), 4)
        entries.append(
            {"name": str(number), "score": mean, "num": len(scores), "is_aggregate": False}
        )
    micro = round(
        sum(entry["score"] * entry["num"] for entry in entries) / sum(map(len, subsets)), 4
    )
    macro = round(sum(entry["score"] for entry in entries) / len(entries), 4)
    category = {"name": ["all"], "score": micro, "macro_score": macro, "subsets": entries}
    metric = {
        "identity": {"name": "accuracy", "aggregation": "mean"},
        "score": micro,
        "categories": [category],
    }
    for headline in sums.headlines(
        {"model_name": "m", "dataset_name": "d", "metrics": [metric]}, several=False
    ):
        assert not headline.reason
        assert headline.ours is None or headline.ours == pytest.approx(headline.value, abs=1e-9)
