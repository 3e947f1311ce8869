"""The configs and programs that een-eval ships, with files of ours where theirs are missing."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import assay
from assay.config import load
from assay.formats import een
from assay.server import Options, running

pytestmark = pytest.mark.originals
Originals = Callable[[str], Path]
CONFIGS = ("basic_config.yaml", "updated_config.yaml", "vllm_config.yaml", "README.md")
ROWS = [
    {"question": "What is 2 + 2?", "problem": "What is 2 + 2?", "constraints": "none"},
    {"question": "What is 3 + 3?", "problem": "What is 3 + 3?", "constraints": "none"},
]
ANSWERS = ("4", "6")
# under every name that a config asks for
FUNCTIONS = """\
def evaluate(response, ground_truth, inference_result=None, **params):
    right = ground_truth["answer"] in response
    return {"labels": [{"label": {"name": NAME}, "result": {"passed": right, "score": right + 0.0}}]}

def measure(evaluation_results, facets=None, **params):
    return [{"value": sum(row["score"] for row in evaluation_results) / len(evaluation_results)}]

def load_transcript_dataset(save=False):
    return ROWS
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Options(skill=1.0)) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the shipped configs and programs name."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {**row, "answer": answer, "expected_output": answer, "prompt": row["question"]}
        for row, answer in zip(ROWS, ANSWERS, strict=True)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for name in [
        "data/eval_dataset",
        "data/coding_eval",
        "datasets/qc_problems",
        "data/simple_qa",
        "data/prompts",
        "data/large_dataset",
        "data/custom_dataset",
        "data/qa",
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    for name in ("prompt_template", "code_prompt_template", "eval_prompt_template"):
        (tmp_path / f"{name}.md").write_text("{{ question }}")
    (tmp_path / "code_quality.py").write_text(functions("code", rows))
    (tmp_path / "eval.py").write_text(functions("eval", rows))
    return tmp_path


def functions(file: str, rows: Any) -> str:
    """The text of a file with functions by all names of the configs, each with a label of its own."""
    names = ["exact_match", "contains", "code_correctness", "qa_responses", "qa_params"]
    made = [f"ROWS = {rows!r}\n" + FUNCTIONS.replace("NAME", repr(file))]
    for name in names:
        source = FUNCTIONS.partition("\ndef measure")[0].replace("NAME", repr(name))
        made.append(source.replace("def evaluate(", f"def evaluate_{name}("))
    made.append("calculate_accuracy = complexity_weighted_average = measure\n")
    return "\n".join(made)


def shipped(original: Path, name: str) -> dict[str, Any]:
    if name != "README.md":
        return yaml.safe_load((original / "examples" / name).read_text())
    return blocks(original / name, "yaml")[0]


def blocks(file: Path, language: str) -> list[Any]:
    """The blocks of a page in this language; those of YAML as values."""
    found = re.findall(rf"```{language}\n(.*?)```", file.read_text(), re.DOTALL)
    return [yaml.safe_load(text) for text in found] if language == "yaml" else found


def at_server(config: dict[str, Any], url: str) -> dict[str, Any]:
    """The config with models that are asked at `url`; nothing is started for them."""
    models = [{"name": each} if isinstance(each, str) else each for each in config["models"]]
    asked = [
        {**{key: value for key, value in model.items() if key != "docker"}, "endpoint": url}
        for model in models
    ]
    return {**config, "models": asked}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_shipped_config_loads_and_runs(
    originals: Originals, folder: Path, url: str, name: str
) -> None:
    config = shipped(originals("een"), name)
    assay.validate(config)
    (folder / "config.yaml").write_text(yaml.safe_dump(at_server(config, url)))
    asked = assay.run("config.yaml")
    assert asked.run is not None
    samples = config["sample_params"]["num_samples"]
    items = 2 if name == "README.md" else len(ROWS)
    assert asked.run.counts == {"ok": len(config["models"]) * items * samples}
    assert asked.metrics == []  # all of them say `inference`
    measured = assay.run("config.yaml", mode="evaluation")
    assert {row["metric_name"] for row in measured.metrics} == {
        metric["name"] for metric in config["metrics"]
    }
    passing = [row["value"] for row in measured.metrics if row["metric_name"].startswith("pass@1")]
    assert passing
    assert set(passing) == {1.0}


def test_what_a_shipped_config_names_and_nobody_has(
    originals: Originals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = shipped(originals("een"), "basic_config.yaml")
    with pytest.raises(assay.errors.ConfigError) as caught:
        assay.validate(config)
    for name in ("data/eval_dataset.jsonl", "eval.py", "prompt_template.md"):
        assert f"there is no file '{name}'" in str(caught.value)


def test_every_fragment_of_its_pages_loads(originals: Originals, folder: Path) -> None:
    """The pages' fragments, each in a config that has what it leaves out."""
    (folder / "path/to").mkdir(parents=True)
    (folder / "path/to/dataset.jsonl").write_text("{}\n")
    (folder / "my_module.py").write_text(
        "def my_function(response, ground_truth): ...\ndef my_metric(results): ...\n"
    )
    (folder / "code_evaluators.py").write_text("def execute_and_test(response, ground_truth): ...")
    whole = {"models": ["m"], "dataset": "data/eval_dataset.jsonl"}
    original = originals("een")
    pages = [original / name for name in ("CLI_DOCUMENTATION.md", "examples/README.md")]
    fragments = [fragment for page in pages for fragment in blocks(page, "yaml")]
    fragments += blocks(original / "docs/LLAMACPP_SUPPORT.md", "yaml")
    assert len(fragments) > 9
    for fragment in fragments:
        load({**whole, **fragment}, environ={})


def program(file: Path, url: str, folder: Path) -> ModuleType:
    """A program of the original with our names, its models asked at `url`."""
    text = re.sub(r"\been_eval(\.[a-z_]+)*", "assay.formats.een", file.read_text())
    text = re.sub(
        r"Model\.from_name\((.*?)\)", rf"Model.from_dict(dict(name=\1, endpoint={url!r}))", text
    )
    (folder / "program.py").write_text(text)
    module = ModuleType("program")
    module.__file__ = str(folder / "program.py")
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def test_every_name_that_its_programs_import_is_there(originals: Originals) -> None:
    original = originals("een")
    files = [original / "README.md", *(original / "examples").glob("*.py")]
    imported = {
        name.strip()
        for file in files
        for names in re.findall(r"from een_eval[\w.]* import ([\w, ]+)", file.read_text())
        for name in names.split(",")
    }
    assert imported >= {"EvalWorkflow", "Model", "ModelConfig", "EvaluationMethod", "Metric"}
    assert not [name for name in imported if not hasattr(een, name)]


def test_its_programs_run(originals: Originals, folder: Path, url: str) -> None:
    module = program(originals("een") / "examples/usage_examples.py", url, folder)
    for name in ("basic_usage", "inference_only", "resume_workflow"):
        getattr(module, f"example_{name}")()
    module.example_custom_dataset_and_evaluation()
    assert (folder / "results/basic_example/responses.jsonl").is_file()
    workflow = een.EvalWorkflow(
        evaluation_methods=[een.EvaluationMethod.from_function("c", module.custom_exact_match)],
        metrics=[een.Metric.from_function("accuracy", module.calculate_accuracy)],
        output_dir="results/basic_example",
        mode="evaluation",
    )
    assert [row["metric_name"] for row in workflow.run().metrics] == ["accuracy"]
    more = program(originals("een") / "examples/comprehensive_usage.py", url, folder)
    more.example_3_custom_evaluation()
    more.example_4_resume_workflow()
    more.example_7_advanced_metrics()


def test_the_first_program_of_its_page(originals: Originals, folder: Path, url: str) -> None:
    text = blocks(originals("een") / "README.md", "python")[0]
    (folder / "page.py").write_text(text)
    workflow = program(folder / "page.py", url, folder).workflow
    assert workflow.is_complete()
    assert workflow.set_mode("evaluation").run().metrics[0]["metric_name"] == "accuracy"
