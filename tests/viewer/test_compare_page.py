"""The page of two sides has what `compare` says, by facet too, and what the sides were made of without any secret."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.errors import UserError
from tests.viewer.demo import ask, demo


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    demo(folder / "base")
    prompts = {
        "short": "{{question}}\nAnswer with only the result.",
        "polite": "Please: {{question}}",
    }
    demo(folder / "next", prompt_templates=prompts, evaluation_methods=["exact_match", "contains"])
    return folder


def plain(comparison: Any) -> Any:
    """A comparison as JSON, without what differs between doors: the sides' names, the changed items."""
    value = msgspec.to_builtins(comparison)
    for pair in value["pairs"]:
        for name in ("candidate", "baseline", "flips", "partial"):
            pair.pop(name)
    for standing in value["standings"]:
        standing.pop("name")
    return json.loads(json.dumps(value))


def test_two_experiments(root: Path) -> None:
    page = ask(root, "compare", a="base", b="next")
    assert plain(page["comparison"]) == plain(
        assay.compare([root / "base", root / "next"], label="exact_match")
    )
    assert (page["label"], page["labels"], page["metric"]) == (
        "exact_match",
        ["exact_match"],
        "mean",
    )
    pair = page["comparison"]["pairs"][0]
    assert (pair["baseline"], pair["candidate"]) == ("base", "next")


def test_two_values_of_a_facet_by_another(root: Path) -> None:
    sides = {"a": "base::model_name=demo-small", "b": "base::model_name=demo-large"}
    page = ask(root, "compare", **sides, facet="kind", metric="pass@1")
    options: dict[str, Any] = {
        "facet": "model_name",
        "values": ["demo-small", "demo-large"],
        "metric": "pass@1",
    }
    assert plain(page["comparison"]) == plain(assay.compare([root / "base"], **options))
    assert [entry["value"] for entry in page["by"]] == [
        "addition",
        "capital",
        "letters",
        "percent",
        "product",
        "steps",
    ]
    for entry in page["by"]:
        same = assay.compare([root / "base"], **options, where={"kind": entry["value"]})
        assert plain(entry["comparison"]) == plain(same)
    assert "metadata.kind" in page["facets"]


def test_several_facets_are_one_side(root: Path) -> None:
    name = "base::model_name=demo-{}::prompt_template=short"
    page = ask(root, "compare", a=name.format("small"), b=name.format("large"))
    where = {"prompt_template": "short"}
    same = assay.compare(
        [root / "base"], facet="model_name", values=["demo-small", "demo-large"], where=where
    )
    assert plain(page["comparison"]) == plain(same)


def test_what_differs_between_experiments(root: Path) -> None:
    page = ask(root, "compare", a="base", b="next")
    differences = {entry["what"]: (entry["a"], entry["b"]) for entry in page["differences"]}
    assert "You are a careful assistant." in differences["prompt"][0]
    assert "Please: {{question}}" in differences["prompt"][1]
    assert differences["config.evaluation_methods.contains"][0] == "–"
    assert not {
        "data",
        "items",
        "served model",
        "config.output_dir",
        "scorer exact_match.code",
    } & set(differences)


def test_what_differs_within_one_experiment(root: Path) -> None:
    page = ask(root, "compare", a="base::prompt_template=short", b="base::prompt_template=polite")
    assert [entry["what"] for entry in page["differences"]] == ["prompt"]
    models = ask(root, "compare", a="base::model_name=demo-small", b="base::model_name=demo-large")
    assert {entry["what"] for entry in models["differences"]} == {"model", "served model"}


def test_secrets_are_never_shown(root: Path, tmp_path: Path) -> None:
    for name in ("base", "next"):
        shutil.copytree(root / name, tmp_path / name)
        file = tmp_path / name / "config.yaml"
        secret = f"sk-{name}0123456789abcdef0123"
        file.write_text(
            file.read_text()
            + f"api_key: {secret}\nheaders: {{x: {secret}}}\nother: {{deep: ['{secret}']}}\n"
        )
    page = json.dumps(ask(tmp_path, "compare", a="base", b="next"))
    assert "sk-base" not in page
    assert "sk-next" not in page


def test_unfinished_evidence_is_incomplete(root: Path, tmp_path: Path) -> None:
    for name in ("base", "next"):
        shutil.copytree(root / name, tmp_path / name)
    file = tmp_path / "next" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["evaluation"] |= {"complete": False, "planned": 10_000}
    file.write_text(json.dumps(manifest))
    pair = ask(tmp_path, "compare", a="base", b="next", label="exact_match")["comparison"]["pairs"][
        0
    ]
    assert pair["verdict"] == "incomplete"


def test_sides_that_cannot_be_compared(root: Path) -> None:
    page = ask(root, "compare", a="base", b="next", label="contains")
    assert page["comparison"] is None
    assert "has no label 'contains'" in page["notes"][0]
    with pytest.raises(UserError, match="both sides are the same"):
        ask(root, "compare", a="base", b="base")
    with pytest.raises(UserError, match="does not name a side"):
        ask(root, "compare", a="base::model", b="next")
    with pytest.raises(UserError, match="no row has model_name = 'x'"):
        ask(root, "compare", a="base::model_name=x", b="next")
    by = ask(root, "compare", a="base", b="next", facet="knid")
    assert (by["by"], "exists in no row" in by["notes"][0]) == ([], True)
