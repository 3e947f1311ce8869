"""`assay init`: every example runs at once, nothing is overwritten; and the schema accepts all of them."""

import json
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

import assay
from assay.cli.init import command
from assay.config import load, schema
from assay.config.source import scalar
from assay.errors import UserError
from assay.examples import examples, init

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", examples())
def test_an_example_runs_at_once(name: str, tmp_path: Path) -> None:
    init(tmp_path / "here", example=name)
    config = tmp_path / "here/config.yaml"
    assert assay.validate(config) == []
    result = assay.run(config, output_dir=str(tmp_path / "out"))
    assert result.run is not None
    assert result.run.complete
    assert result.run.counts.get("errored", 0) == 0
    assert result.evaluation is not None
    assert result.evaluation.counts.get("errored", 0) == 0
    assert all(row["value"] is not None for row in result.metrics)


@pytest.mark.parametrize("name", examples())
def test_an_example_explains_itself(name: str) -> None:
    assert examples()[name].endswith(".")
    folder = ROOT / "src/assay/examples" / name
    assert "# " in (folder / "config.yaml").read_text()
    # what the wheel takes along
    assert {path.suffix for path in folder.iterdir()} <= {".yaml", ".jsonl", ".txt"}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("mine")
    with pytest.raises(UserError, match="would be overwritten"):
        init(tmp_path, example="qa")
    assert [path.name for path in tmp_path.iterdir()] == ["items.jsonl"]
    assert (tmp_path / "items.jsonl").read_text() == "mine"


def test_an_unknown_example_has_a_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        init(tmp_path, example="few_shot")
    assert "did you mean 'few-shot'?" in str(caught.value)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(assay.errors.AssayError):  # type: ignore[attr-defined]
        init(tmp_path / "file/folder", example="qa")


def test_the_command(tmp_path: Path) -> None:
    listed = CliRunner(env={"COLUMNS": "200"}).invoke(command, ["--list"])
    assert [line.split()[0] for line in listed.output.splitlines()] == list(examples())
    made = CliRunner().invoke(command, [str(tmp_path / "new"), "--example", "chat"])
    assert made.exit_code == 0
    assert f"assay run {tmp_path / 'new/config.yaml'}" in made.output
    assert isinstance(command, click.Command)


CONFIGS = [*ROOT.glob("examples/*/config.yaml"), *ROOT.glob("src/assay/examples/*/config.yaml")]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parts[-3]}-{path.parent.name}")
def test_the_schema_accepts_every_example(path: Path) -> None:
    jsonschema.validate(scalar(path.read_text()), schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(schema())))


@pytest.mark.parametrize(
    "wrong",
    [
        {"modles": ["m"]},
        {"models": 3},
        {"prompts": {"p": {"few_shot": {"nn": 3}}}},
        {"prompts": [[{"role": "usr", "content": "x"}]]},
        {"prompt_template": [{"role": "user", "content": [{"type": "sound"}]}]},
        {"num_samples": 0},
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(wrong: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema())
    with pytest.raises(UserError):
        load(
            {"models": ["demo:m"], "dataset": str(CONFIGS[0].parent / "items.jsonl"), **wrong},
            environ={},
        )
