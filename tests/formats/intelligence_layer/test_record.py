"""Records: dataclasses with what existing code does with the original's models."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel

from assay.formats.intelligence_layer.evaluation import EvaluationOverview, Example, RunOverview
from tests.formats.intelligence_layer.labs import Question

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run(id: str = "r", **values: Any) -> RunOverview:
    given: dict[str, Any] = {"dataset_id": "d", "start": NOW, "end": NOW, "description": "a run"}
    return RunOverview(**given, failed_example_count=0, successful_example_count=2, id=id, **values)


def evaluation(*runs: RunOverview) -> EvaluationOverview:
    return EvaluationOverview(
        run_overviews=frozenset(runs),
        id="v",
        start_date=NOW,
        end_date=NOW,
        successful_evaluation_count=2,
        failed_evaluation_count=0,
        description="an evaluation",
    )


def test_overviews_are_frozen_equal_and_hashed_by_id() -> None:
    one, other = run(labels={"a"}), run(labels={"a"})
    assert one == other
    assert len({one, other, run("s")}) == 2
    assert one != run(labels={"b"})
    with pytest.raises(AttributeError):
        one.id = "x"  # type: ignore[misc]


def test_overviews_come_back_from_their_json() -> None:
    first = evaluation(run("a", labels={"x"}, metadata={"n": 1}), run("b"))
    assert EvaluationOverview.model_validate_json(first.model_dump_json()) == first


def test_generic_forms_make_values() -> None:
    made = Example[str, str](input="i", expected_output="o", id="e")
    assert made == Example(input="i", expected_output="o", id="e")


def test_a_subclass_may_be_decorated_as_well() -> None:
    @dataclasses.dataclass(kw_only=True)
    class Decorated(Example[str, str]):
        tags: list[str] = dataclasses.field(default_factory=lambda: ["given"])
        count: int = 0

    assert Decorated(input="i", expected_output="o").tags == ["given"]


def test_records_are_fields_of_models() -> None:
    class Outer(BaseModel):
        example: Example[Question, str]
        runs: frozenset[RunOverview] = frozenset()

    example = Example(input=Question(text="q"), expected_output="o")
    outer = Outer(example=example, runs=frozenset([run()]))
    assert outer.example is example
    assert Outer.model_validate_json(outer.model_dump_json()) == outer
    with pytest.raises(pydantic.ValidationError):
        Outer.model_validate({"example": {"input": {"wrong": 1}, "expected_output": "o"}})
