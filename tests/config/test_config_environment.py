"""`.env`, `env_vars`, `${VAR}`, `EVAL_*` and `--set`, and which of them wins."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.config import Config, environment, load, parse_override, resolved
from assay.errors import UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]
CONFIG: dict[str, Any] = {"models": ["m"], "dataset": "d.jsonl"}


def test_variables_are_expanded_and_typed(loaded: Loaded) -> None:
    config = loaded(
        """\
        models:
          - name: ${NAME}
            endpoint: http://${HOST:-localhost}:8000
            revision: ${REVISION:-}
        dataset: ${FOLDER:-.}/d.jsonl
        limit: ${LIMIT}
        resume: ${RESUME}
        timeout: ${TIMEOUT:-1e2}
        sample_params: {top_k: "${TOP}", stop: "$${NAME}"}
        """,
        environ={"NAME": "7", "LIMIT": "5", "RESUME": "no", "TOP": "3"},
    )
    (model,) = config.models
    assert (model.name, model.params["endpoint"], model.params["revision"]) == (
        "7",
        "http://localhost:8000/v1",
        "",
    )
    assert (config.limit, config.resume, config.timeout) == (5, False, 100.0)
    assert config.sample_params == {"top_k": 3, "stop": "${NAME}"}
    assert resolved(config)["sample_params"]["stop"] == "$${NAME}"


def test_a_variable_that_is_not_set(problems: Problems) -> None:
    (problem,) = problems("models: m\ndataset: d.jsonl\nname: a-${NOPE}\n")
    assert (problem.what, problem.where) == ("the variable 'NOPE' is not set", "c.yaml:3 name")
    assert problem.fix == "set it, or write ${NOPE:-default}; $${NOPE} is the text itself"


def test_a_variable_of_the_wrong_type_is_named_not_shown(problems: Problems) -> None:
    (problem,) = problems({**CONFIG, "limit": "${LIMIT}"}, environ={"LIMIT": "hush"})
    assert problem.what == "limit must be a whole number of at least 0, got the value of ${LIMIT}"


def test_dotenv_is_read_but_overrides_nothing(folder: Path) -> None:
    (folder / ".env").write_text(
        "# comment\n\nexport A=from file # why\nB='single # quoted'\nC=\"two\\nlines\" # why\nD=#none\nSET=from file\n"
    )
    (folder / "c.yaml").write_text(
        "{models: m, dataset: d.jsonl, name: '${SET} ${A}', env_vars: {A: z, E: '${B}!'}}"
    )
    environ = {"SET": "outside"}
    config = load("c.yaml", environ=environ)
    assert config.name == "outside from file"
    assert environment(config, environ) == {
        "A": "from file",
        "B": "single # quoted",
        "C": "two\nlines",
        "D": "",
        "E": "single # quoted!",
        "SET": "outside",
    }
    assert environ == {"SET": "outside"}


def test_a_dict_has_no_dotenv(folder: Path, loaded: Loaded) -> None:
    (folder / ".env").write_text("EVAL_LIMIT=1\n")
    assert loaded(CONFIG).limit is None


def test_a_bad_line_of_dotenv(folder: Path, problems: Problems) -> None:
    (folder / ".env").write_text("OK=1\nhush hush\n")
    (problem,) = problems("{models: m, dataset: d.jsonl}")
    assert (problem.what, problem.where) == ("this line is not NAME=value", f"{folder}/.env:2")


def test_env_vars_serve_expansion(loaded: Loaded) -> None:
    assert loaded({**CONFIG, "env_vars": {"X": 1, "Y": True}, "name": "${X}${Y}"}).name == "1true"


def test_eval_variables(loaded: Loaded, folder: Path) -> None:
    (folder / "other.csv").touch()
    environ = {
        "EVAL_MODE": "inference",
        "EVAL_BATCH_SIZE": "8",
        "EVAL_MAX_WORKERS": "3",
        "EVAL_TIMEOUT": "1.5",
        "EVAL_MAX_RETRIES": "0",
        "EVAL_OUTPUT_DIR": "out",
        "EVAL_LOG_LEVEL": "warning",
        "EVAL_LOG_FILE": "l.txt",
        "EVAL_RESUME": "0",
        "EVAL_DATASET": "other.csv",
        "EVAL_LIMIT": "2",
        "EVAL_SAMPLE_TEMPERATURE": "0.5",
        "EVAL_SAMPLE_NUM_SAMPLES": "4",
        "EVAL_SAMPLE_STOP": "END",
        "EVAL_SOMETHING_ELSE": "x",
    }
    config = loaded({**CONFIG, "max_workers": 9, "num_samples": 9}, environ=environ)
    assert (config.mode, config.max_concurrency, config.timeout, config.max_retries) == (
        "inference",
        3,
        1.5,
        0,
    )
    assert (config.output_dir, config.logging.level) == (str(folder / "out"), "WARNING")
    assert (config.logging.file, config.resume, config.limit) == (str(folder / "l.txt"), False, 2)
    assert (config.sample_params, config.num_samples) == ({"temperature": 0.5, "stop": "END"}, 4)
    assert config.dataset is not None
    assert (config.dataset.type, config.dataset.path) == ("csv", str(folder / "other.csv"))


def test_flags_beat_variables_beat_the_file(loaded: Loaded) -> None:
    environ = {"EVAL_TIMEOUT": "2", "EVAL_MAX_RETRIES": "2"}
    config = loaded(
        {**CONFIG, "timeout": 1, "max_retries": 1, "limit": 1},
        environ=environ,
        overrides={"timeout": 3},
    )
    assert (config.timeout, config.max_retries, config.limit) == (3.0, 2, 1)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("limit=5", ("limit", 5)),
        ("a.b = x=y", ("a.b", "x=y")),
        ("models.0.name=7b", ("models.0.name", "7b")),
        ("metrics=[mean, pass@2]", ("metrics", ["mean", "pass@2"])),
        ("limit=", ("limit", None)),
        ("a='1'", ("a", "1")),
        ("a={b: [1]}", ("a", {"b": [1]})),
        ("prompt_template=# Question: {{q}}", ("prompt_template", "# Question: {{q}}")),
        ("prompt_template=Q: {{question}}", ("prompt_template", "Q: {{question}}")),
    ],
)
def test_parse_override(text: str, pair: tuple[str, Any]) -> None:
    assert parse_override(text) == pair


@pytest.mark.parametrize("text", ["limit", "=5", "a..b=1"])
def test_an_override_without_a_key_or_a_value(text: str) -> None:
    with pytest.raises(UserError, match="sets nothing"):
        parse_override(text)


def test_overrides_reach_short_and_long_forms(loaded: Loaded) -> None:
    config = loaded(
        {
            "models": ["a", {"name": "b", "type": "demo", "config": {"skill": 0.1}}],
            "dataset": "d.jsonl",
            "prompt_template": "old {{q}}",
            "workflow": {"max_workers": 2},
            "sample_params": {"num_samples": 2},
            "evaluation_methods": [{"exact_match": {"ignore_case": True}}],
        },
        overrides={
            "models.0.endpoint": "http://h",
            "models.1.config.skill": 0.9,
            "models.1.timeout": 4,
            "models.2": "demo:c",
            "dataset.params.x": 1,
            "prompt_template": "new {{q}}",
            "workflow.max_workers": 7,
            "sample_params.num_samples": 5,
            "evaluation_methods.0.params.ignore_case": False,
            "metrics.0": "pass@3",
            "logging.level": "error",
        },
    )
    assert [model.name for model in config.models] == ["a", "b", "c"]
    assert config.models[0].params == {"endpoint": "http://h/v1"}
    assert (config.models[1].params, config.models[1].timeout) == ({"skill": 0.9}, 4.0)
    assert config.dataset is not None
    assert config.dataset.params == {"x": 1}
    assert [prompt.text for prompt in config.prompts] == ["new {{q}}"]
    assert (config.max_concurrency, config.num_samples) == (7, 5)
    assert config.evaluation_methods[0].params == {"ignore_case": False}
    assert (config.metrics[0].params, config.logging.level) == ({"k": 3}, "ERROR")


def test_problems_name_the_flag_or_the_variable(problems: Problems) -> None:
    found = problems(
        CONFIG,
        overrides={"limit": -1, "models.5.name": "x", "models.0.typ.x.y": 1, "max_workers": 0},
        environ={"EVAL_TIMEOUT": "soon", "EVAL_SAMPLE_TEMPERATURE": "9"},
    )
    assert {problem.where: problem.what for problem in found} == {
        "--set limit": "limit must be a whole number of at least 0, got -1",
        "--set models.5.name": "there is nothing to set at models.5.name",
        "--set max_workers": "max_concurrency must be a whole number of at least 1, got 0",
        "EVAL_TIMEOUT": "timeout must be a number above 0, got the value of EVAL_TIMEOUT",
        "EVAL_SAMPLE_TEMPERATURE": "temperature must be a number from 0 to 2, got 9",
    }
