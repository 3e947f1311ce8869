"""The contract of evaluation repositories: in memory and in files."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from assay.analysis.rank.rank import rank
from assay.formats.intelligence_layer.evaluation import (
    ComparisonEvaluation,
    EvaluationOverview,
    EvaluationRepository,
    ExampleEvaluation,
    FailedExampleEvaluation,
    FileEvaluationRepository,
    InMemoryEvaluationRepository,
    Matches,
    MatchOutcome,
    RunOverview,
)
from assay.records import Evaluation
from assay.store.repositories import EvaluationRepository as Rows
from assay.store.stores import FolderStore
from tests.formats.intelligence_layer.worlds import NOON


class Mark(BaseModel):
    points: str


class OtherMark(BaseModel):
    data: str


LATER = NOON + timedelta(minutes=1, microseconds=1)
KINDS: dict[str, Callable[[Path], EvaluationRepository]] = {
    "memory": lambda _: InMemoryEvaluationRepository(),
    "files": FileEvaluationRepository,
}


@pytest.fixture(params=KINDS)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> EvaluationRepository:
    return KINDS[request.param](tmp_path / "root")


def result(
    example_id: str, value: Any, evaluation_id: str = "evaluation"
) -> ExampleEvaluation[Any]:
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=example_id, result=value)


def overview(id: str = "evaluation") -> EvaluationOverview:
    run = RunOverview(
        dataset_id="dataset",
        id="run",
        start=NOON,
        end=LATER,
        failed_example_count=1,
        successful_example_count=2,
        description="a run",
        labels={"old"},
        metadata={"temperature": 0.5},
    )
    return EvaluationOverview(
        run_overviews=frozenset([run]),
        id=id,
        start_date=NOON,
        end_date=LATER,
        successful_evaluation_count=2,
        failed_evaluation_count=0,
        description="an evaluation",
        labels={"new"},
        metadata={"judge": {"name": "x"}},
    )


def test_a_new_evaluation_has_an_id_of_its_own(repository: EvaluationRepository) -> None:
    assert repository.initialize_evaluation() != repository.initialize_evaluation()


def test_results_are_read_as_they_were_stored(repository: EvaluationRepository) -> None:
    stored = result("e", Mark(points="5"))
    repository.store_example_evaluation(stored)
    assert repository.example_evaluation("evaluation", "e", Mark) == stored
    assert list(repository.example_evaluations("evaluation", Mark)) == [stored]


def test_failures_are_read_whatever_the_type(repository: EvaluationRepository) -> None:
    stored = result("e", FailedExampleEvaluation(error_message="bad\nluck"))
    repository.store_example_evaluation(stored)
    assert repository.example_evaluation("evaluation", "e", Mark) == stored
    assert repository.example_evaluation("evaluation", "e", dict) == stored


def test_results_come_sorted_and_apart(repository: EvaluationRepository) -> None:
    good = [result(example, Mark(points=example)) for example in ("9", "10", "1", "a.1", "a.2")]
    bad = [result(example, FailedExampleEvaluation(error_message="no")) for example in ("2", "b")]
    for each in (*good, *bad):
        repository.store_example_evaluation(each)
    ids = [each.example_id for each in repository.example_evaluations("evaluation", Mark)]
    assert ids == ["1", "10", "2", "9", "a.1", "a.2", "b"]
    successful = repository.successful_example_evaluations("evaluation", Mark)
    assert list(successful) == sorted(good, key=lambda each: each.example_id)
    assert list(repository.failed_example_evaluations("evaluation", Mark)) == bad


def test_a_result_stored_again_takes_the_place_of_the_first(
    repository: EvaluationRepository,
) -> None:
    repository.store_example_evaluation(result("e", Mark(points="1")))
    repository.store_example_evaluation(result("e", Mark(points="2")))
    assert list(repository.example_evaluations("evaluation", Mark)) == [
        result("e", Mark(points="2"))
    ]
    assert repository.example_evaluation("evaluation", "e", Mark) == result("e", Mark(points="2"))


def test_a_wrong_type_is_pydantics_error(repository: EvaluationRepository) -> None:
    repository.store_example_evaluation(result("e", Mark(points="1")))
    with pytest.raises(ValidationError):
        repository.example_evaluation("evaluation", "e", OtherMark)
    with pytest.raises(ValidationError):
        repository.example_evaluations("evaluation", OtherMark)


def test_unknown_evaluations_are_errors_and_unknown_examples_are_none(
    repository: EvaluationRepository,
) -> None:
    repository.store_example_evaluation(result("e", Mark(points="1")))
    assert repository.example_evaluation("evaluation", "nobody", Mark) is None
    for example in ("e", "nobody"):
        with pytest.raises(ValueError, match="nothing"):
            repository.example_evaluation("nothing", example, Mark)
    with pytest.raises(ValueError, match="nothing"):
        repository.example_evaluations("nothing", Mark)
    with pytest.raises(ValueError, match="nothing"):
        repository.failed_example_evaluations("nothing", Mark)
    assert repository.evaluation_overview("nothing") is None


def test_overviews_are_read_as_they_were_stored_and_sorted(
    repository: EvaluationRepository,
) -> None:
    stored = [overview(id) for id in ("b", "a", "c.1", "c.2", "x/y")]
    for each in stored:
        repository.store_evaluation_overview(each)
    assert list(repository.evaluation_overview_ids()) == ["a", "b", "c.1", "c.2", "x/y"]
    assert list(repository.evaluation_overviews()) == sorted(stored, key=lambda each: each.id)
    again = repository.evaluation_overview("x/y")
    assert again is not None
    (run,) = again.run_overviews
    assert (run.labels, run.metadata, run.start) == ({"old"}, {"temperature": 0.5}, NOON)


def test_an_overview_makes_an_evaluation_without_results(repository: EvaluationRepository) -> None:
    repository.store_evaluation_overview(overview())
    assert list(repository.example_evaluations("evaluation", Mark)) == []
    assert list(repository.failed_example_evaluations("evaluation", Mark)) == []
    assert repository.example_evaluation("evaluation", "e", Mark) is None


def test_results_without_an_overview_are_no_evaluation_in_the_list(
    repository: EvaluationRepository,
) -> None:
    repository.store_evaluation_overview(overview("finished"))
    repository.store_example_evaluation(result("e", Mark(points="1"), "begun"))
    assert list(repository.evaluation_overview_ids()) == ["finished"]


def test_many_results_are_found_one_by_one_while_more_arrive(
    repository: EvaluationRepository,
) -> None:
    for number in range(30):
        repository.store_example_evaluation(result(f"e{number}", Mark(points=str(number))))
        found = repository.example_evaluation("evaluation", f"e{number // 2}", Mark)
        assert found is not None
        assert found.result == Mark(points=str(number // 2))


# ---- overviews as objects


def test_overviews_are_hashed_by_id_and_cannot_be_changed() -> None:
    one, other = overview(), overview()
    assert hash(one) == hash(other)
    with pytest.raises(AttributeError):
        one.id = "another"  # type: ignore[misc]
    assert "Successful examples = 2" in str(one)
    assert 'Description = "an evaluation"' in str(one)
    assert "Run Overview ID = run" in str(one)
    assert "Result = points='1'" in str(result("e", Mark(points="1")))


def test_defaults_are_not_shared() -> None:
    one, other = (
        EvaluationOverview(
            run_overviews=frozenset(),
            id=id,
            start_date=NOON,
            end_date=NOON,
            successful_evaluation_count=0,
            failed_evaluation_count=0,
            description="",
        )
        for id in "ab"
    )
    one.labels.add("x")
    one.metadata["x"] = 1
    assert (other.labels, other.metadata) == (set(), {})


# ---- files


def test_a_new_process_reads_what_another_wrote(tmp_path: Path) -> None:
    one = FileEvaluationRepository(tmp_path)
    one.store_example_evaluation(result("e", Mark(points="1")))
    stored = overview()
    one.store_evaluation_overview(stored)
    other = FileEvaluationRepository(tmp_path)
    assert other.evaluation_overview("evaluation") == stored
    assert other.example_evaluation("evaluation", "e", Mark) == result("e", Mark(points="1"))


def test_rows_and_manifest_are_assays_own(tmp_path: Path) -> None:
    repository = FileEvaluationRepository(tmp_path)
    repository.store_example_evaluation(result("e", Mark(points="1")))
    repository.store_example_evaluation(result("f", FailedExampleEvaluation(error_message="no")))
    repository.store_evaluation_overview(overview())
    store = FolderStore(tmp_path)
    manifest = store.manifest("evaluation", "evaluation")
    assert manifest is not None
    assert (manifest.complete, manifest.labels, manifest.counts) == (True, ["new"], {"scored": 2})
    assert {"kind": "run", "id": "run"} in manifest.inputs
    rows = list(Rows(store).evaluations("evaluation"))
    assert [(row.item_id, row.outcome, row.value) for row in rows] == [
        ("e", "scored", {"points": "1"}),
        ("f", "errored", None),
    ]


def test_matches_are_rows_with_players_and_payoffs(tmp_path: Path) -> None:
    repository = FileEvaluationRepository(tmp_path)
    matches = Matches(
        comparison_evaluations=[
            ComparisonEvaluation(first_player="b", second_player="a", outcome=MatchOutcome.A_WINS),
            ComparisonEvaluation(first_player="a", second_player="c", outcome=MatchOutcome.DRAW),
        ]
    )
    repository.store_example_evaluation(result("e", matches))
    repository.store_example_evaluation(result("f", Matches(comparison_evaluations=[])))
    repository.store_evaluation_overview(overview())
    rows: list[Evaluation] = list(Rows(FolderStore(tmp_path)).evaluations("evaluation"))
    assert [(row.item_id, row.players, row.score) for row in rows] == [
        ("e", ("a", "b"), 0.0),
        ("e", ("a", "c"), 0.5),
        ("f", None, None),
    ]
    assert len({row.key for row in rows}) == 3
    assert [each.result for each in repository.example_evaluations("evaluation", Matches)] == [
        matches,
        Matches(comparison_evaluations=[]),
    ]


def test_assay_ranks_the_players_of_stored_matches(tmp_path: Path) -> None:
    repository = FileEvaluationRepository(tmp_path)
    for evaluation, pairs in (("one", ["ab", "ac"]), ("two", ["ad", "bd", "cd", "bc"])):
        for example in ("e", "f"):
            won = [
                ComparisonEvaluation(
                    first_player=pair[1], second_player=pair[0], outcome=MatchOutcome.B_WINS
                )
                for pair in pairs
            ]
            repository.store_example_evaluation(
                result(example, Matches(comparison_evaluations=won), evaluation)
            )
        repository.store_evaluation_overview(overview(evaluation))
    found = rank([tmp_path / "evaluations" / name for name in ("one", "two")], method="win-rate")
    assert {each.player: (each.win_rate, each.matches) for each in found.standings} == {
        "a": (1.0, 6),
        "b": (pytest.approx(2 / 3), 6),
        "c": (pytest.approx(1 / 3), 6),
        "d": (0.0, 6),
    }


def test_single_matches_of_one_example_are_kept_by_their_players(
    repository: EvaluationRepository,
) -> None:
    def match(first: str, second: str, outcome: str) -> ExampleEvaluation[Any]:
        players = {"first_player": first, "second_player": second}
        return result("e", ComparisonEvaluation(**players, outcome=MatchOutcome(outcome)))

    for each in (match("a", "b", "draw"), match("a", "c", "a_wins"), match("a", "b", "b_wins")):
        repository.store_example_evaluation(each)
    found = repository.example_evaluations("evaluation", ComparisonEvaluation)
    assert list(found) == [match("a", "b", "b_wins"), match("a", "c", "a_wins")]


def test_reading_makes_no_folders_and_an_empty_root_has_no_evaluations(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    repository = FileEvaluationRepository(root)
    assert root.is_dir()
    assert repository.evaluation_overview("x") is None
    with pytest.raises(ValueError):
        repository.example_evaluations("x", Mark)
    with pytest.raises(FileNotFoundError):
        repository.evaluation_overview_ids()
    assert list(root.iterdir()) == []


def test_folders_of_the_original_are_read(tmp_path: Path) -> None:
    """Files as the original's own code writes them, in the layout of the specification."""
    folder = tmp_path / "evaluations"
    (folder / "11-22").mkdir(parents=True)
    run = {
        "dataset_id": "d",
        "id": "r",
        "start": "2024-05-01T10:00:00.123456Z",
        "end": "2024-05-01T10:00:01Z",
        "failed_example_count": 1,
        "successful_example_count": 1,
        "description": "runner",
        "labels": [],
        "metadata": {},
    }
    whole = {
        "run_overviews": [run],
        "id": "11-22",
        "start_date": "2024-05-01T10:01:00Z",
        "end_date": "2024-05-01T10:02:00Z",
        "successful_evaluation_count": 1,
        "failed_evaluation_count": 1,
        "description": "evaluator",
        "labels": ["l"],
        "metadata": {"k": "v"},
    }
    (folder / "11-22.json").write_text(json.dumps(whole, indent=2))
    began = {
        key: whole[key]
        for key in ("run_overviews", "id", "start_date", "description", "labels", "metadata")
    }
    (folder / "11-22.partial_json").write_text(
        json.dumps({**began, "submitted_evaluation_count": 2})
    )
    for example, failed, value in [
        ("b", False, {"points": "3"}),
        ("a", True, {"error_message": "oh"}),
        ("c d", False, {"points": "4"}),
    ]:
        row = {"evaluation_id": "11-22", "example_id": example, "is_exception": failed}
        (folder / "11-22" / f"{example}.json").write_text(
            json.dumps({**row, "json_result": json.dumps(value)})
        )
    repository = FileEvaluationRepository(tmp_path)
    found = repository.evaluation_overview("11-22")
    assert found is not None
    assert [run.start.microsecond for run in found.run_overviews] == [123456]
    assert (found.labels, found.metadata, found.skipped_evaluation_count) == (
        {"l"},
        {"k": "v"},
        None,
    )
    assert repository.unfinished_ids() == []
    (folder / "33.partial_json").write_text(json.dumps({**began, "id": "33"}))
    assert repository.unfinished_ids() == ["33"]
    assert repository.evaluation_overview("33") is None
    assert repository.evaluation_overview_ids() == ["11-22"]
    assert [each.result for each in repository.example_evaluations("11-22", Mark)] == [
        FailedExampleEvaluation(error_message="oh"),
        Mark(points="3"),
        Mark(points="4"),
    ]
    assert repository.example_evaluation("11-22", "c d", Mark) == result(
        "c d", Mark(points="4"), "11-22"
    )
    assert repository.example_evaluation("11-22", "b", Mark) == result(
        "b", Mark(points="3"), "11-22"
    )
    assert repository.example_evaluation("11-22", "c", Mark) is None
    repository.store_example_evaluation(result("d", Mark(points="5"), "11-22"))
    again = FileEvaluationRepository(tmp_path)
    assert [each.example_id for each in again.example_evaluations("11-22", Mark)] == [
        "a",
        "b",
        "c d",
        "d",
    ]
    repository.store_evaluation_overview(overview("ours"))
    assert repository.evaluation_overview_ids() == ["11-22", "ours"]
