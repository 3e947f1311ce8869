"""RAGiCamp's evaluator: what it returns, what it writes, what it asks again."""

import asyncio
import json
import math
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.ragicamp.evaluation import Evaluator, compare_agents
from assay.models.demo import demo
from tests.formats.ragicamp.evaluating import (
    CAPITAL,
    MOON,
    OTHER,
    WORKED,
    Agent,
    AsyncAgent,
    Questions,
    written,
)

METRICS = ["exact_match", "f1"]


def evaluator(agent: Any, folder: Path, **settings: Any) -> Evaluator:
    given: dict[str, Any] = {"dataset": Questions(), "metrics": METRICS, **settings}
    return Evaluator(agent=agent, output_path=f"{folder}/any_results.json", **given)


# ---- the numbers and the files of the specification


@pytest.mark.parametrize("kind", [Agent, AsyncAgent])
def test_the_worked_numbers_come_out(kind: type[Agent], tmp_path: Path) -> None:
    result = evaluator(kind(), tmp_path).evaluate()
    assert result == {
        "exact_match": pytest.approx(1 / 3),
        "f1": pytest.approx(0.6),
        "num_examples": 3,
        "num_errors": 0,
        "agent_name": "gemma_2b_baseline",
        "dataset_name": "natural_questions",
    }
    summary = written(tmp_path, "gemma_2b_baseline_summary.json")
    assert summary["overall_metrics"] == {name: result[name] for name in METRICS}
    statistics = summary["metric_statistics"]
    assert statistics["exact_match"]["std"] == pytest.approx(0.4714045208)
    assert statistics["f1"]["std"] == pytest.approx(0.4320493799)
    assert (statistics["f1"]["min"], statistics["f1"]["max"], statistics["f1"]["median"]) == (
        0,
        1,
        0.8,
    )
    rows = written(tmp_path, "gemma_2b_baseline_predictions.json")["predictions"]
    assert [row["prediction"] for row in rows] == list(WORKED.values())
    assert [row["metrics"]["f1"] for row in rows] == [pytest.approx(0.8), 0, 1]
    questions = written(tmp_path, "natural_questions_questions.json")
    assert [row["id"] for row in questions["questions"]] == [row["question_id"] for row in rows]
    assert questions["questions"][0]["expected_answer"] == "14 December 1972 UTC"
    names = {
        "natural_questions_questions.json",
        "gemma_2b_baseline_predictions.json",
        "gemma_2b_baseline_summary.json",
    }
    assert {path.name for path in tmp_path.iterdir() if path.name[0] != "."} == names


def test_the_first_version_counted_words_as_they_are(tmp_path: Path) -> None:
    metrics = ["exact_match", {"name": "f1", "params": {"normalize": False}}]
    result = evaluator(Agent(), tmp_path, metrics=metrics).evaluate()
    evaluator(Agent(), tmp_path, metrics=metrics).evaluate()
    rows = written(tmp_path, "gemma_2b_baseline_predictions.json")["predictions"]
    assert rows[2]["metrics"] == {"exact_match": 1, "f1": 0}
    assert result["f1"] == pytest.approx(0.8 / 3)


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Evaluator(Agent(), Questions(), METRICS).evaluate()["f1"] == pytest.approx(0.6)
    assert evaluator(Agent(), tmp_path).evaluate(save_predictions=False)["f1"] == pytest.approx(0.6)
    assert list(tmp_path.iterdir()) == []


def test_several_agents_side_by_side_share_the_questions(tmp_path: Path) -> None:
    """What the seed's page does: a coroutine for each agent, gathered. They really wait at the same time."""
    together = asyncio.Event()

    class Waiting(Agent):
        arrived = 0

        async def answer(self, question: str) -> Any:
            Waiting.arrived += 1
            if Waiting.arrived == 3:
                together.set()
            await asyncio.wait_for(together.wait(), 10)
            return super().answer(question)

    agents = [Waiting(f"agent{number}") for number in (1, 2, 3)]

    async def evaluate_agent(agent: Any, dataset: Any) -> dict[str, Any]:
        one = Evaluator(
            agent=agent, dataset=dataset, metrics=METRICS, output_path=f"{tmp_path}/{agent.name}_results.json",
            max_concurrency=1,
        )  # fmt: skip
        return await one.evaluate_async()

    async def all_of_them() -> list[dict[str, Any]]:
        return await asyncio.gather(*[evaluate_agent(agent, Questions()) for agent in agents])

    results = asyncio.run(all_of_them())
    assert [result["agent_name"] for result in results] == ["agent1", "agent2", "agent3"]
    assert (
        len(list(tmp_path.glob("agent*_predictions.json")))
        == len(list(tmp_path.glob("agent*_summary.json")))
        == 3
    )
    assert written(tmp_path, "natural_questions_questions.json")["num_questions"] == 3


