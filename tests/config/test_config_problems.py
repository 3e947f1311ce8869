"""Every kind of problem is found, at its place, all at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.config import Config
from assay.errors import ConfigError, UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]


def test_many_at_once_each_with_its_line(problems: Problems) -> None:
    found = problems(
        """\
        models:
          - name: a
            timeout: -1
          - {name: a, type: opnai}
        dataset: dd.jsonl
        sample_params: {temperature: 3, num_samples: 0}
        limt: 5
        evaluation_methods:
          - exact_mach
          - {name: x, type: custom}
        metrics:
          - {name: mean, facet: [model_name]}
          - {name: mean, labels: {include: [a], exclude: [b]}}
        mode: ful
        """
    )
    assert {problem.where: (problem.what, problem.fix) for problem in found} == {
        "c.yaml:3 models[0].timeout": ("timeout must be a number above 0, got -1", ""),
        "c.yaml:4 models[1].type": ("unknown model 'opnai'", _any(found, "did you mean 'openai'?")),
        "c.yaml:4 models[1]": (
            "models[0] and models[1] are called 'a'",
            "give one of them another `name`",
        ),
        "c.yaml:5 dataset": ("there is no file 'dd.jsonl'", "did you mean 'd.jsonl'?"),
        "c.yaml:6 sample_params.temperature": (
            "temperature must be a number from 0 to 2, got 3",
            "",
        ),
        "c.yaml:6 sample_params.num_samples": (
            "num_samples must be a whole number of at least 1, got 0",
            "",
        ),
        "c.yaml:7 limt": ("unknown key 'limt'", _any(found, "did you mean 'limit'?")),
        "c.yaml:9 evaluation_methods[0]": (
            "unknown scorer 'exact_mach'",
            _any(found, "did you mean 'exact_match'?"),
        ),
        "c.yaml:10 evaluation_methods[1]": ("'x' is custom but has no file", "add `path: file.py`"),
        "c.yaml:12 metrics[0].facet": (
            "unknown key 'facet'",
            _any(found, "did you mean 'facets'?"),
        ),
        "c.yaml:13 metrics[1].labels": (
            "labels are included or excluded, not both",
            "remove one of the two lists",
        ),
        "c.yaml:14 mode": (
            "mode: 'ful' is not possible",
            "did you mean 'full'? valid: evaluation, full, inference",
        ),
    }


def _any(problems: list[UserError], start: str) -> str:
    """The one fix that begins like this: the list of names after it is not ours to repeat."""
    (fix,) = [problem.fix for problem in problems if problem.fix.startswith(start)]
    return fix


@pytest.mark.parametrize(
    ("keys", "what", "where"),
    [
        ({"models": 5}, "models must be a list, got 5", "models"),
        ({"models": [5]}, "models[0] must be a mapping, got 5", "models[0]"),
        ({"models": [{"type": "demo"}]}, "models[0] needs a name", "models[0]"),
        ({"models": [{"name": "m", "config": 5}]}, "config must be a mapping", "models[0].config"),
        (
            {"models": [{"name": "m", "params": [5]}]},
            "params must be a mapping",
            "models[0].params",
        ),
        ({"models": [{"name": 7}]}, "name must be text that is not empty, got 7", "models[0].name"),
        (
            {"models": [{"name": "m", "inference": {"top_p": 2}}]},
            "top_p must be a number from 0 to 1, got 2",
            "models[0].inference.top_p",
        ),
        (
            {"models": [{"name": "m", "inference": {"num_samples": 2}}]},
            "a model has no num_samples of its own",
            "models[0].inference.num_samples",
        ),
        (
            {"models": [{"name": "m", "max_concurrency": 0}]},
            "max_concurrency must be a whole number of at least 1, got 0",
            "models[0].max_concurrency",
        ),
        (
            {"models": [{"name": "m", "endpoint": "localhost:1234"}]},
            "the endpoint is not an address: 'localhost:1234'",
            "models[0].endpoint",
        ),
        (
            {"models": [{"name": "m", "config": {"endpoint": "ftp://h"}}]},
            "the endpoint is not an address: 'ftp://h'",
            "models[0].config.endpoint",
        ),
        (
            {"models": [{"name": "m", "type": "python", "path": "no.py"}]},
            "there is no file 'no.py'",
            "models[0].path",
        ),
        ({"dataset": {"path": "d.jsonl", "typ": "x"}}, "unknown key 'typ'", "dataset.typ"),
        (
            {"dataset": {"type": "jsonll", "path": "d.jsonl"}},
            "unknown dataset 'jsonll'",
            "dataset.type",
        ),
        ({"dataset": {}}, "the dataset has no path", "dataset"),
        ({"dataset": {"params": {}}}, "the dataset has no path", "dataset"),
        (
            {"dataset": {"type": "custom", "path": "d.jsonl"}},
            "a dataset function needs a file or a module, and its name",
            "dataset",
        ),
        ({"dataset": ["d.jsonl"]}, "dataset must be a mapping, got a list", "dataset"),
        ({"prompt_template": "no/such.txt"}, "there is no file 'no/such.txt'", "prompt_template"),
        ({"prompt_template": {"pth": "x"}}, "unknown key 'pth'", None),
        (
            {"prompt_templates": ["a", "a"]},
            "prompts[0] and prompts[1] are the same",
            "prompt_templates[1]",
        ),
        (
            {"prompt_template": [{"role": "user"}]},
            "a message needs a role and a content",
            "prompt_template[0]",
        ),
        (
            {"prompt_template": "a", "prompt_templates": ["b"]},
            "prompts is given twice",
            "prompt_templates",
        ),
        ({"sample_params": {"n": 4}}, "'n' is not a sample parameter here", "sample_params.n"),
        (
            {"sample_params": {"temperature": "hot"}},
            "temperature must be a number from 0 to 2, got 'hot'",
            "sample_params.temperature",
        ),
        (
            {"sample_params": {"x": float("nan")}},
            "x must be a finite number, got nan",
            "sample_params.x",
        ),
        (
            {"sample_params": {"x": print}},
            "x must be a JSON value, got builtin_function_or_method",
            "sample_params.x",
        ),
        (
            {"evaluation_methods": ["exact_match", "exact_match"]},
            "evaluation_methods[0] and evaluation_methods[1] are called 'exact_match'",
            "evaluation_methods[1]",
        ),
        (
            {"evaluation_methods": [{"exact_match": 5}]},
            "unknown key 'exact_match'",
            "evaluation_methods[0].exact_match",
        ),
        ({"evaluation_methods": ["no.py:f"]}, "there is no file 'no.py'", "evaluation_methods[0]"),
        (
            {"evaluation_methods": [{"name": "a", "type": "contains", "path": "d.jsonl"}]},
            "path is only for type custom",
            "evaluation_methods[0].path",
        ),
        (
            {"metrics": [{"name": "pass@1", "params": {"k": 0}}]},
            "k must be a whole number of at least 1, got 0",
            "metrics[0].params.k",
        ),
        ({"metrics": ["pass@0"]}, "k must be a whole number of at least 1, got 0", "metrics[0]"),
        ({"metrics": [{"mean": {}, "facets": []}]}, "unknown key 'mean'", "metrics[0].mean"),
        (
            {"metrics": [{"name": "mean", "on_error": "ignore"}]},
            "on_error: 'ignore' is not possible",
            "metrics[0].on_error",
        ),
        (
            {"metrics": [{"name": "mean", "facets": [1]}]},
            "facets[0] must be text, got 1",
            "metrics[0].facets[0]",
        ),
        ({"policy": {"on_eror": "wrong"}}, "unknown key 'on_eror'", "policy.on_eror"),
        ({"tasks": [{"name": "t", "path": "d.jsonl"}]}, "the task 't' has no function", "tasks[0]"),
        ({"workflow": {"max_worker": 3}}, "unknown key 'max_worker'", "workflow.max_worker"),
        ({"workflow": 3}, "workflow must be a mapping", "workflow"),
        (
            {"workflow": {"max_workers": 3}, "max_concurrency": 2},
            "max_concurrency is given twice",
            "workflow.max_workers",
        ),
        (
            {"inference_engine": "a.B"},
            "an inference_engine class cannot be used",
            "inference_engine",
        ),
        ({"limit": -1}, "limit must be a whole number of at least 0, got -1", "limit"),
        ({"limit": "5"}, "limit must be a whole number of at least 0, got '5'", "limit"),
        ({"resume": "maybe"}, "resume must be true or false, got 'maybe'", "resume"),
        ({"seed": True}, "seed must be a whole number of at least 0, got True", "seed"),
        ({"ci_level": 1}, "ci_level must be a number above 0 and below 1, got 1", "ci_level"),
        (
            {"max_error_rate": 1.5},
            "max_error_rate must be a number of at least 0 and of at most 1, got 1.5",
            "max_error_rate",
        ),
        ({"logging": "loud"}, "level: 'LOUD' is not possible", "logging"),
        ({"base": "/"}, "unknown key 'base'", "base"),
    ],
)
def test_each_kind(problems: Problems, keys: dict[str, Any], what: str, where: str | None) -> None:
    (problem,) = problems({"models": ["m"], "dataset": "d.jsonl", **keys})
    assert problem.what == what
    assert where is None or problem.where == where


@pytest.mark.parametrize(
    ("need", "missing"),
    [
        ("run", ["models", "dataset"]),
        ("evaluate", ["evaluation_methods"]),
        ("aggregate", ["metrics"]),
    ],
)
def test_each_step_needs_its_keys(
    problems: Problems, loaded: Loaded, need: str, missing: list[str]
) -> None:
    assert [problem.where for problem in problems({"name": "n"}, need=need)] == missing
    enough = {
        "models": "m",
        "dataset": "d.jsonl",
        "evaluation_methods": "contains",
        "metrics": "mean",
    }
    assert loaded({key: enough[key] for key in missing}, need=need).name == "assay"


def test_scoring_again_needs_no_model(loaded: Loaded) -> None:
    config = loaded({"workflow": {"mode": "evaluation"}, "evaluation_methods": "exact_match"})
    assert (config.mode, config.models) == ("evaluation", [])


def test_aggregating_does_not_look_for_the_dataset(loaded: Loaded, folder: Path) -> None:
    config = loaded({"dataset": "gone.jsonl", "metrics": "mean"}, need="aggregate")
    assert config.dataset is not None
    assert config.dataset.path == str(folder / "gone.jsonl")


@pytest.mark.parametrize("path", ["../d.jsonl", "sub/../../d.jsonl"])
def test_a_path_may_leave_the_folder(loaded: Loaded, folder: Path, path: str) -> None:
    outside = loaded(f"{{models: m, dataset: '{path}'}}", file="sub/c.yaml").dataset
    assert outside is not None
    assert outside.path == str(folder / "d.jsonl")


def test_paths_from_the_command_line_count_from_the_current_folder(
    loaded: Loaded, folder: Path
) -> None:
    config = loaded(
        "{models: m, dataset: x.jsonl}", file="sub/c.yaml", overrides={"dataset": "d.jsonl"}
    )
    assert config.dataset is not None
    assert config.dataset.path == str(folder / "d.jsonl")


def test_an_empty_template_file(problems: Problems, folder: Path) -> None:
    (folder / "t.txt").touch()
    (problem,) = problems("{models: m, dataset: d.jsonl, prompt_template: t.txt}")
    assert (problem.what, problem.where) == ("'t.txt' is empty", "c.yaml:1 prompt_template")


def test_the_error_as_it_is_printed(loaded: Loaded) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded("models: m\ndataset: d.jsonl\nprompt_tempalte: x\n")
    first, *rest = str(caught.value).splitlines()
    assert first == "1 problem in c.yaml"
    assert rest[:2] == ["unknown key 'prompt_tempalte'", "  where: c.yaml:3 prompt_tempalte"]
    assert rest[2].startswith("  fix:   did you mean 'prompt_template'?")
