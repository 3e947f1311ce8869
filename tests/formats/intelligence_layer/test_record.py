"""Records do what existing code does with pydantic models; where both can, pydantic itself is the oracle."""

import dataclasses
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec
import pydantic
import pytest
from pydantic import BaseModel, Field

from assay.formats.intelligence_layer.evaluation import (
    AggregationOverview,
    Dataset,
    EvaluationOverview,
    Example,
    ExampleOutput,
    FailedExampleRun,
    RunOverview,
)
from tests.formats.intelligence_layer.labs import Question, QuestionData

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Model(BaseModel, Generic[I, O]):
    """The original's Example, as a model."""

    input: I
    expected_output: O
    id: str = "e"
    metadata: dict[str, Any] | None = None


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


def both(**values: Any) -> tuple[Any, Any]:
    return Example(**values), Model(**values)


@pytest.mark.parametrize(
    "options", [{}, {"exclude": {"id"}}, {"include": {"id", "input"}}, {"exclude_none": True}]
)
@pytest.mark.parametrize("mode", ["python", "json"])
@pytest.mark.parametrize(
    "input",
    [
        Question(text="q"),
        QuestionData("q"),
        [Question(text="q")],
        {"k": (1, Question(text="q"))},
        {1},
        NOW,
    ],
)
def test_a_dump_is_what_pydantic_gives(input: Any, mode: Any, options: dict[str, Any]) -> None:
    ours, theirs = both(input=input, expected_output=None, id="e")
    dump = ours.model_dump(mode, **options)
    read = (
        msgspec.json.decode(msgspec.json.encode(dump)) if mode == "json" else dump
    )  # a tuple is a list in JSON
    assert read == theirs.model_dump(mode=mode, **options)
    assert msgspec.json.decode(ours.model_dump_json(**options)) == msgspec.json.decode(
        theirs.model_dump_json(**options)
    )


def test_fields_and_schema() -> None:
    assert list(Example.model_fields) == list(Model.model_fields)
    assert {name for name, field in Dataset.model_fields.items() if field.is_required()} == {"name"}
    assert RunOverview.model_fields["description"].annotation is str
    assert run().model_fields["labels"].default_factory() == set()
    schema = Example[Question, int].model_json_schema()
    assert '"integer"' in msgspec.json.encode(schema).decode()
    assert FailedExampleRun.model_json_schema()["$defs"]["FailedExampleRun"]["required"] == [
        "error_message"
    ]


def test_copies() -> None:
    first = Example(input=["a"], expected_output=1)
    shallow, deep = first.model_copy(update={"id": "other"}), first.model_copy(deep=True)
    assert (shallow.id, shallow.input is first.input) == ("other", True)
    assert (deep == first, deep.input is first.input) == (True, False)
    frozen = run().model_copy(update={"description": "changed"})
    assert (frozen.description, frozen.id) == ("changed", "r")
    assert shallow.id != first.id


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
    assert EvaluationOverview.model_validate(first.model_dump()) == first
    assert EvaluationOverview.model_validate(first) is first


def test_generic_forms_make_and_read_values_of_their_types() -> None:
    made = Example[str, str](input="i", expected_output="o", id="e")
    assert made == Example(input="i", expected_output="o", id="e")
    data = {"input": {"text": "q"}, "expected_output": "o", "id": "e"}
    assert Example[Question, str].model_validate(data).input == Question(text="q")
    assert Example[QuestionData, str].model_validate_json(
        msgspec.json.encode(data)
    ).input == QuestionData("q")
    assert Example[Question, str].model_validate(
        {**data, "input": Question(text="q")}
    ).input == Question(text="q")
    for wrong in (Example[int, str], Example[QuestionData, int], Example[Question, int]):
        with pytest.raises(pydantic.ValidationError):
            wrong.model_validate(data)
    assert Example[I, str][int].model_validate({**data, "input": 5}).input == 5
    output = ExampleOutput[Question].model_validate(
        {"run_id": "r", "example_id": "e", "output": {"text": "q"}}
    )
    assert output.output == Question(text="q")


class Tagged(Example[str, str]):
    tags: list[str] = []
    weight: float = 1.0
    notes: dict[str, int] = Field(default_factory=dict)
    level: int = Field(3)
    source: str


def test_a_subclass_may_add_fields_without_a_decorator() -> None:
    first = Tagged(input="i", expected_output="o", source="here")
    second = Tagged(input="i", expected_output="o", source="here", id=first.id)
    assert first == second
    assert first != Tagged(input="i", expected_output="o", source="there", id=first.id)
    first.tags.append("new")
    assert (second.tags, second.notes, second.level) == ([], {}, 3)
    assert repr(first).startswith("Example ID = ")
    assert Tagged.model_validate_json(first.model_dump_json()) == first
    assert [name for name, field in Tagged.model_fields.items() if field.is_required()][
        -1
    ] == "source"
    with pytest.raises(TypeError, match="source"):
        Tagged(input="i", expected_output="o")  # type: ignore[call-arg]


def test_a_subclass_may_be_decorated_as_well() -> None:
    @dataclasses.dataclass(kw_only=True)
    class Decorated(Example[str, str]):
        tags: list[str] = dataclasses.field(default_factory=lambda: ["given"])
        count: int = 0

    assert Decorated(input="i", expected_output="o").tags == ["given"]


def test_a_subclass_of_a_frozen_overview_stays_frozen_and_hashed_by_id() -> None:
    class Priced(RunOverview):
        price: float = 0.0

    first = Priced(**run().model_dump(), price=1.5)
    assert hash(first) == hash(run())
    assert first.price == 1.5
    with pytest.raises(AttributeError):
        first.price = 2.0  # type: ignore[misc]


def test_records_are_fields_of_models() -> None:
    class Outer(BaseModel):
        example: Example[Question, str]
        runs: frozenset[RunOverview] = frozenset()
        tagged: Tagged | None = None

    example = Example(input=Question(text="q"), expected_output="o")
    tagged = Tagged(input="i", expected_output="o", source="s")
    outer = Outer(example=example, runs=frozenset([run()]), tagged=tagged)
    assert outer.example is example
    assert Outer.model_validate_json(outer.model_dump_json()) == outer
    with pytest.raises(pydantic.ValidationError):
        Outer.model_validate({"example": {"input": {"wrong": 1}, "expected_output": "o"}})


def test_an_aggregation_is_typed_by_its_statistics() -> None:
    overview = AggregationOverview[Question](
        evaluation_overviews=frozenset([evaluation(run())]),
        id="a",
        start=NOW,
        end=NOW,
        successful_evaluation_count=1,
        crashed_during_evaluation_count=0,
        description="d",
        statistics=Question(text="s"),
    )
    assert AggregationOverview[Question].model_validate_json(overview.model_dump_json()) == overview


def test_none_of_it_needs_pydantic() -> None:
    code = (
        "import sys\n"
        "from assay.formats.intelligence_layer.evaluation import Example\n"
        "class Own(Example[str, int]):\n"
        "    tags: list[str] = []\n"
        "own = Own(input='i', expected_output=1)\n"
        "assert Own.model_validate_json(own.model_dump_json()) == own\n"
        "assert own.model_copy(update={'id': 'x'}).id == 'x' and Own.model_json_schema()\n"
        "try: Example[str, int].model_validate({'input': 1, 'expected_output': 1})\n"
        "except ValueError: pass\n"
        "else: sys.exit('not refused')\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