def test_results_are_loaded_as_the_seed_loads_them(tmp_path: Path) -> None:
    import pandas

    compare_agents(
        [Agent(), Agent("rag_model", {**WORKED, OTHER: "nobody"})],
        Questions(),
        METRICS,
        tmp_path / "x.json",
    )
    summaries = [
        written(tmp_path, f"{name}_summary.json") for name in ("gemma_2b_baseline", "rag_model")
    ]
    frame = pandas.DataFrame(
        {
            "Agent": one["agent_name"],
            "F1": one["overall_metrics"]["f1"],
            "B": one["overall_metrics"].get("bertscore", 0),
        }
        for one in summaries
    )
    assert frame["F1"].tolist() == pytest.approx([0.6, 2.8 / 3])
    poor = [
        row["question"]
        for row in written(tmp_path, "gemma_2b_baseline_predictions.json")["predictions"]
        if row["metrics"]["f1"] < 0.3
    ]
    assert poor == [OTHER]


# ---- agents


@dataclass
class Reply:
    answer: str
    metadata: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("Paris", "Paris"),
        (Reply("Paris"), "Paris"),
        (SimpleNamespace(text="Paris"), "Paris"),
        ({"answer": "Paris"}, "Paris"),
        ({"text": "Paris", "metadata": None}, "Paris"),
        (1972, "1972"),
        ("", ""),
    ],
)
def test_an_answer_may_have_any_of_these_shapes(given: Any, text: str, tmp_path: Path) -> None:
    evaluator(Agent(answers={**WORKED, CAPITAL: given}), tmp_path).evaluate()
    row = written(tmp_path, "gemma_2b_baseline_predictions.json")["predictions"][2]
    assert row["prediction"] == text
    assert "error" not in row


@pytest.mark.parametrize(
    "given", [None, ["Paris"], object(), {"metadata": {}}, Reply("x", {"a": "\ud800"}), "\ud800"]
)
def test_what_is_no_answer_is_an_error_of_its_row(given: Any, tmp_path: Path) -> None:
    result = evaluator(Agent(answers={**WORKED, MOON: given}), tmp_path).evaluate()
    found = written(tmp_path, "gemma_2b_baseline_predictions.json")
    (failed,) = found["failed"]
    assert (failed["question_id"], failed["outcome"]) == ("0", "errored")
    assert failed["error"]
    assert failed["metrics"] == {"exact_match": None, "f1": None}
    assert (result["num_examples"], result["num_errors"], result["f1"]) == (3, 1, 0.5)
    last = found["predictions"][1]
    assert last["question_id"] == "2"
    assert last["metrics"] == {"exact_match": 1, "f1": 1}, "later rows keep their own scores"


def test_metadata_goes_to_the_predictions_and_to_metrics_that_need_it(tmp_path: Path) -> None:
    documents = [{"content": "Paris is the capital of France."}]
    reply = Reply("Paris", {"retrieved_docs": documents, "model_id": "theirs", "when": math.nan})
    agent = Agent(answers=dict.fromkeys(WORKED, reply))
    result = evaluator(agent, tmp_path, metrics=["answer_in_context"]).evaluate()
    row = written(tmp_path, "gemma_2b_baseline_predictions.json")["predictions"][2]
    assert row["metadata"]["retrieved_docs"] == documents
    assert row["metadata"]["agent_model_id"] == "theirs"
    assert "model_id" not in row["metadata"], "which is the engine's"
    assert result["answer_in_context"] == pytest.approx(1 / 3)


def test_an_agent_that_raises_leaves_an_error_and_the_rest(tmp_path: Path) -> None:
    agent = Agent(answers={**WORKED, MOON: RuntimeError("out of memory"), OTHER: SystemExit(3)})
    result = evaluator(agent, tmp_path).evaluate()
    assert (result["num_errors"], result["f1"]) == (2, 1)
    summary = written(tmp_path, "gemma_2b_baseline_summary.json")
    assert (summary["num_failed"], summary["metric_statistics"]["f1"]["errors"]) == (2, 2)
    assert "out of memory" in (tmp_path / "gemma_2b_baseline_predictions.json").read_text()


class Numbers:
    name = "numbers"

    def __init__(self, count: int = 10) -> None:
        self.count = count

    def __iter__(self) -> Any:
        return iter({"id": n, "question": f"{n}", "answers": [f"{n}"]} for n in range(self.count))


