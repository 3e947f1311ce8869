"""What the data cannot give is refused before anything is spent, by `validate`, `plan` and `run` alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.config.providers import providers
from assay.engine.evaluate.bind import BoundScorer
from assay.errors import ConfigError
from assay.registry import scorer as scorers
from assay.store.items import normalise
from assay.store.stores import MemoryStore
from assay.text.expected import NoExpectation

VERBS: list[Callable[..., Any]] = [assay.validate, assay.plan, assay.run]


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "name": "x",
        "dataset": [
            {"question": f"{n} + 1", "level": "easy", "answer": str(n + 1)} for n in range(3)
        ],
        "models": ["demo:small"],
        "prompts": "{{question}}",
        "scorers": ["exact_match"],
        "metrics": ["pass_rate"],
        "output_dir": str(tmp_path / "out"),
    }


def problems(verb: Callable[..., Any], config: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        verb(**config)
    return [f"{problem.what} | {problem.fix}" for problem in raised.value.problems]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("column", ["Correct Answer", "expected", "gold", "reference"])
def test_an_unmapped_answer(config: dict[str, Any], verb: Callable[..., Any], column: str) -> None:
    config["dataset"] = [{"question": "1 + 1", column: "2"}]
    (problem,) = problems(verb, config)
    assert "exact_match has nothing to compare with in any item" in problem
    assert (
        f"did you mean {column!r}? add `fields: {{ground_truth: {column}}}` to `dataset`" in problem
    )


def test_the_hint_works(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,Correct Answer\n1 + 1,2\n")
    config["dataset"] = {
        "path": str(tmp_path / "rows.csv"),
        "fields": {"ground_truth": "Correct Answer"},
    }
    assert assay.run(**config).metrics[0]["value"] == 1.0


def test_one_item_with_an_answer_is_enough(config: dict[str, Any]) -> None:
    config["dataset"] = [{"question": "0 + 1"}, *config["dataset"]]
    result = assay.run(**config)
    assert [row["errored_count"] for row in result.metrics] == [1]
    assert result.failures[0].reasons[0].count == 1
    assert result.failed == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_facet_that_no_row_can_have(config: dict[str, Any], verb: Callable[..., Any]) -> None:
    config["metrics"] = [{"name": "pass_rate", "facets": ["levl"]}]
    (problem,) = problems(verb, config)
    assert problem.startswith("no row can have the facet 'levl' | did you mean 'level'?")


@pytest.mark.parametrize(
    "facet",
    [
        *(
            "level",
            "data.level",
            "model_name",
            "metadata.model_id",
            "model_id",
            "prompt_template",
            "metadata.sampling",
        ),
        *("sampling.num_samples", "item_id", "sample_index", "finish_reason", "detailed_results.x"),
    ],
)
def test_facets_that_rows_have(config: dict[str, Any], facet: str) -> None:
    config["metrics"] = [{"name": "pass_rate", "facets": [facet]}]
    assert assay.plan(**config).missing == 3


@pytest.mark.parametrize("verb", VERBS)
def test_a_label_that_no_scorer_gives(config: dict[str, Any], verb: Callable[..., Any]) -> None:
    config["metrics"] = [{"name": "pass_rate", "labels": {"include": ["exact_mach"]}}]
    (problem,) = problems(verb, config)
    assert problem.startswith(
        "no scorer gives the label 'exact_mach' | did you mean 'exact_match'?"
    )


def test_labels_that_scorers_give(config: dict[str, Any]) -> None:
    def mine(item: Any, response: Any) -> dict[str, Any]:
        return {"label": "anything", "passed": True}

    config["metrics"] = [{"name": "pass_rate", "labels": {"include": ["exact_match", "exact_*"]}}]
    assert assay.plan(**config).missing == 3
    config["scorers"], config["metrics"] = (
        [mine],
        [{"name": "pass_rate", "labels": {"include": ["anything"]}}],
    )
    assert assay.plan(**config).missing == 3


def test_more_samples_than_there_are(config: dict[str, Any]) -> None:
    config["metrics"] = ["pass@5"]
    warning = "pass@5: num_samples is 1, below k = 5"
    assert assay.validate(**config) == [warning]
    assert assay.plan(**config).warnings == [warning]
    assert warning in assay.run(**config).notes


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("row", "template"),
    [
        ({"text": "1 + 1", "answer": "2"}, "{{text}}"),
        ({"data": {"text": "1 + 1", "solution": "2"}, "ground_truth": "2"}, "{{text}}"),
        ({"input": "1 + 1", "level": "easy", "Correct Answer": "2"}, "{{input}}\\n{{level}}"),
    ],
)
def test_the_answer_never_leaks(
    config: dict[str, Any], verb: Callable[..., Any], row: dict[str, Any], template: str
) -> None:
    config["dataset"] = [row]
    del config["prompts"]
    (problem,) = problems(verb, config)
    assert "the whole row would be sent, with the answer in it" in problem
    assert f'add `prompt_template: "{template}"`' in problem


@pytest.mark.parametrize(
    ("row", "sent"),
    [
        ({"question": "1 + 1", "answer": "2"}, [{"role": "user", "content": "1 + 1"}]),
        ({"data": "1 + 1", "ground_truth": "2"}, [{"role": "user", "content": "1 + 1"}]),
        (
            {"data": {"text": "1 + 1"}, "ground_truth": "2"},
            [{"role": "user", "content": '{"text":"1 + 1"}'}],
        ),
        (
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "1 + 1"},
                ],
                "answer": "2",
            },
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1"}],
        ),
    ],
)
def test_what_is_sent_without_a_template(
    config: dict[str, Any], row: dict[str, Any], sent: list[Any]
) -> None:
    asked: list[Any] = []

    def model(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return "2"

    config |= {"dataset": [row], "models": [model]}
    del config["prompts"]
    assert assay.run(**config).metrics[0]["value"] == 1.0
    assert asked == [sent]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("antropic:claude", "did you mean 'anthropic:claude'"),
        ("goggle:x", "did you mean 'google:x'"),
        ("qwen3:8b", "qwen3:8b@URL"),
        ({"name": "qwen3:8b", "timeout": 9}, "`assay list providers`"),
    ],
)
def test_a_prefix_that_is_no_provider(config: dict[str, Any], name: Any, nearest: str) -> None:
    config["models"] = [name]
    (problem,) = problems(assay.plan, config)
    prefix = (name if isinstance(name, str) else name["name"]).partition(":")[0]
    assert problem.startswith(f"{prefix!r} is not a provider")
    assert nearest in problem


def test_an_address_makes_a_name_with_a_colon_a_name(config: dict[str, Any]) -> None:
    config["models"] = ["qwen3:8b@http://127.0.0.1:9"]
    assert assay.plan(**config).missing == 3


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("groq:m", "GROQ_API_KEY"),
        ("google:gemini-2.5-pro", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ({"name": "m", "type": "mistral"}, "MISTRAL_API_KEY"),
        ({"name": "m", "endpoint": "https://api.x.ai/v1"}, "XAI_API_KEY"),
        ({"name": "m", "type": "groq", "api_key": "${MINE}"}, "${MINE}"),
        ({"name": "r", "type": "record", "of": {"type": "hf"}, "path": "r.jsonl"}, "HF_TOKEN"),
    ],
)
def test_a_missing_key_names_its_variable(
    config: dict[str, Any], name: Any, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in providers().values():
        for key in provider.key:
            monkeypatch.delenv(key, raising=False)
    config["models"] = [name]
    (problem,) = problems(assay.plan, config)
    assert variable in problem
    assert "is not set" in problem


def test_names_of_other_tools(config: dict[str, Any]) -> None:
    config["metrics"], config["scorers"] = ["accuracy"], ["levenshtein"]
    assert sorted(problems(assay.plan, config)) == [
        "unknown metric 'accuracy' | here it is called 'pass_rate'",
        "unknown scorer 'levenshtein' | here it is called 'edit_similarity'",
    ]


def test_a_variable_that_is_missing_has_its_line(config: dict[str, Any]) -> None:
    config["prompts"] = "Please answer.\n\n{{qestion}}"
    assert (
        "the template uses 'qestion' in line 3; did you mean 'question'?"
        in problems(assay.plan, config)[0]
    )
    config["prompts"] = "Please answer.\n{{qestion|upper}}"
    assert (
        "the template fails in line 2: 'qestion' is undefined; did you mean"
        in problems(assay.plan, config)[0]
    )


@pytest.mark.parametrize("name", [name for name in scorers.names() if "judge" not in name])
def test_every_scorer_that_compares_says_what_it_lacks(config: dict[str, Any], name: str) -> None:
    """Built-in scorers either need nothing of an item, or say before the run that it is missing."""
    from assay.engine.evaluate.bind import bind_scorer
    from assay.engine.experiment.preflight import check

    try:
        bound = bind_scorer(scorers.get(name))
    except assay.errors.UserError:
        pytest.skip("it has parameters of its own")
    if bound.of_several or bound.batch or bound.takes_context or bound.mode != "inline":
        pytest.skip("it asks for more than an item and a response")
    item = normalise({"id": "a", "data": {"question": "?"}, "ground_truth": None})
    row = None
    try:
        row = bound.function(
            item, assay.records.Response(item_id="a", response="4"), **bound.params
        )
    except NoExpectation:
        with pytest.raises(ConfigError, match="1 problem"):
            check([], [bound], [], [item], MemoryStore().log("evaluation", "x"))
    except LookupError:
        return  # of the response, such as the passages that were retrieved
    else:
        labels = row if isinstance(row, list) else [row]
        assert all(label.outcome != "errored" for label in labels), (
            "what is missing is NoExpectation"
        )


# ---- labels


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "metric",
    [
        "pass_rate",
        "pass@1",
        {"name": "p", "type": "pass_hat_k", "labels": ["rouge.L"]},
        {"name": "majority_at_k"},
    ],
)
def test_passes_of_a_label_that_is_only_a_score(
    config: dict[str, Any], verb: Callable[..., Any], metric: Any
) -> None:
    config |= {"scorers": ["exact_match", "rouge"], "metrics": [metric, "mean"]}
    (problem,) = problems(verb, config)
    assert "counts passes, and the labels of rouge are only scores" in problem
    assert (
        "add `threshold:` to the params of rouge, or use `mean`, or `labels: {exclude: [rouge*]}`"
        in problem
    )


@pytest.mark.parametrize(
    ("scorer", "metric"),
    [
        ({"name": "rouge", "params": {"threshold": 0.5}}, "pass_rate"),
        ("rouge", "mean"),
        ("rouge", {"name": "pass_rate", "labels": {"exclude": ["rouge.?"]}}),
        ("rouge", {"name": "pass_rate", "labels": {"exclude": ["rouge.1", "rouge.2", "rouge.L"]}}),
        ("rouge", {"name": "pass_rate", "labels": ["exact_match"]}),
        ("wer", "pass_rate"),
        ("edit_similarity", "pass_rate"),
    ],
)
def test_ways_out(config: dict[str, Any], scorer: Any, metric: Any) -> None:
    config |= {"scorers": ["exact_match", scorer], "metrics": [metric]}
    assert all(row["value"] is not None for row in assay.run(**config).metrics)


def test_a_scorer_without_a_threshold_leaves_the_mean(config: dict[str, Any]) -> None:
    config["scorers"] = ["squad.f1"]
    (problem,) = problems(assay.run, config)
    assert problem.endswith("| use `mean`, or `labels: {exclude: [squad.f1*]}`")


def test_stored_verdicts_count_as_stored_and_nothing_is_scored_again(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version gave f1 verdicts: any score above 0 passed."""
    config |= {"scorers": ["f1"], "metrics": ["pass_rate"]}
    with monkeypatch.context() as earlier:
        earlier.setattr(BoundScorer, "verdicts", True)
        result = assay.run(**config)
    labels = Path(result.folder) / "evaluation_results.jsonl"
    before = labels.read_bytes()
    assert b'"passed":true' in before
    again = assay.run(**config | {"metrics": ["pass_rate", "mean"]})
    assert again.metrics[0]["value"] == result.metrics[0]["value"]
    assert labels.read_bytes() == before


