"""What a model's answers and failures become in a run: rows, outcomes, or a stop that says what to do."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from assay.errors import RunFailed
from tests.support import Lab


def rows(lab: Lab, model: dict[str, Any], prompt: str) -> list[dict[str, Any]]:
    lab.config |= {
        "models": [{"name": "m", **model}],
        "prompt_templates": {"p": prompt},
        "max_retries": 0,
    }
    lab.run()
    return lab.read("responses.jsonl")


@pytest.mark.parametrize(
    ("prompt", "field", "value"),
    [
        ("logprobs", "logprobs", [{"token": "4", "logprob": -0.1, "top_logprobs": []}]),
        ("reasoning", "reasoning", "two and two"),
        ("tools", "tool_calls", [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]),
        ("refusal", "outcome", "refused"),
        ("400-filter", "outcome", "refused"),
        ("400-code", "error_kind", "permanent"),
        ("id-number", "logprobs", None),
    ],
)
def test_what_a_row_keeps(
    strange: str, tmp_path: Path, prompt: str, field: str, value: Any
) -> None:
    lab = Lab(tmp_path, items=1)
    first, second = rows(lab, {"endpoint": strange}, prompt)
    assert first[field] == second[field] == value


def test_samples_differ_by_their_seed(strange: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=1)
    lab.config["sample_params"]["seed"] = 40
    sent = [json.loads(row["response"]) for row in rows(lab, {"endpoint": strange}, "echo")]
    assert sorted(body["seed"] for body in sent) == [40, 41]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_an_unknown_model_stops_the_run_with_the_names_there_are(
    strange: str, tmp_path: Path, kind: str
) -> None:
    lab = Lab(tmp_path)
    with pytest.raises(RunFailed, match="valid: assay-demo"):
        rows(lab, {"type": kind, "endpoint": strange}, "404")
    assert lab.read("responses.jsonl") == []


def test_anthropic_and_openai_rows_are_alike(honest: str, tmp_path: Path) -> None:
    def kept(kind: str) -> dict[str, Any]:
        folder = tmp_path / kind
        folder.mkdir()
        row, _ = rows(Lab(folder, items=1), {"type": kind, "endpoint": honest}, "What is 17 * 23?")
        own = {
            "key",
            "inference_time",
            "timestamp",
            "tokens_per_second",
            "served_fingerprint",
            "metadata",
        }
        return {
            name: value
            for name, value in row.items()
            if name not in own and not name.startswith("sample_")
        }

    assert kept("openai") == kept("anthropic")


def test_a_run_with_a_server_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "assay.server", "--skill", "1.0", "--port", "{port}"]
    lab = Lab(tmp_path, items=2)
    kept = rows(
        lab,
        {"type": "llama.cpp", "command": command, "log": str(tmp_path / "log")},
        "What is {{question}}?",
    )
    assert sorted(row["response"] for row in kept) == ["1", "1", "2", "2"]
    alive = [
        child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE
    ]
    assert [child for child in alive if "children.py" in " ".join(child.cmdline())] == []