@pytest.mark.parametrize(("settings", "most"), [({}, 1), ({"max_concurrency": 3}, 3)])
def test_an_agent_that_is_not_async_is_asked_once_at_a_time_unless_it_may_be_more(
    settings: dict[str, Any], most: int, tmp_path: Path
) -> None:
    barrier = threading.Barrier(most, timeout=10)
    inside: list[int] = []
    lock = threading.Lock()
    busy = 0

    def answer(question: str) -> str:
        nonlocal busy
        with lock:
            busy += 1
            inside.append(busy)
        barrier.wait()
        with lock:
            busy -= 1
        return question

    agent = SimpleNamespace(name="plain", answer=answer)
    evaluator(agent, tmp_path, dataset=Numbers(9), **settings).evaluate()
    assert max(inside) == most


# ---- going on


def test_nothing_is_asked_twice_and_more_examples_go_on(tmp_path: Path) -> None:
    agent = Agent()
    assert evaluator(agent, tmp_path).evaluate(num_examples=1)["num_examples"] == 1
    assert evaluator(agent, tmp_path).evaluate()["num_examples"] == 3
    assert sorted(agent.asked) == sorted(WORKED)
    fewer = evaluator(agent, tmp_path).evaluate(num_examples=2)
    assert (fewer["num_examples"], fewer["f1"]) == (2, pytest.approx(0.4))
    assert written(tmp_path, "natural_questions_questions.json")["num_questions"] == 3, (
        "it never shrinks"
    )
    evaluator(agent, tmp_path).evaluate()
    assert len(agent.asked) == 3
    evaluator(agent, tmp_path, resume=False).evaluate()
    assert len(agent.asked) == 6


def test_an_agent_with_other_settings_is_asked_again(tmp_path: Path) -> None:
    class Plain:
        name = "plain"

        def __init__(self, table: dict[str, str]) -> None:
            self.table = table

        def answer(self, question: str) -> str:
            return self.table[question]

    first = evaluator(Plain(WORKED), tmp_path).evaluate()
    assert first == evaluator(Plain(dict(WORKED)), tmp_path).evaluate()
    assert evaluator(Plain({**WORKED, OTHER: "nobody"}), tmp_path).evaluate()[
        "f1"
    ] == pytest.approx(2.8 / 3)


def test_errors_are_asked_again_only_if_wanted(tmp_path: Path) -> None:
    class Flaky(Agent):
        @property
        def identity(self) -> Any:
            return "flaky"

    broken = Flaky(answers={**WORKED, OTHER: ValueError("once")})
    evaluator(broken, tmp_path).evaluate()
    mended = Flaky()
    assert evaluator(mended, tmp_path).evaluate()["num_errors"] == 1
    assert mended.asked == []
    assert evaluator(mended, tmp_path, retry_errors=True).evaluate()["num_errors"] == 0
    assert mended.asked == [OTHER]


