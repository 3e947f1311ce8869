"""What a workflow leaves behind is an experiment like any other."""

from pathlib import Path

from assay.formats.een import EvalWorkflow
from tests.cli.shell import Shell
from tests.formats.verbs import read_by_every_verb


def test_after_a_workflow(tmp_path: Path, shell: Shell) -> None:
    rows = [{"id": f"q{n}", "task": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(2)]
    models = [{"name": name, "endpoint": shell.url} for name in ("first", "second")]
    EvalWorkflow(
        models,
        {"type": rows},
        ["exact_match"],
        [{"name": "pass_rate", "facets": ["model_name"]}],
        eval_prompt_template="{{ task }}",
        output_dir=str(tmp_path / "results/sums"),
    ).run()
    made = read_by_every_verb(shell, tmp_path / "results/sums", item="q0", label="exact_match")
    assert [(row["model_name"], row["value"]) for row in made] == [("first", 1.0), ("second", 1.0)]
    compared = shell.call("compare", "results/sums", "--facet", "model_name", "--json")
    assert compared.code == 0, compared.said


def test_its_words_for_the_command_line_point_to_ours(shell: Shell) -> None:
    for words, instead in [
        (["eval", "--config", "config.yaml"], "assay run CONFIG --mode evaluation"),
        (["resume", "-o", "results"], "the same assay run resumes"),
        (["create-config", "--output", "x.yaml"], "assay init"),
        (["list-components"], "assay list"),
        (["run", "--config", "c.yaml", "--verbose"], "--set logging.level=DEBUG"),
        (["run", "--dataset", "d.jsonl"], "assay init"),
    ]:
        ended = shell.call(*words)
        assert (ended.code, instead in ended.words) == (2, True), ended.said
    shell.config["workflow"] = {"mode": "inference"}
    ended = shell.call("run", "-c", "config.yaml", "--batch-size", "4", "--max-workers", "2")
    assert ended.code == 0, ended.said
    ended = shell.call("run", "--config", "config.yaml", "--mode", "evaluation")
    assert (ended.code, "pass_rate" in ended.out) == (0, True), ended.said
