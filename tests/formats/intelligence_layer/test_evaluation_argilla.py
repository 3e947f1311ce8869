"""Evaluation by people: submitted, answered, retrieved; over files, and through a client of one's own."""

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from assay.errors import UserError
from assay.formats.intelligence_layer.connectors import (
    ArgillaClient,
    ArgillaEvaluation,
    ArgillaWrapperClient,
    FileArgillaClient,
    RatingQuestion,
    RecordData,
    TextField,
)
from assay.formats.intelligence_layer.evaluation import (
    ArgillaEvaluationLogic,
    ArgillaEvaluator,
    AsyncFileEvaluationRepository,
    AsyncInMemoryEvaluationRepository,
    ComparisonEvaluation,
    ComparisonEvaluationAggregationLogic,
    Example,
    FailedExampleEvaluation,
    InstructComparisonArgillaEvaluationLogic,
    MatchOutcome,
    RecordDataSequence,
    SuccessfulExampleOutput,
)
from tests.formats.intelligence_layer.worlds import Correct, World

ROOT = Path(__file__).parents[3]


class MemoryClient(ArgillaClient):
    """Everybody gives 3; only the first `answers` records are answered; the upload number `fails_at` fails."""

    def __init__(self, answers: int | None = None, fails_at: int | None = None) -> None:
        self.datasets: dict[str, list[RecordData]] = {}
        self.names: dict[str, str] = {}
        self.answers, self.fails_at, self.uploads = answers, fails_at, 0

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        assert (workspace_id, len(fields), len(questions)) == ("workspace", 2, 1)
        dataset_id = str(uuid4())
        self.datasets[dataset_id], self.names[dataset_id] = [], dataset_name
        return dataset_id

    def ensure_dataset_exists(self, *args: Any) -> str:
        raise NotImplementedError

    def add_record(self, dataset_id: str, record: RecordData) -> None:
        self.uploads += 1
        if self.uploads == self.fails_at:
            raise ConnectionError("the upload failed")
        self.datasets[dataset_id].append(record)

    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        for number, record in enumerate(self.datasets[dataset_id][: self.answers]):
            yield ArgillaEvaluation(
                example_id=record.example_id,
                record_id=str(number),
                responses={"score": 3},
                metadata={},
            )

    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        raise NotImplementedError


class Ask(ArgillaEvaluationLogic[str, str, str, Correct]):
    def __init__(self) -> None:
        super().__init__(
            fields={name: TextField(name=name, title=name) for name in ("input", "output")},
            questions=[
                RatingQuestion(name="score", title="Good?", description="", values=[1, 2, 3])
            ],
        )

    def to_record(
        self, example: Example[str, str], *output: SuccessfulExampleOutput[str]
    ) -> RecordDataSequence:
        content = {"input": example.input, "output": output[0].output}
        return RecordDataSequence(records=[RecordData(content=content, example_id=example.id)])

    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> Correct:
        return Correct(correct=argilla_evaluation.responses["score"] == 3)


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    world = World(None)
    world.evaluations = (
        AsyncFileEvaluationRepository(tmp_path)
        if request.param == "files"
        else AsyncInMemoryEvaluationRepository()
    )
    return world


def evaluator(
    world: World, client: ArgillaClient, logic: Any = None
) -> ArgillaEvaluator[Any, Any, Any, Any]:
    assert isinstance(
        world.evaluations, (AsyncFileEvaluationRepository, AsyncInMemoryEvaluationRepository)
    )
    return ArgillaEvaluator(
        world.datasets,
        world.runs,
        world.evaluations,
        "people",
        logic or Ask(),
        client,
        workspace_id="workspace",
    )


def test_what_is_submitted_and_answered_is_retrieved(world: World) -> None:
    run = world.ran(world.dataset("a", "b"))
    client = MemoryClient()
    people = evaluator(world, client)
    partial = people.submit(run.id, dataset_name="a name", labels={"l"}, metadata={"k": 1})
    assert partial.submitted_evaluation_count == 2
    assert client.names == {partial.id: "a name"}
    whole = people.retrieve(partial.id)
    assert (whole.id, whole.successful_evaluation_count, whole.failed_evaluation_count) == (
        partial.id,
        2,
        0,
    )
    assert (whole.labels, whole.metadata, whole.description) == ({"l"}, {"k": 1}, "people")
    found = world.evaluations.example_evaluations(whole.id, Correct)
    assert [each.result for each in found] == [Correct(correct=True)] * 2
    assert world.evaluations.evaluation_overview(whole.id) == whole
    assert [lineage.example.id for lineage in people.evaluation_lineages(whole.id)] == ["e0", "e1"]


