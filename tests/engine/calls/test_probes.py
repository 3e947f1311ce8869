"""Five probes: what later parts will ask of the engine, through its public interfaces only."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

import assay
from assay import registry
from assay.interfaces import Completion, Context, Group, Score, Values
from tests.support import wait_for

QUESTIONS = [
    {"id": f"q{i}", "data": {"question": f"{i} + {i}"}, "ground_truth": str(2 * i)}
    for i in range(4)
]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(autouse=True)
def own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics that a probe registers are gone after it: other tests list what is there."""
    monkeypatch.setattr(registry.metric, "_found", dict(registry.metric._found))


# ---- a typed do_run in threads, with a trace


@dataclass
class Question:
    question: str


class Solution(msgspec.Struct):
    total: int
    thread: str


class Adder:
    """The second seed's shape: typed input and output, a span to log to."""

    def do_run(self, input: Question, span: dict[str, Any]) -> Solution:
        span["numbers"] = [int(part) for part in input.question.split("+")]
        return Solution(sum(span["numbers"]), threading.current_thread().name)


def test_a_typed_do_run_in_threads_with_a_trace(tmp_path: Path) -> None:
    def run(data: Any, context: Context) -> Solution:
        with context.span("Adder", input=data) as outer, context.span("do_run") as span:
            outer["output"] = Adder().do_run(msgspec.convert(data, Question), span)
            return outer["output"]

    store = assay.FolderStore(tmp_path)
    assay.DatasetRepository(store).create(QUESTIONS, name="sums", id="sums")
    assay.Runner(store).run("sums", [assay.function_task(run, name="adder")], id="adder")
    found = {row.item_id: row for row in assay.RunRepository(store).responses("adder")}
    assert [found[f"q{i}"].output["total"] for i in range(4)] == [0, 2, 4, 6]
    assert {row.output["thread"] for row in found.values()} == {"assay-user-code"}
    traces = {
        trace["item_id"]: trace for trace in rows(tmp_path / "runs" / "adder" / "traces.jsonl")
    }
    assert traces["q3"]["key"] == found["q3"].key
    outer, inner = traces["q3"]["spans"]
    assert (outer["name"], outer["parent"], outer["data"]["input"]) == (
        "Adder",
        None,
        {"question": "3 + 3"},
    )
    assert (inner["name"], inner["parent"], inner["data"]) == ("do_run", 0, {"numbers": [3, 3]})
    assert outer["data"]["output"]["total"] == 6
    assert outer["start"] <= inner["start"] <= inner["end"] <= outer["end"]


# ---- a graph of two calls with a loop, killed between its calls

GRAPH = """
    import sys, time
    from pathlib import Path
    import assay

    folder, killed = Path(sys.argv[1]), sys.argv[2] == "to be killed"

    def model(prompt):
        with open(folder / "paid.txt", "a") as file:
            file.write(prompt + "\\n")
        if killed and prompt.startswith("review"):
            (folder / "between").touch()
            time.sleep(60)
        return "good" if prompt == "review draft 2" else prompt.replace("write", "draft")

    async def graph(data, context):
        for number in range(1, 9):
            draft = await context.complete([{"role": "user", "content": f"write {number}"}], step="write")
            verdict = await context.complete([{"role": "user", "content": f"review {draft.text}"}], step="review")
            if verdict.text == "good":
                return draft.text

    store = assay.FlatStore(folder / "out")
    if "out" not in store.ids("dataset"):
        assay.DatasetRepository(store).create([{"id": "essay", "data": "write"}], name="essays", id="out")
    models = {"m": assay.model.get("python")("m", function=model)}
    assay.Runner(store, models=models).run("out", [assay.function_task(graph)], id="out")
    """


