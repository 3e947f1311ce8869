"""The edit table of the architecture: what runs, is scored and is paid after each kind of edit."""

import pytest

from tests.support import Lab

CELLS = 8  # 4 items × 2 samples
BOTH = 16  # × 2 scorers


@pytest.fixture
def done(lab: Lab) -> Lab:
    first = lab.run()
    assert first.rows == (CELLS, BOTH)
    assert first.paid == CELLS
    return lab


def test_nothing_changed(done: Lab) -> None:
    before = (done.folder / "out" / "metrics.jsonl").read_bytes()
    again = done.run()
    assert again.rows == (0, 0)
    assert again.paid == 0
    assert again.result.metrics[0]["value"] == 1.0
    assert (done.folder / "out" / "metrics.jsonl").read_bytes() == before


def test_metric_facet_and_policy(done: Lab) -> None:
    done.config["metrics"] = [
        {"name": "mean", "facets": ["metadata.sampling.temperature"], "on_error": "wrong"}
    ]
    again = done.run()
    assert again.rows == (0, 0)
    assert again.result.metrics[0]["metadata.sampling.temperature"] == 0.5


def test_parameter_of_one_scorer(done: Lab) -> None:
    done.config["evaluation_methods"][0] = {"exact_match": {"case_sensitive": False}}
    again = done.run()
    assert again.ran == 0
    assert again.scored == {"exact_match": CELLS, "contains": 0}
    assert len(done.read("evaluation_results.jsonl")) == BOTH
    assert len(done.read("superseded/evaluation_results.jsonl")) == CELLS


def test_rows_set_aside_come_back(done: Lab) -> None:
    done.config["evaluation_methods"][0] = {"exact_match": {"case_sensitive": False}}
    done.run()
    done.config["evaluation_methods"][0] = "exact_match"
    again = done.run()
    assert again.rows == (0, 0)
    assert len(done.read("evaluation_results.jsonl")) == BOTH
    done.config["prompt_templates"] = {"plain": "Hm. What is {{question}}?"}
    assert done.run().ran == CELLS
    done.config["prompt_templates"] = {"plain": "What is {{question}}?"}
    assert done.run().rows == (0, 0)


def test_ground_truth_of_one_item(done: Lab) -> None:
    done.rows[1]["ground_truth"] = {"answer": "something else"}
    again = done.run()
    assert again.ran == 0
    assert again.scored == {"exact_match": 2, "contains": 2}
    assert again.result.metrics[0]["value"] == 0.75


def test_field_that_is_not_rendered(done: Lab) -> None:
    done.write("mine.py", "def mine(item, response):\n    return item.data['note'] == 'n'\n")
    done.config["evaluation_methods"].append(
        {"name": "mine", "path": str(done.folder / "mine.py"), "function_name": "mine"}
    )
    assert done.run().scored == {"exact_match": 0, "contains": 0, "mine": CELLS}
    done.rows[2]["data"]["note"] = "changed"
    again = done.run()
    assert again.ran == 0
    assert again.scored == {"exact_match": 0, "contains": 0, "mine": 2}


def test_rendered_field(done: Lab) -> None:
    done.rows[3]["data"]["question"] = "3 + 0 + 1"
    assert done.run().rows == (2, 4)
    assert len(done.read("responses.jsonl")) == CELLS


def test_template_and_temperature(done: Lab) -> None:
    done.config["prompt_templates"]["plain"] = "Now: What is {{question}}?"
    assert done.run().rows == (CELLS, BOTH)
    done.config["sample_params"]["temperature"] = 0
    assert done.run().rows == (CELLS, BOTH)
    assert len(done.read("responses.jsonl")) == CELLS


def test_temperature_written_otherwise(done: Lab) -> None:
    done.config["sample_params"]["temperature"] = 1
    done.run()
    done.config["sample_params"]["temperature"] = 1.0
    assert done.run().ran == 0


