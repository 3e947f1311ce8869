"""A resolved config is the same config, whatever was written; and the schema knows every key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from assay.config import Config, load, resolved, schema, to_yaml
from assay.config.environment import names_secret

Loaded = Callable[..., Config]

names = st.text(min_size=1, max_size=6).filter(lambda name: ":" not in name)
# a literal under such a name is refused
keys = st.text(max_size=5).filter(lambda name: not names_secret((name,)))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(keys, children, max_size=2),
    max_leaves=5,
)
params = st.dictionaries(
    st.sampled_from(["a", "b", "x_1"]), values | st.sampled_from(["$${A}", "$$${A}"]), max_size=2
)
roles = st.sampled_from(["system", "user", "assistant"])
messages = st.lists(
    st.fixed_dictionaries({"role": roles, "content": st.text()}), min_size=1, max_size=2
)
prompt = st.one_of(
    st.text(min_size=1, max_size=9).filter(
        lambda text: text not in {".", "d.jsonl"} and "/" not in text
    ),
    messages,
)
limits = {
    "timeout": st.floats(0.1, 9),
    "max_retries": st.integers(0, 3),
    "requests_per_minute": st.integers(1, 9),
}
models = st.one_of(
    names.map(lambda name: f"demo:{name}"),
    names,
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "type": st.sampled_from(["demo", "openai"]),
            "config": params,
            "skill": st.floats(0, 1),
            "endpoint": st.sampled_from(["http://h", "https://h/v1", "http://h/v2/x/"]),
            "api_key": st.sampled_from(["${K}", None, "none"]),
            "inference": st.fixed_dictionaries(
                {}, optional={"temperature": st.floats(0, 2), "z": values}
            ),
            **limits,
        },
    ),
)
scorers = st.sampled_from(["exact_match", "contains"])
methods = st.one_of(
    scorers,
    st.builds(lambda name, given: {name: given}, scorers, st.none() | params),
    st.fixed_dictionaries(
        {"name": names, "type": scorers}, optional={"params": params, "timeout": st.floats(1, 9)}
    ),
)
metric_names = st.sampled_from(["mean", "pass_rate", "pass@1", "pass@8"])
metrics = st.one_of(
    metric_names,
    st.fixed_dictionaries(
        {"name": metric_names},
        optional={
            "facets": st.lists(names, max_size=2) | names,
            "labels": st.lists(names, max_size=2)
            | st.fixed_dictionaries({"exclude": st.lists(names)}),
            "on_error": st.sampled_from(["wrong", "exclude", None]),
        },
    ),
)


def _label(entry: Any) -> str:
    return (
        str(entry.get("name") or next(iter(entry)))
        if isinstance(entry, dict)
        else str(entry).removeprefix("demo:")
    )


configs = st.fixed_dictionaries(
    {
        "models": st.lists(models, min_size=1, max_size=3, unique_by=_label),
        "dataset": st.just("d.jsonl"),
    },
    optional={
        "name": names,
        "evaluation_methods": st.lists(methods, max_size=2, unique_by=_label),
        "metrics": st.lists(metrics, max_size=3),
        "prompt_templates": st.one_of(
            st.lists(prompt, max_size=3, unique_by=str),
            st.dictionaries(names, prompt, max_size=2),
        ),
        "sample_params": st.fixed_dictionaries(
            {}, optional={"num_samples": st.integers(1, 9), "x": values}
        ),
        "limit": st.none() | st.integers(0, 9),
        "workflow": st.fixed_dictionaries(
            {}, optional={"mode": st.just("full"), "max_workers": st.integers(1, 9)}
        ),
        "logging": st.sampled_from(["info", {"level": "DEBUG", "file": "x.log"}]),
        "env_vars": st.dictionaries(
            st.sampled_from(["A", "B"]), st.integers() | st.booleans() | st.text(max_size=5)
        ),
        "policy": st.just({"on_error": "wrong"}),
        "ci_level": st.floats(0.5, 0.99),
        "output_dir": st.just("out"),
    },
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
    deadline=None,
)
@given(config=configs)
def test_loading_a_resolved_config_changes_nothing(folder: Path, config: dict[str, Any]) -> None:
    first = load(config, environ={})
    written = resolved(first)
    assert load(written, environ={}) == first
    (folder / "again.yaml").write_text(to_yaml(written))
    assert resolved(load("again.yaml", environ={})) == written
    (folder / "again.json").write_text(json.dumps(written))
    assert resolved(load("again.json", environ={})) == written


def test_a_resolved_config_needs_no_template_file(loaded: Loaded, folder: Path) -> None:
    (folder / "t.txt").write_text("Q: {{question}}")
    config = loaded({"models": "m", "dataset": "d.jsonl", "prompt_template": "t.txt"})
    (folder / "t.txt").unlink()
    assert loaded(resolved(config)) == config


def test_a_resolved_config_works_from_elsewhere(
    loaded: Loaded, folder: Path, monkeypatch: Any
) -> None:
    (folder / "my.py").touch()
    config = loaded(
        {
            "models": "my.py:f",
            "dataset": "d.jsonl",
            "evaluation_methods": "my.py:f",
            "logging": {"file": "x"},
            "tasks": "my.py:f",
        }
    )
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert resolved(loaded(resolved(config))) == resolved(config)


def test_the_schema_names_every_key() -> None:
    described = schema()
    json.dumps(described)
    assert described["properties"].keys() == set(Config.__struct_fields__) - {
        "source",
        "base",
        "objects",
    } | {
        "prompt_template",
        "eval_prompt_template",
        "prompt_templates",
        "workflow",
        "max_workers",
        "batch_size",
        "save_intermediate",
        "resume_from",
    }
    assert described["properties"]["workflow"]["properties"].keys() == {
        "mode",
        "max_workers",
        "batch_size",
    }
    assert described["additionalProperties"] is False
    references = set(_references(described))
    assert references
    assert references <= {f"#/$defs/{name}" for name in described["$defs"]}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        here = [value["$ref"]] if "$ref" in value else []
        return here + [found for part in value.values() for found in _references(part)]
    return (
        [found for part in value for found in _references(part)] if isinstance(value, list) else []
    )


def test_the_schema_file_is_up_to_date() -> None:
    import subprocess
    import sys

    # in a process of its own: other tests register plug-ins here, and their names are in the schema
    program = "from tools.config_schema import text; print(text(), end='')"
    root = Path(__file__).parents[2]
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    ).stdout
    stored = root / "src/assay/data/config.schema.json"
    assert stored.read_text(encoding="utf-8") == made, "run python -m tools.config_schema"
