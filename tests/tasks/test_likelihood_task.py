"""Likelihood tasks: what is asked, what identifies it, what a row has, and whole runs of them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.engine.calls.budget import expected_answer, prompt_tokens
from assay.engine.run.plan import estimated_tokens
from assay.errors import RunFailed, UserError
from assay.interfaces import Completion, Likelihood, Likelihoods, LogProbability, Request
from assay.models.demo import demo
from assay.prompts.jinja import jinja
from assay.records import Item
from assay.reports.notebook import pictures
from assay.server import Options, running
from assay.tasks.likelihood import LikelihoodTask, likelihood
from assay.threads import run_blocking

ITEM = Item(
    id="i",
    data={"question": "Capital?", "choices": ["A", "B b"], "nested": {"of": ["x"]}},
    ground_truth={"answer": "A"},
)


class Around:
    """Answers a continuation with minus its length for each of its letters."""

    item_id, sample_index, seed = "i", 0, 0

    def __init__(self) -> None:
        self.requests: list[Likelihood] = []

    async def send(self, model: Any, request: Request) -> Completion:
        assert isinstance(request, Likelihood)
        self.requests.append(request)
        values = [
            LogProbability([-float(len(text))] * len(text), False) for text in request.continuations
        ]
        return Likelihoods(
            values=values, prompt_tokens=3, completion_tokens=1, total_tokens=4, cost=0.5, way="w"
        )


def task(**params: Any) -> LikelihoodTask:
    params.setdefault("choices", "choices")
    return likelihood(jinja("Q: {{question}}", name="p"), demo("m"), **params)


def run(made: LikelihoodTask) -> tuple[Any, Around]:
    around = Around()
    return run_blocking(lambda: made.run(made.prepare(ITEM), around)), around  # type: ignore[arg-type]


def test_what_is_asked_and_what_the_row_has() -> None:
    answer, around = run(task())
    (request,) = around.requests
    assert (request.messages[0]["content"], request.continuations) == (
        "Q: Capital?",
        [" A", " B b"],
    )
    assert answer.text == "A"
    assert answer.output == {
        "choices": [
            {"text": "A", "logprob": -4.0, "tokens": 2, "greedy": False},
            {"text": "B b", "logprob": -16.0, "tokens": 4, "greedy": False},
        ],
        "way": "w",
    }
    assert answer.completion.total_tokens == 4


def test_the_unconditional_and_the_tokens_themselves() -> None:
    answer, around = run(task(unconditional="Answer:", per_token=True, delimiter="\n"))
    assert [request.messages[0]["content"] for request in around.requests] == [
        "Q: Capital?",
        "Answer:",
    ]
    assert around.requests[1].continuations == around.requests[0].continuations == ["\nA", "\nB b"]
    assert answer.output["choices"][0]["unconditional"] == -4.0
    assert answer.output["choices"][0]["token_logprobs"] == [-2.0, -2.0]
    assert (answer.completion.total_tokens, answer.completion.cost) == (8, 1.0)


def test_a_whole_text_is_a_continuation_of_nothing() -> None:
    answer, around = run(task(choices=None, unconditional="<s>"))
    (request,) = around.requests
    assert (request.messages[0]["content"], request.continuations, request.rolling) == (
        "<s>",
        ["Q: Capital?"],
        True,
    )
    assert answer.output["choices"][0]["text"] == ""
    assert task(choices=None).prepare(ITEM).prompt == "Q: Capital?"


@pytest.mark.parametrize(
    ("choices", "wanted"),
    [
        (["yes", "no {{question}}"], ["yes", "no Capital?"]),
        ("nested.of", ["x"]),
        ("answer", ["A"]),
        ("ground_truth.answer", ["A"]),
        ("data.choices", ["A", "B b"]),
    ],
)
def test_where_choices_come_from(choices: Any, wanted: list[str]) -> None:
    request: Likelihood = task(choices=choices, delimiter="").prepare(ITEM).payload
    assert request.continuations == wanted


def test_choices_as_in_arc_and_none_at_all() -> None:
    arc = msgspec.structs.replace(
        ITEM, data={"question": "q", "choices": {"text": ["u", "v"], "label": ["A", "B"]}}
    )
    request: Likelihood = task().prepare(arc).payload
    assert request.continuations == [" u", " v"]
    for bad in ([], "", [{"a": 1}], None):
        with pytest.raises(UserError, match="not a list of texts"):
            task().prepare(msgspec.structs.replace(ITEM, data={"question": "q", "choices": bad}))
    with pytest.raises(UserError, match="choices is empty"):
        task(choices=["a", "{{question[:0]}}"]).prepare(ITEM)
    with pytest.raises(UserError, match="text is empty"):
        likelihood(jinja("{{question[:0]}}"), demo("m")).prepare(ITEM)
    with pytest.raises(UserError, match="no field 'chioces'"):
        task(choices="chioces").prepare(ITEM)


def test_the_fingerprint_is_what_is_sent() -> None:
    same = task().prepare(ITEM).fingerprint
    assert task().prepare(ITEM).fingerprint == same
    assert task().prepare(msgspec.structs.replace(ITEM, ground_truth="B")).fingerprint == same
    others = [task(delimiter=""), task(unconditional=""), task(per_token=True), task(choices=None)]
    assert len({same, *(other.prepare(ITEM).fingerprint for other in others)}) == 5
    other = msgspec.structs.replace(ITEM, data={"question": "Capital?", "choices": ["A", "B"]})
    assert task().prepare(other).fingerprint != same


def test_budgets_count_the_context_with_each_choice() -> None:
    request = Likelihood(
        [{"role": "user", "content": "x" * 400}], continuations=["y" * 40, "z" * 80]
    )
    assert prompt_tokens(request) == 101 * 2 + 10 + 20
    assert expected_answer(request) == 2
    assert estimated_tokens(task().prepare(ITEM)) > 0


# ---- whole runs


def config(folder: Path, url: str, **more: Any) -> dict[str, Any]:
    rows = [
        {
            "id": place,
            "data": {"question": f"The capital of {place} is", "choices": ["Rome", "Paris"]},
            "ground_truth": right,
        }
        for place, right in (("France", "Paris"), ("Italy", 0), ("Spain", "B"))
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "likely",
        "dataset": str(folder / "items.jsonl"),
        "models": [{"name": "m", "endpoint": url}],
        "prompts": [{"name": "q", "text": "{{question}}", "likelihood": {"choices": "choices"}}],
        "evaluation_methods": ["likelihood_choice"],
        "metrics": ["pass_rate", "brier_score"],
        "output_dir": str(folder / "out"),
        **more,
    }


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / name).read_text().splitlines()]


def test_a_run_is_resumed_and_knows_its_way(tmp_path: Path) -> None:
    with running(Options(rate_500=0.2, seed=3)) as url:
        first = assay.run(config(tmp_path, url), limit=2)
        whole = assay.run(config(tmp_path, url))
        assert first.run is not None
        assert whole.run is not None
        assert whole.run.complete
        assert whole.run.metadata["probes"] == {"m": {"way": "echo", "served_model": "m"}}
    rows = {row["item_id"]: row for row in rows_of(tmp_path, "responses.jsonl")}
    assert len(rows) == 3
    assert rows["France"]["response"] == "Paris"
    assert rows["France"]["total_tokens"] > 0
    scored = {row["item_id"]: row for row in rows_of(tmp_path, "evaluation_results.jsonl")}
    assert [scored[place]["passed"] for place in ("France", "Italy")] == [True, True]
    assay.run(config(tmp_path, "http://127.0.0.1:1"))  # nothing is asked again


def test_a_model_without_likelihoods_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(
        "def answer(prompt):\n    open('asked', 'w')\n    return 'x'\n"
    )
    settings = config(tmp_path, "")
    settings["models"] = [
        {
            "name": "p",
            "type": "python",
            "path": str(tmp_path / "asked.py"),
            "function_name": "answer",
        }
    ]
    with pytest.raises(RunFailed, match="'p' gives no likelihoods") as caught:
        assay.run(settings)
    assert "vLLM" in caught.value.fix
    assert "Together" in caught.value.fix
    assert not (tmp_path / "out" / "responses.jsonl").exists() or not rows_of(
        tmp_path, "responses.jsonl"
    )


def test_a_finished_model_is_not_probed_again(tmp_path: Path) -> None:
    settings = config(tmp_path, "")
    with running(Options()) as url:
        settings["models"] = [{"name": "m", "endpoint": url}]
        assay.run(settings)
    settings["models"] = [
        {"name": "m", "endpoint": "http://127.0.0.1:1"},
        {"name": "d", "type": "demo"},
    ]
    assay.run(settings)  # the server of m is gone, and nobody misses it
    assert len(rows_of(tmp_path, "responses.jsonl")) == 6


def test_settings_that_do_not_exist_are_named(tmp_path: Path) -> None:
    settings = config(tmp_path, "http://127.0.0.1:1")
    settings["prompts"][0]["likelihood"] = {"choises": "choices"}
    with pytest.raises(UserError, match="choises"):
        assay.run(settings)


def test_items_without_choices_are_named_before_anything_is_asked(tmp_path: Path) -> None:
    settings = config(tmp_path, "http://127.0.0.1:1")
    with (tmp_path / "items.jsonl").open("a") as file:
        file.write('{"id": "bare", "data": {"question": "x"}}\n')
    with pytest.raises(UserError, match=r"item 'bare': the item has no field 'choices'"):
        assay.run(settings)
    settings["prompts"][0]["likelihood"] = {"choices": ["{{question}}", "{{quesion}}"]}
    with pytest.raises(UserError, match=r"a choice uses 'quesion'; did you mean 'question'"):
        assay.run(settings)


def test_chat_and_likelihood_of_one_prompt_stand_side_by_side(tmp_path: Path) -> None:
    settings = config(tmp_path, "")
    settings["models"] = [{"name": "d", "type": "demo"}]
    settings["prompts"].append({"name": "chat", "text": "{{question}}"})
    settings["evaluation_methods"] = ["exact_match"]
    result = assay.run(settings)
    assert result.run is not None
    assert len(rows_of(tmp_path, "responses.jsonl")) == 6


def test_a_result_shows_how_reliable_confidence_is(tmp_path: Path) -> None:
    settings = config(tmp_path, "")
    settings["models"] = [{"name": "d", "type": "demo"}]
    settings["metrics"] = [{"name": "ece", "type": "calibration_error", "facets": ["model_name"]}]
    result = assay.run(settings)
    (row,) = result.metrics
    assert sum(each["count"] for each in row["bins"]) == 3
    title, page = pictures(result)[1].title, result._repr_html_()
    assert title == "d, likelihood_choice: reliability"
    assert "1 answers" in page or "3 answers" in page or "2 answers" in page
    assert page.count("<svg") == 2
