"""`assay aggregate`: metrics from one or several folders or files of evaluations."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ConfigError, UserError
from tests.cli.shell import Shell


def write_rows(path: Path, passes: list[bool], **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "item_id": f"q{n}",
            "label": "right",
            "passed": passed,
            "score": float(passed),
            "model_name": "m",
            **more,
        }
        for n, passed in enumerate(passes)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def values(result: assay.Result, *facets: str) -> dict[Any, float]:
    return {tuple(row[facet] for facet in facets): row["value"] for row in result.metrics}


def mean_by(*facets: str) -> dict[str, Any]:
    return {"metrics": [{"name": "mean", "facets": list(facets)}]}


def test_the_command_goes_by_the_folders_config(shell: Shell) -> None:
    assert shell.run().code == 0
    before = shell.files()
    first = shell.call("aggregate", str(shell.out))
    assert first.code == 0
    assert "exact_match pass_rate 1.000" in first.words
    assert {name for name, content in shell.files().items() if before[name] != content} <= {
        "out/.lock"
    }
    shell.write("m.yaml", "metrics: [{name: mean, facets: [model_name]}]")
    result = shell.call("aggregate", str(shell.out), "-c", "m.yaml", "--json")
    assert result.events() == [result.result]
    assert [row["metric_name"] for row in shell.read("metrics.jsonl")] == ["mean"]
    missing = shell.call(
        "aggregate", str(shell.out), "-c", "m.yaml", "--set", "metrics.0.facets=[modle_name]"
    )
    assert missing.code == 2
    assert "did you mean 'model_name'?" in missing.err
    assert [row["metric_name"] for row in shell.read("metrics.jsonl")] == ["mean"], (
        "a mistake loses nothing"
    )


def test_several_together_and_apart(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "a" / "evaluation_results.jsonl", [True, True])
    second = write_rows(tmp_path / "b" / "evaluation_results.jsonl", [True, False])
    assert values(assay.aggregate([first, second], mean_by())) == {(): 0.75}
    apart = assay.aggregate([first.parent, second], mean_by("source"))
    assert values(apart, "source") == {("a",): 1.0, ("b",): 0.5}
    assert apart.folder == ""
    assert apart.notes == ["the metrics are not stored: -o FOLDER stores them"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "a",
        "b",
        *["evaluation_results.jsonl"] * 2,
    ]


def test_equal_inputs_give_equal_bytes_in_any_order(tmp_path: Path) -> None:
    paths = [
        write_rows(tmp_path / name / "rows.jsonl", [True, name == "a", False], team=name)
        for name in ("a", "b", "c")
    ]
    config = {"metrics": [{"name": "mean", "facets": ["source", "team"]}, {"name": "pass@1"}]}
    for out, given in (("x", paths), ("y", paths[::-1])):
        assay.aggregate(given, config, output_dir=str(tmp_path / out))
    assert (tmp_path / "x/metrics.jsonl").read_bytes() == (
        tmp_path / "y/metrics.jsonl"
    ).read_bytes()
    assert json.loads((tmp_path / "x/metrics.json").read_text())[0]["source"] == str(paths[0]), (
        "names would be alike"
    )


def test_unknown_fields_are_facets_and_a_field_called_source_stands(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "a.jsonl", [True], source="own", lab={"room": 7})
    second = write_rows(tmp_path / "b.jsonl", [False], lab={"room": "7"})
    assert values(
        assay.aggregate([first, second], mean_by("source", "lab.room")), "source", "lab.room"
    ) == {
        ("b", "7"): 0.0,
        ("own", 7): 1.0,
    }


def test_facets_come_from_responses_and_items_beside_the_rows(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a" / "evaluation_results.jsonl", [True, False])
    (tmp_path / "a" / "items.jsonl").write_text(
        '{"id":"q0","data":{"kind":"x"}}\n{"id":"q1","data":{"kind":"y"}}\n'
    )
    (tmp_path / "a" / "responses.jsonl").write_text(
        '{"item_id":"q0","model_name":"m","shift":1}\n{"item_id":"q1","model_name":"m","shift":2}\n'
    )
    assert values(assay.aggregate(rows, mean_by("kind", "shift")), "kind", "shift") == {
        ("x", 1): 1.0,
        ("y", 2): 0.0,
    }


def test_rows_of_a_metric_that_asks_for_them_name_their_source(tmp_path: Path) -> None:
    paths = [write_rows(tmp_path / f"{name}.jsonl", [True, True]) for name in "ab"]
    (tmp_path / "mine.py").write_text(
        "def sources(evaluation_results, facets, **params):\n"
        "    return {'value': 2.0, 'found': sorted(row['source'] for row in evaluation_results)}\n"
    )
    config = {
        "metrics": [
            {"name": "sources", "path": str(tmp_path / "mine.py"), "function_name": "sources"}
        ]
    }
    assert assay.aggregate(paths, config).metrics[0]["found"] == ["a", "a", "b", "b"]


def test_a_metric_that_failed_is_tried_again_when_asked(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", [True])
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "def flaky(evaluation_results, facets, **params):\n"
        f"    if not os.path.exists({str(tmp_path / 'ready')!r}):\n"
        "        raise ValueError('not ready')\n"
        "    return {'value': 1.0}\n"
    )
    config = {
        "metrics": [{"name": "flaky", "path": str(tmp_path / "mine.py"), "function_name": "flaky"}]
    }
    out = str(tmp_path / "out")
    assert assay.aggregate(rows, config, output_dir=out).metrics[0]["value"] is None
    (tmp_path / "ready").touch()
    assert assay.aggregate(rows, config, output_dir=out).metrics[0]["value"] is None, (
        "the work is done"
    )
    assert (
        assay.aggregate(rows, config, output_dir=out, retry_errors=True).metrics[0]["value"] == 1.0
    )


def test_metrics_of_others_are_not_overwritten(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "een" / "evaluation_results.jsonl", [True])
    (tmp_path / "een" / "metrics.json").write_text("[]")
    result = assay.aggregate(rows.parent, mean_by())
    assert result.metrics[0]["value"] == 1.0
    assert "metrics.json is not Assay's" in result.notes[0]
    assert sorted(path.name for path in rows.parent.iterdir()) == [
        "evaluation_results.jsonl",
        "metrics.json",
    ]


def test_bad_input(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", [True])
    with pytest.raises(UserError, match="given twice"):
        assay.aggregate([rows, rows], mean_by())
    with pytest.raises(UserError, match="nothing to read"):
        assay.aggregate([], mean_by())
    with pytest.raises(UserError, match="no config"):
        assay.aggregate(rows)
    with pytest.raises(ConfigError, match="no metric"):
        assay.aggregate(rows, {"evaluation_methods": ["exact_match"]})
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UserError, match="there are no evaluations"):
        assay.aggregate(tmp_path / "empty.jsonl", mean_by())
    rows.write_text(rows.read_text() + "{broken\n" + rows.read_text())
    with pytest.raises(UserError, match="not a row: Expecting") as caught:
        assay.aggregate(rows, mean_by())
    assert "line 2" in caught.value.where
    rows.write_text('{"id": "an item"}\n')
    with pytest.raises(UserError, match="without item_id"):
        assay.aggregate(rows, mean_by())


def test_items_that_belong_together(shell: Shell) -> None:
    for at, row in enumerate(shell.rows):
        row["metadata"] = {"passage": f"p{at // 2}"}
    shell.config["metrics"] = ["mean"]
    assert shell.run().code == 0
    alone = shell.read("metrics.jsonl")
    named = shell.call("aggregate", str(shell.out), "--cluster-by", "passage")
    assert named.code == 0
    assert "clusters: passage (2)" in named.out
    (row,) = shell.read("metrics.jsonl")
    assert (row["cluster_by"], row["cluster_count"], row["value"]) == (
        "passage",
        2,
        alone[0]["value"],
    )
    shell.config["cluster_by"] = "item.metadata.passage"
    assert shell.run().code == 0
    (row,) = shell.read("metrics.jsonl")
    assert (row["cluster_by"], row["cluster_count"]) == ("item.metadata.passage", 2)
    missing = shell.call("gate", str(shell.out), "--min", "0.1", "--cluster-by", "pasage")
    assert missing.code == 2
    assert "the facet 'pasage' exists in no row" in missing.err
    del shell.config["cluster_by"]
    assert shell.run().code == 0
    assert shell.read("metrics.jsonl") == alone


def test_a_cluster_that_no_item_has_is_refused_before_a_call(shell: Shell) -> None:
    shell.config["cluster_by"] = "item.metadata.passage"
    refused = shell.run()
    assert refused.code == 2
    assert "no row can have the facet 'metadata.passage'" in refused.err
    assert not (shell.out / "responses.jsonl").exists()