def test_more_samples_a_model_a_prompt(done: Lab) -> None:
    done.config["sample_params"]["num_samples"] = 3
    assert done.run().rows == (4, 8)
    done.config["models"].append(done.model("second"))
    assert done.run().rows == (12, 24)
    done.config["prompt_templates"]["long"] = "Please tell me: What is {{question}}?"
    assert done.run().rows == (24, 48)
    assert len(done.read("responses.jsonl")) == 48


def test_new_item(done: Lab) -> None:
    done.rows.append({"id": "new", "data": {"question": "5 + 5"}, "ground_truth": {"answer": "10"}})
    assert done.run().rows == (2, 4)


def test_what_cannot_change_an_answer(done: Lab) -> None:
    done.config["models"][0] |= {"timeout": 7, "max_retries": 9, "max_concurrency": 3}
    done.config["timeout"] = 11
    assert done.run(max_concurrency=2).rows == (0, 0)


def test_endpoint_and_key_are_not_identity(done: Lab) -> None:
    from assay.models.openai import openai

    one = openai("m", endpoint="http://127.0.0.1:1/v1", api_key="aaaaaaaa")
    two = openai("m", endpoint="http://127.0.0.1:2", api_key="bbbbbbbb", headers={"x": "y"})
    assert one.identity == two.identity
    assert openai("m", revision="2").identity != one.identity


def test_helper_that_a_scorer_imports(done: Lab) -> None:
    done.write("helper.py", "LIMIT = 1\n")
    done.write(
        "mine.py", "from helper import LIMIT\n\ndef mine(item, response):\n    return LIMIT\n"
    )
    done.config["evaluation_methods"] = [
        {"name": "mine", "path": str(done.folder / "mine.py"), "function_name": "mine"}
    ]
    done.config["metrics"] = ["mean"]
    assert done.run().scored == {"mine": CELLS}
    assert done.run().scored == {"mine": 0}
    done.write("helper.py", "LIMIT = 0.25\n")
    again = done.run()
    assert again.rows == (0, CELLS)
    assert again.result.metrics[0]["value"] == 0.25


def test_retry_an_error(done: Lab) -> None:
    done.rows.append({"id": "bad", "data": {"question": "1 / 0"}, "ground_truth": {"answer": "0"}})
    broken = done.run()
    assert broken.rows == (2, 4)
    assert broken.result.run is not None
    assert broken.result.run.counts == {"ok": 8, "errored": 2}
    assert done.run().rows == (0, 0)
    assert done.run(retry_errors=True).ran == 2
    assert len(done.read("responses.jsonl")) == 10


def test_narrowing_keeps_rows(done: Lab) -> None:
    assert done.run(limit=1, num_samples=1).rows == (0, 0)
    assert len(done.read("responses.jsonl")) == CELLS


def test_narrowed_runs_add_up(lab: Lab) -> None:
    assert lab.run(limit=1).ran == 2
    assert lab.run(num_samples=1).ran == 3
    assert lab.run().ran == 3
    assert len({row["key"] for row in lab.read("responses.jsonl")}) == CELLS


JUDGE = """
PROMPT = "What is {a}?"

async def judge(item, response, *, bonus: float = 0.0, context):
    messages = [{"role": "user", "content": PROMPT.format(a=response.response)}]
    answer = await context.complete(messages, model="calculator")
    return float(answer.text) / 100 + bonus
"""


def test_judge_is_paid_only_for_new_messages(done: Lab) -> None:
    done.write("judge.py", JUDGE)
    method = {"name": "judge", "path": str(done.folder / "judge.py"), "function_name": "judge"}
    done.config["evaluation_methods"] = [method]
    first = done.run()
    assert (first.scored, first.paid) == ({"judge": CELLS}, CELLS)
    method["params"] = {"bonus": 0.5}
    again = done.run()
    assert (again.scored, again.paid) == ({"judge": CELLS}, 0)
    done.write("judge.py", JUDGE.replace("/ 100", "/ 200"))
    again = done.run()
    assert (again.scored, again.paid) == ({"judge": CELLS}, 0)
    done.write("judge.py", JUDGE.replace("What is {a}?", "Well, What is {a}?"))
    again = done.run()
    assert (again.scored, again.paid) == ({"judge": CELLS}, CELLS)