def test_a_killed_evaluation_goes_on_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from assay.formats.ragicamp.evaluation import Evaluator\n"
        "class Agent:\n"
        "    name = 'mortal'\n"
        "    def answer(self, question):\n"
        "        if sys.argv[1] == 'dies' and question == '7':\n"
        "            os._exit(9)\n"
        "        with open('asked.txt', 'a') as file:\n"
        "            file.write(question + '\\n')\n"
        "        return question\n"
        "rows = [{'id': n, 'question': str(n), 'answers': [str(n)]} for n in range(10)]\n"
        "print(Evaluator(Agent(), rows, ['exact_match'], 'outputs/x.json').evaluate()['exact_match'])\n"
    )
    ran = [
        subprocess.run(
            [sys.executable, str(script), how],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for how in ("dies", "lives")
    ]
    assert [one.returncode for one in ran] == [9, 0], ran[1].stderr
    assert ran[1].stdout == "1.0\n"
    asked = (tmp_path / "asked.txt").read_text().split()
    assert sorted(asked) == [str(n) for n in range(10)], "each was asked once"
    assert written(tmp_path, "outputs/unknown_questions.json")["num_questions"] == 10


# ---- metrics


def test_a_judge_is_a_model_of_a_config(tmp_path: Path) -> None:
    metrics = [
        {
            "name": "llm_judge_qa",
            "params": {"judge_model": "demo:judge", "judgment_type": "ternary"},
        }
    ]
    result = evaluator(Agent(), tmp_path, metrics=metrics).evaluate()
    assert 0 <= result["llm_judge_qa"] <= 1
    again = evaluator(
        Agent(), tmp_path, metrics=["llm_judge_qa"], judge_model="demo:judge"
    ).evaluate()
    assert again["num_examples"] == 3


def test_a_judge_that_was_given_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge: Any = demo("judge")
    closed: list[str] = []
    monkeypatch.setattr(judge, "close", lambda: closed.append("too early"), raising=False)
    result = evaluator(Agent(), tmp_path, metrics=["llm_judge_qa"], judge_model=judge).evaluate()
    assert "llm_judge_qa" in result
    assert closed == []


# ---- datasets


def test_a_path_is_a_dataset_too(tmp_path: Path) -> None:
    evaluator(Agent(), tmp_path / "first").evaluate()
    questions = tmp_path / "first/natural_questions_questions.json"
    again = Evaluator(Agent(), questions, METRICS, tmp_path / "second/x.json").evaluate()
    assert (again["f1"], again["dataset_name"]) == (pytest.approx(0.6), "natural_questions")
    assert (tmp_path / "second" / questions.name).read_bytes() == questions.read_bytes()
    lines = tmp_path / "mine.jsonl"
    lines.write_text("".join(json.dumps({"question": q, "answer": "Paris"}) + "\n" for q in WORKED))
    assert Evaluator(Agent(), lines, METRICS).evaluate() == {
        "exact_match": pytest.approx(1 / 3),
        "f1": pytest.approx(1 / 3),
        "num_examples": 3,
        "num_errors": 0,
        "agent_name": "gemma_2b_baseline",
        "dataset_name": "mine",
    }


def test_one_agent_on_two_datasets_keeps_both_results(tmp_path: Path) -> None:
    for name in ("nq", "trivia/qa"):
        evaluator(Agent("a/b"), tmp_path, dataset=Questions(name)).evaluate()
    found = [written(tmp_path, path.name) for path in tmp_path.glob("*_summary.json")]
    assert sorted(one["dataset_name"] for one in found) == ["nq", "trivia/qa"]
    assert {one["agent_name"] for one in found} == {"a/b"}


def test_questions_without_answers_are_errors_of_the_metrics(tmp_path: Path) -> None:
    rows = [
        {"id": 0, "question": MOON, "answers": []},
        {"id": 1, "question": CAPITAL, "answers": "Paris"},
    ]
    result = evaluator(Agent(), tmp_path, dataset=rows, metrics=["exact_match"]).evaluate()
    assert (result["num_examples"], result["num_errors"]) == (2, 0)
    questions = written(tmp_path, "unknown_questions.json")["questions"]
    assert (questions[0]["expected_answer"], questions[0]["all_acceptable_answers"]) == (None, [])


# ---- mistakes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metrics": ["exact_mach"]}, "exact_match"),
        ({"metrics": [{"name": "f1", "param": {}}]}, "a metric has no 'param'"),
        ({"metrics": [{"params": {}}]}, "a metric has no name"),
        ({"metrics": [{"name": "f1", "params": {"stem": True}}]}, "stem"),
        (
            {"metrics": [SimpleNamespace(name="f1")]},
            "an object of the type SimpleNamespace is not a metric",
        ),
        ({"metrics": ["bleurt"]}, "BLEURT is not offered"),
        ({"metrics": ["f1", "f1"]}, "two scorers are called 'f1'"),
        ({"dataset": 3}, "an object of the type int is not a dataset"),
        ({"dataset": []}, "the dataset has no items"),
        ({"dataset": [{"id": 1, "text": "x"}]}, "an example without a question"),
        ({"dataset": [{"id": 1, "question": "x"}] * 2}, "two items have the id '1'"),
        ({"dataset": "missing.jsonl"}, "missing.jsonl"),
        ({"batch_size": 4}, "agents are not asked in batches"),
        ({"max_concurrency": 0}, "max_concurrency must be at least 1"),
        ({"agent": SimpleNamespace(name="mute")}, "answers no questions"),
    ],
)
def test_a_mistake_is_named_before_anything_is_asked(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    agent = Agent()
    with pytest.raises(UserError) as caught:
        evaluator(settings.pop("agent", agent), tmp_path, **settings).evaluate()
    assert said in str(caught.value)
    assert agent.asked == []


def test_agents_are_told_apart_by_their_names() -> None:
    with pytest.raises(UserError, match="two agents are called 'gemma_2b_baseline'"):
        compare_agents([Agent(), Agent()], Questions(), METRICS)
    with pytest.raises(UserError, match="num_examples must be at least 1"):
        Evaluator(Agent(), Questions(), METRICS).evaluate(num_examples=0)


def test_comparing_agents_gives_the_results_of_each() -> None:
    agents = [Agent(), AsyncAgent("rag_model", {**WORKED, OTHER: "nobody"})]
    expected = {agent.name: Evaluator(agent, Questions(), METRICS).evaluate(2) for agent in agents}
    assert (
        Evaluator(agents[0], Questions(), METRICS).compare_agents(agents, num_examples=2)
        == expected
    )
    assert compare_agents(agents, Questions(), METRICS, num_examples=2) == expected
    assert [one["f1"] for one in expected.values()] == pytest.approx([0.4, 0.9])