@pytest.mark.parametrize("verb", VERBS)
def test_two_methods_of_one_label(config: dict[str, Any], verb: Callable[..., Any]) -> None:
    config |= {
        "scorers": [{"name": "rouge.1", "type": "exact_match"}, "rouge"],
        "metrics": ["mean"],
    }
    (problem,) = problems(verb, config)
    assert problem == (
        "the evaluation methods 'rouge.1' and 'rouge' both give the label 'rouge.1' | give one of them another `name:`"
    )


def good(item: Any, response: Any) -> dict[str, Any]:
    return {"label": "good", "passed": True}


def fine(item: Any, response: Any) -> dict[str, Any]:
    return {"label": "good", "passed": False}


def part(item: Any, response: Any) -> float:
    return 0.5


def test_two_functions_that_give_one_label_are_told_apart(config: dict[str, Any]) -> None:
    """What they give is known when it is there: pass@2 would be 1 from one sample."""
    config |= {"scorers": [good, fine], "metrics": ["pass@2", "pass_rate"]}
    found = {
        (row["metric_name"], row["label"]): row["value"] for row in assay.run(**config).metrics
    }
    assert found == {
        ("pass@2", "good (fine)"): None,
        ("pass@2", "good (good)"): None,
        ("pass_rate", "good (fine)"): 0.0,
        ("pass_rate", "good (good)"): 1.0,
    }


def test_of_a_function_it_is_known_at_the_first_label(config: dict[str, Any]) -> None:
    result = assay.run(
        **(config | {"scorers": ["exact_match", part], "metrics": ["pass_rate", "mean"]})
    )
    found = {(row["metric_name"], row["label"]): row for row in result.metrics}
    assert found["pass_rate", "exact_match"]["value"] is not None
    assert found["mean", "part"]["value"] == 0.5
    assert found["pass_rate", "part"]["value"] is None
    assert found["pass_rate", "part"]["reason"].startswith("part is only a score: ")
    gated = assay.gate(result.folder, metric="pass_rate", label="part", min=0.1)
    assert (gated.outcome, gated.checks[0].why) == (
        "inconclusive",
        found["pass_rate", "part"]["reason"],
    )
    assert (
        assay.gate(result.folder, metric="mean", label="part", min=0.1, point=True).outcome
        == "passed"
    )


def test_existing_responses_are_refused_too(config: dict[str, Any], tmp_path: Path) -> None:
    folder = assay.run(**config).folder
    with pytest.raises(ConfigError, match="the labels of f1 are only scores"):
        assay.evaluate(
            folder, scorers=["f1"], metrics=["pass_rate"], output_dir=str(tmp_path / "again")
        )