def test_a_graph_that_is_killed_between_its_calls_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "graph.py"
    script.write_text(dedent(GRAPH))
    child = subprocess.Popen([sys.executable, script, tmp_path, "to be killed"])
    wait_for((tmp_path / "between").exists, 30)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    paid = (tmp_path / "paid.txt").read_text().splitlines()
    assert paid == ["write 1", "review draft 1"]
    assert rows(tmp_path / "out" / "responses.jsonl") == []
    subprocess.run([sys.executable, script, tmp_path, "to its end"], check=True, timeout=60)
    paid = (tmp_path / "paid.txt").read_text().splitlines()
    assert paid == ["write 1", "review draft 1", "review draft 1", "write 2", "review draft 2"]
    assert [row["response"] for row in rows(tmp_path / "out" / "responses.jsonl")] == ["draft 2"]
    assert [row["step"] for row in rows(tmp_path / "out" / "calls.jsonl")] == [
        "write",
        "review",
        "write",
        "review",
    ]


# ---- an agent


class Agent:
    """Another seed's shape: an object with a name that answers questions and remembers how many."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    def answer(self, question: str) -> dict[str, Any]:
        self.asked.append(question)
        return {
            "answer": str(sum(int(part) for part in question.split("+"))),
            "sources": ["a", "b"],
        }


def test_an_agent_that_answers() -> None:
    store, agent = assay.MemoryStore(), Agent("adder-agent")
    texts = [
        {"id": row["id"], "data": row["data"]["question"], "ground_truth": row["ground_truth"]}
        for row in QUESTIONS
    ]
    assay.DatasetRepository(store).create(texts, name="sums", id="sums")
    task = assay.function_task(agent.answer, name=agent.name, facets={"retriever": "none"})
    assert assay.Runner(store).run("sums", [task], id="r").counts == {"ok": 4}
    assert sorted(agent.asked) == ["0 + 0", "1 + 1", "2 + 2", "3 + 3"]
    assay.Runner(store).run("sums", [task], id="r")
    assert len(agent.asked) == 4

    def right(item: Any, response: Any) -> bool:
        return response.output["answer"] == item.ground_truth

    assay.Evaluator(store).evaluate(["r"], [assay.bind_scorer(right)], id="e")
    metric = assay.bind_metric(type="mean", facets=["model_name", "metadata.retriever"])
    (row,) = assay.Aggregator(store).aggregate(["e"], [metric], id="a")
    assert (row["value"], row["model_name"], row["metadata.retriever"]) == (
        1.0,
        "adder-agent",
        "none",
    )


# ---- a judge of pairs, both seats, over several runs


def test_a_pairwise_judge_over_two_runs_and_then_a_third(tmp_path: Path) -> None:
    store = assay.FolderStore(tmp_path)
    assay.DatasetRepository(store).create(QUESTIONS[:2], name="sums", id="sums")
    asked: list[str] = []

    def player(name: str, text: str) -> None:
        def play(data: Any) -> str:
            return text

        assay.Runner(store).run("sums", [assay.function_task(play, name=name)], id=f"run of {name}")

    def model(prompt: str) -> str:
        asked.append(prompt)
        first, second = prompt.split(" or ")
        return (
            "first" if len(first) > len(second) else "second" if len(first) < len(second) else "tie"
        )

    async def longer(item: Any, first: Any, second: Any, *, context: Context) -> Score:
        question = [{"role": "user", "content": f"{first.response} or {second.response}"}]
        verdict: Completion = await context.complete(question)
        return Score(
            score={"first": 1.0, "tie": 0.5, "second": 0.0}[verdict.text],
            details={"verdict": verdict.text},
        )

    def judged(*names: str) -> list[Any]:
        evaluator = assay.Evaluator(
            store, models={"judge": assay.model.get("python")("judge", function=model)}
        )
        evaluator.evaluate(
            [f"run of {name}" for name in names], [assay.bind_scorer(longer)], id="arena"
        )
        return list(assay.EvaluationRepository(store).evaluations("arena"))

    player("short", "xx")
    player("long", "yyyy")
    matches = judged("short", "long")
    assert [
        (row.item_id, row.players, row.seat, row.score)
        for row in sorted(matches, key=lambda r: (r.item_id, r.seat))
    ] == [(item, ("long", "short"), seat, 1.0) for item in ("q0", "q1") for seat in (0, 1)]
    assert {row.seat: row.detailed_results["verdict"] for row in matches} == {
        0: "first",
        1: "second",
    }
    assert all(len(row.responses) == 2 for row in matches)
    assert sorted(asked) == ["xx or yyyy"] * 2 + ["yyyy or xx"] * 2
    assert len(rows(tmp_path / "evaluations" / "arena" / "calls.jsonl")) == 4
    asked.clear()
    player("middle", "zzz")
    matches = judged("short", "long", "middle")
    assert len(matches) == 12
    assert sorted(set(asked)) == ["xx or zzz", "yyyy or zzz", "zzz or xx", "zzz or yyyy"]
    assert len(asked) == 8
    payoffs = {(row.players, row.score) for row in matches}
    assert payoffs == {
        (("long", "short"), 1.0),
        (("long", "middle"), 1.0),
        (("middle", "short"), 1.0),
    }


# ---- a metric over a list of dicts, and an aggregation over typed evaluations


class Graded(msgspec.Struct):
    """The second seed's shape: an evaluation of its own type."""

    grade: int
    comment: str