def test_retrieving_again_counts_nobody_twice(world: World) -> None:
    run = world.ran(world.dataset("a", "b", "c"))
    client = MemoryClient(answers=1)
    people = evaluator(world, client)
    partial = people.submit(run.id)
    early = people.retrieve(partial.id)
    assert (early.successful_evaluation_count, early.failed_evaluation_count) == (1, 2)
    client.answers = 3
    late = people.retrieve(partial.id)
    assert (late.successful_evaluation_count, late.failed_evaluation_count) == (3, 0)
    assert len(world.evaluations.example_evaluations(partial.id, Correct)) == 3


def test_failed_uploads_and_missing_answers_are_failures(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = world.ran(world.dataset("a", "b", "c"))
    people = evaluator(world, MemoryClient(answers=1, fails_at=1))
    partial = people.submit(run.id)
    assert partial.submitted_evaluation_count == 2
    (failed,) = world.evaluations.failed_example_evaluations(partial.id, Correct)
    assert failed.example_id == "e0"
    assert isinstance(failed.result, FailedExampleEvaluation)
    assert "the upload failed" in failed.result.error_message
    assert "the upload failed" in capsys.readouterr().out
    whole = people.retrieve(partial.id)
    assert (whole.successful_evaluation_count, whole.failed_evaluation_count) == (1, 2)


def test_an_abort_raises_what_the_upload_raised(world: World) -> None:
    run = world.ran(world.dataset("a"))
    with pytest.raises(ConnectionError):
        evaluator(world, MemoryClient(fails_at=1)).submit(run.id, abort_on_error=True)


def test_datasets_have_names_of_their_own_and_the_number_of_examples_is_respected(
    world: World,
) -> None:
    run = world.ran(world.dataset("a", "b", "c"))
    client = MemoryClient()
    people = evaluator(world, client)
    assert people.submit(run.id, num_examples=2).submitted_evaluation_count == 2
    people.submit(run.id)
    assert len(set(client.names.values())) == 2


def test_unknown_and_wrong_ids_are_refused_before_anything_is_created(world: World) -> None:
    client = MemoryClient()
    people = evaluator(world, client)
    with pytest.raises(ValueError, match="nothing was submitted as 'x'"):
        people.retrieve("x")
    with pytest.raises(ValueError, match="No RunOverview"):
        people.submit("x")
    assert client.datasets == {}


# ---- comparisons of instructions


@dataclass
class Instruct:
    instruction: str
    input: str | None = None


@dataclass
class Completion:
    completion: str


def compared(
    runs: int, priority: frozenset[str] | None = None, seed: int = 0
) -> Sequence[RecordData]:
    logic = InstructComparisonArgillaEvaluationLogic(priority, seed=seed)
    outputs = [
        SuccessfulExampleOutput(
            run_id=f"run-{number}", example_id="e", output=Completion(f"text {number}")
        )
        for number in range(runs)
    ]
    return logic.to_record(
        Example(input=Instruct("do"), expected_output=None, id="e"), *outputs
    ).records


def test_all_pairs_are_asked_once_and_seats_are_dealt_by_the_seed() -> None:
    records = compared(10)
    assert len(records) == 45
    players = [(record.metadata["first"], record.metadata["second"]) for record in records]
    names = [f"run-{number}" for number in range(10)]
    assert {frozenset(each) for each in players} == {
        frozenset(each) for each in combinations(names, 2)
    }
    swapped = sum(first > second for first, second in players)
    assert 10 < swapped < 35
    assert compared(10) == records
    assert compared(10, seed=1) != records
    for record, (first, second) in zip(records, players, strict=True):
        assert record.content["first"] == f"text {str(first)[-1]}"
        assert record.content["second"] == f"text {str(second)[-1]}"
        assert (record.content["instruction"], record.content["input"]) == ("do", "")


def test_only_pairs_with_a_priority_run_are_asked() -> None:
    records = compared(10, frozenset({"run-0", "run-1"}))
    assert len(records) == 17
    assert all({"run-0", "run-1"} & set(record.metadata.values()) for record in records)


def test_comparisons_by_people_over_files_become_a_ranking(tmp_path: Path) -> None:
    world = World(tmp_path / "root")
    world.evaluations = AsyncFileEvaluationRepository(tmp_path / "root")
    examples = [
        Example(input=Instruct(f"question {n}", "in"), expected_output=None, id=f"e{n}")
        for n in range(4)
    ]
    dataset = world.datasets.create_dataset(examples, "instructions").id
    for minutes, name in enumerate(("poor", "fair", "good")):
        outputs: dict[str, Any] = {f"e{n}": Completion(name) for n in range(4)}
        world.run(name, dataset, outputs, minutes=minutes)
    client = FileArgillaClient(tmp_path / "labels")
    people = evaluator(world, client, InstructComparisonArgillaEvaluationLogic())
    partial = people.submit("poor", "fair", "good")
    assert partial.submitted_evaluation_count == 12
    file = tmp_path / "labels" / partial.id / "records.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    order = ["poor", "fair", "good"]
    for row in rows[:-1]:
        better = order.index(row["content"]["first"]) > order.index(row["content"]["second"])
        row["responses"] = {"winner": 1 if better else 2}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = people.retrieve(partial.id)
    assert (whole.successful_evaluation_count, whole.failed_evaluation_count) == (11, 1)
    people.retrieve(partial.id)
    found = world.evaluations.example_evaluations(whole.id, ComparisonEvaluation)
    assert len(found) == 11
    aggregation = world.aggregator(ComparisonEvaluationAggregationLogic()).aggregate_evaluation(
        whole.id
    )
    scores = aggregation.statistics.scores
    assert sorted(scores, key=lambda name: -scores[name].elo) == ["good", "fair", "poor"]
    assert sum(score.num_matches for score in scores.values()) == 22


def test_answers_become_outcomes() -> None:
    logic = InstructComparisonArgillaEvaluationLogic()
    metadata = {"first": "a", "second": "b"}
    for answer, outcome in [(1, "a_wins"), ("2", "b_wins"), (3.0, "draw")]:
        answered = ArgillaEvaluation(
            example_id="e", record_id="r", responses={"winner": answer}, metadata=metadata
        )
        expected = ComparisonEvaluation(
            first_player="a", second_player="b", outcome=MatchOutcome(outcome)
        )
        assert logic.from_record(answered) == expected


# ---- clients


def test_files_have_questions_names_and_parts(tmp_path: Path) -> None:
    client = FileArgillaClient(tmp_path)
    fields, questions = list(Ask().fields.values()), Ask().questions
    dataset = client.create_dataset("w", "d", fields, questions)
    assert client.ensure_dataset_exists("w", "d", fields, questions) == dataset
    assert client.ensure_dataset_exists("w", "other", fields, questions) != dataset
    with pytest.raises(ValueError, match="'d' already"):
        client.create_dataset("w", "d", fields, questions)
    about = json.loads((tmp_path / dataset / "questions.json").read_text())
    assert about["questions"][0] == {
        "name": "score",
        "title": "Good?",
        "description": "",
        "values": [1, 2, 3],
    }
    records = [RecordData(content={"input": str(n)}, example_id=f"e{n}") for n in range(5)]
    client.add_records(dataset, records)
    assert list(client.evaluations(dataset)) == []
    client.split_dataset(dataset, 2)
    lines = [
        json.loads(line) for line in (tmp_path / dataset / "records.jsonl").read_text().splitlines()
    ]
    assert Counter(line["metadata"]["split"] for line in lines) == {1: 3, 2: 2}
    client.split_dataset(dataset, 1)
    assert "split" not in (tmp_path / dataset / "records.jsonl").read_text()
    with pytest.raises(ValueError, match="no dataset 'nothing'"):
        client.add_record("nothing", records[0])
    (tmp_path / dataset / "records.jsonl").write_text('{"id": 1\n{}\n')
    with pytest.raises(UserError, match="line 1 is not JSON"):
        list(client.evaluations(dataset))


def test_the_extra_brings_what_argilla_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """argilla does not say that it needs requests; one that is installed without it is not called missing."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {re.split("[>=]", need)[0] for need in extras["argilla"]} == {"argilla", "requests"}
    pinned = {
        line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert {"argilla", "requests"} <= pinned
    (tmp_path / "argilla.py").write_text("import a_package_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "argilla", raising=False)
    with pytest.raises(UserError, match="it is installed, but lacks a_package_that_is_missing"):
        ArgillaWrapperClient()


def test_without_its_package_the_argilla_client_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "argilla", None)
    with pytest.raises(UserError, match="argilla") as raised:
        ArgillaWrapperClient()
    assert "FileArgillaClient" in raised.value.fix


class FakeRecords(list[Any]):
    """The records of a dataset on the server, as Argilla's client shows them."""

    def log(self, records: Sequence[Any]) -> None:
        self.extend(record for record in records if record not in self)

    def __call__(self, query: Any) -> list[Any]:
        assert query.filter.conditions == [("response.status", "==", "submitted")]
        return [record for record in self if record.responses]


def fake_argilla(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """As much of Argilla's client (version 2) as we use, with a server in memory."""
    server: dict[str, Any] = {}
    workspaces: set[str] = set()

    class Part(SimpleNamespace):
        def delete(self) -> None:
            self.deleted = True

    class Dataset(SimpleNamespace):
        def create(self) -> None:
            assert self.workspace in workspaces
            self.id, self.records = uuid4(), FakeRecords()
            server[str(self.id)] = self

        def update(self) -> None:
            self.updated = True

    class Workspace(SimpleNamespace):
        def create(self) -> None:
            workspaces.add(self.name)

    def find(id: str = "", name: str = "", workspace: str = "") -> Any:
        named = (
            each for each in server.values() if (each.name, each.workspace) == (name, workspace)
        )
        return server.get(id) if id else next(named, None)

    def record(fields: Any, metadata: Any) -> Any:
        return SimpleNamespace(id=uuid4(), fields=fields, metadata=metadata, responses=[])

    client = SimpleNamespace(
        datasets=find, workspaces=lambda name: name if name in workspaces else None
    )
    module = ModuleType("argilla")
    parts = {
        "TextField": Part,
        "RatingQuestion": Part,
        "IntegerMetadataProperty": Part,
        "Dataset": Dataset,
    }
    made = {
        **parts,
        "Workspace": Workspace,
        "Argilla": lambda api_url, api_key: client,
        "Settings": lambda **given: SimpleNamespace(**given, metadata=[], get=lambda: None),
        "Record": record,
        "Filter": lambda conditions: SimpleNamespace(conditions=conditions),
        "Query": SimpleNamespace,
    }
    for name, value in made.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "argilla", module)
    return module


def test_an_argilla_server_is_asked_and_answers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_argilla(monkeypatch)
    client = ArgillaWrapperClient("http://127.0.0.1:6900", "key", disable_warnings=False)
    people = evaluator(world, client)
    run = world.ran(world.dataset("a", "b", "c"))
    partial = people.submit(run.id, dataset_name="d")
    dataset = client.client.datasets(id=partial.id)
    assert [field.name for field in dataset.settings.fields] == ["input", "output"]
    assert dataset.settings.questions[0].values == [1, 2, 3]
    assert [record.fields["output"] for record in dataset.records] == ["A", "B", "C"]
    for record, score in zip(dataset.records, (3, 1), strict=False):
        record.responses = [SimpleNamespace(question_name="score", value=score), None]
    whole = people.retrieve(partial.id)
    assert (whole.successful_evaluation_count, whole.failed_evaluation_count) == (2, 1)
    found = world.evaluations.example_evaluations(whole.id, Correct)
    assert [(each.example_id, each.result) for each in found] == [
        ("e0", Correct(correct=True)),
        ("e1", Correct(correct=False)),
    ]
    assert [record.example_id for record in client.records(partial.id)] == ["e0", "e1", "e2"]
    assert client.ensure_dataset_exists("workspace", "d", [], []) == partial.id
    assert client.ensure_dataset_exists("workspace", "other", [], []) != partial.id
    with pytest.raises(ValueError, match="no dataset 'nothing'"):
        list(client.evaluations("nothing"))


def test_the_records_on_a_server_are_dealt_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_argilla(monkeypatch)
    client = ArgillaWrapperClient("http://127.0.0.1:6900", "key", disable_warnings=False)
    dataset_id = client.create_dataset("w", "d", [], [])
    client.add_records(
        dataset_id, [RecordData(content={}, example_id=str(number)) for number in range(5)]
    )
    client.split_dataset(dataset_id, 2)
    dataset = client.client.datasets(id=dataset_id)
    assert [record.metadata["split"] for record in dataset.records] == [1, 2, 1, 2, 1]
    (part,) = dataset.settings.metadata
    assert (part.name, part.max) == ("split", 2)
    client.split_dataset(dataset_id, 1)
    assert part.deleted
    assert all("split" not in record.metadata for record in dataset.records)
