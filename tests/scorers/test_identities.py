"""The identity of every built-in, as rows on disk have it: an identity that changes makes users pay again.

`python -m tests.scorers.test_identities` writes the golden file. A changed line needs a reason: a new version number.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from assay import registry
from assay.engine.evaluate.bind import bind_scorer, is_pairwise

GOLDEN = Path(__file__).parent / "golden" / "identities.json"
NEEDED: dict[str, dict[str, Any]] = {
    "bertscore": {"model": "/nowhere"},
    "code_tests": {"allow_code": True},
    "embedding_similarity": {"model": "/nowhere"},
    "judge_rubric": {"criteria": {"clear": "It is clear."}},
    "length_check": {"min_length": 1},
}
SETTINGS: dict[str, Any] = {
    "threshold": 0.75,
    "expected": "answer",
    "strip_reasoning": True,
    "response_field": "a.b",
    "normalize": "squad",
    "case_sensitive": False,
    "strip_whitespace": False,
    "stemming": True,
    "repeats": 3,
    "rule": "mean",
    "tries": 4,
    "temperature": None,
    "params": {"max_tokens": 20},
    "structured": "never",
    "documents": "item.data.context",
    "k": 3,
}
MODELS: dict[str, dict[str, Any]] = {
    "demo": {},
    "openai": {
        "endpoint": "http://localhost:1/v1",
        "model_name": "m",
        "revision": "r",
        "extra_body": {"a": 1},
    },
    "anthropic": {"model_name": "m", "api_key": "k"},
    "vllm": {"model_path": "org/m", "revision": "r", "api": "completions"},
    "llama.cpp": {"model_path": "m.gguf", "command": "serve {port}"},
}


def identities() -> dict[str, Any]:
    models = {"judge": registry.model.get("demo")("judge")}
    found: dict[str, Any] = {}
    for name in registry.scorer.names():
        function = registry.scorer.get(name)
        if not function.__module__.startswith("assay.scorers.") or is_pairwise(function):
            continue
        needed = NEEDED.get(name, {})
        more = {key: SETTINGS[key] for key in registry.parameters(function) if key in SETTINGS}
        for case, params in (("plain", needed), ("set", {**more, **needed})):
            marks: dict[str, Any] = function.__assay__  # type: ignore[attr-defined]
            # models that are not installed are no identity
            check, marks["check"] = (marks.get("check"), None)
            try:
                bound = bind_scorer(function, params=params, models=models)
            finally:
                marks["check"] = check
            found[f"scorer {name} {case}"] = bound.identity.hex()
    for name, params in MODELS.items():
        found[f"model {name}"] = dict(registry.model.get(name)("m", **params).identity)
    return found


def signatures() -> dict[str, Any]:
    """The parameters of every built-in with their defaults: what a config may write."""
    found: dict[str, Any] = {}
    for kind in ("scorer", "metric", "model", "dataset"):
        known: registry.Registry = getattr(registry, kind)
        for name in known.names():
            function = known.get(name)
            if function.__module__.startswith(f"{known.package}."):
                parameters = registry.parameters(function).values()
                found[f"{kind} {name}"] = {
                    p.name: "" if p.default is p.empty else repr(p.default) for p in parameters
                }
    return found


def test_identities_are_those_of_earlier_versions() -> None:
    golden = json.loads(GOLDEN.read_text())["identities"]
    found = identities()
    for name, identity in golden.items():
        assert found[name] == identity, name


@pytest.mark.parametrize("name", sorted(signatures()))
def test_parameters_and_defaults_are_those_of_earlier_versions(name: str) -> None:
    golden = json.loads(GOLDEN.read_text())["signatures"]
    assert signatures()[name] == golden.get(name, signatures()[name])


if __name__ == "__main__":
    GOLDEN.write_text(
        json.dumps({"identities": identities(), "signatures": signatures()}, indent=1) + "\n"
    )