def test_a_metric_over_dicts_and_an_aggregation_over_typed_evaluations() -> None:
    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(QUESTIONS, name="sums", id="sums")
    assay.Runner(store).run(
        "sums", [assay.function_task(lambda data: data["question"], name="echo")], id="r"
    )

    def grade(item: Any, response: Any) -> Score:
        graded = Graded(grade=int(item.ground_truth), comment=response.response)
        return Score(value=graded, score=graded.grade / 10)

    def right(response: str, ground_truth: str, inference_result: Any = None) -> dict[str, Any]:
        return {
            "label": "even",
            "result": {"passed": int(ground_truth) % 4 == 0, "custom_fields": {"n": ground_truth}},
        }

    def passes(
        evaluation_results: list[dict[str, Any]], facets: list[str], **params: Any
    ) -> dict[str, Any]:
        assert isinstance(evaluation_results, list)
        passed = [row["detailed_results"]["n"] for row in evaluation_results if row["passed"]]
        return {"value": len(passed) * params["weight"], "which": sorted(passed), "by": facets}

    @assay.metric(name="probe_grades", columns=["value"])
    def grades(group: Group) -> Values:
        graded = [msgspec.convert(value, Graded) for value in group.columns["value"]]
        return Values(
            value=sum(one.grade for one in graded) / len(graded),
            fields={"last": graded[-1].comment},
        )

    assay.Evaluator(store).evaluate(
        ["r"], [assay.bind_scorer(grade), assay.bind_scorer(right)], id="e"
    )
    found = assay.Aggregator(store).aggregate(
        ["e"],
        [
            assay.bind_metric(
                name="passes",
                function=passes,
                params={"weight": 10},
                include=["even"],
                facets=["model_name"],
            ),
            assay.bind_metric(name="grades", function=grades, include=["grade"]),
        ],
        id="a",
    )
    by_name = {row["metric_name"]: row for row in found}
    assert (by_name["passes"]["value"], by_name["passes"]["which"], by_name["passes"]["by"]) == (
        20,
        ["0", "4"],
        ["model_name"],
    )
    assert (by_name["grades"]["value"], by_name["grades"]["last"]) == (3.0, "3 + 3")


def test_a_typed_evaluation_needs_no_score() -> None:
    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(QUESTIONS, name="sums", id="sums")
    assay.Runner(store).run("sums", [assay.function_task(lambda data: "x", name="echo")], id="r")

    def typed(item: Any, response: Any) -> Score:
        return Score(value=Graded(grade=3, comment=""))

    @assay.metric(name="probe_mean_grade", columns=["value"])
    def mean_grade(group: Group) -> Values:
        found = [value["grade"] for value in group.columns["value"]]
        return Values(value=sum(found) / len(found))

    assay.Evaluator(store).evaluate(["r"], [assay.bind_scorer(typed)], id="e")
    (row,) = assay.Aggregator(store).aggregate(
        ["e"], [assay.bind_metric(name="m", function=mean_grade)], id="a"
    )
    assert (row["value"], row["errored_count"]) == (3.0, 0)
