"""Sides of items that belong together: by a flag, by the experiments' own plans, and through ids that differ."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assay
from assay.analysis.compare.matching import match_items
from assay.analysis.compare.paired import find_sides, read_side, shared_cluster_by
from assay.engine.experiment.resolve import find_source
from assay.errors import UserError
from assay.store.keys import id_hash
from tests.analysis.rows import evaluation, save

PASSAGES, QUESTIONS = 12, 5


def experiment(folder: Path, seed: int = 0, prefix: str = "", **more: Any) -> Path:
    """Verdicts that are mostly the same within a passage, beside their items."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    items: list[str] = []
    for passage, easy in enumerate(random.beta(0.7, 0.5, PASSAGES).tolist()):
        for number in range(QUESTIONS):
            id, question = f"{prefix}{passage}-{number}", f"{passage}, {number}?"
            about = {"passage": passage if passage < PASSAGES - 1 else None}
            items.append(json.dumps({"id": id, "data": {"question": question}, "metadata": about}))
            rows.append(evaluation(id, bool(random.random() < easy), **more))
    save(folder, rows)
    (folder / "items.jsonl").write_text("\n".join(items) + "\n")
    return folder


def clustered(folder: Path, name: str = "item.metadata.passage") -> None:
    assay.aggregate(folder, {"name": "e", "metrics": ["mean"], "cluster_by": name})


def widths(found: Any) -> list[float]:
    return [standing.ci_high - standing.ci_low for standing in found.standings]


def test_a_side_knows_the_clusters_of_its_items(tmp_path: Path) -> None:
    side = read_side(find_source(experiment(tmp_path / "a"), "evaluation"), {})
    ids = np.array([id_hash(id) for id in ("1-0", "1-4", "2-0", "11-0", "11-1", "x")], np.uint64)
    first, same, other, *apart = side.cluster_of(ids, "item.metadata.passage").tolist()
    assert first == same != other
    assert apart == ids[3:].tolist(), "items without a passage are by themselves"
    again = read_side(find_source(experiment(tmp_path / "b", 1), "evaluation"), {})
    assert again.cluster_of(ids, "passage").tolist() == [first, same, other, *apart]


def test_items_that_are_paired_by_their_questions_keep_their_clusters(tmp_path: Path) -> None:
    paths = [experiment(tmp_path / "a"), experiment(tmp_path / "b", prefix="other ")]
    sides, (told,) = match_items(find_sides(paths, "", (), {}))
    assert "paired that ask the same" in told
    items = sides[0].columns.ids
    assert (items == sides[1].columns.ids).all()
    clusters = [side.cluster_of(items, "item.metadata.passage") for side in sides]
    assert (clusters[0] == clusters[1]).all()
    assert len(np.unique(clusters[0])) == PASSAGES - 1 + QUESTIONS


def test_compare_takes_a_name_or_that_of_the_plans(tmp_path: Path) -> None:
    paths = [experiment(tmp_path / "a"), experiment(tmp_path / "b", 1)]
    plain = assay.compare(paths)
    assert any("score alike" in note for note in plain.notes)
    named = assay.compare(paths, cluster_by="item.metadata.passage")
    assert all(
        wide > 1.2 * narrow for wide, narrow in zip(widths(named), widths(plain), strict=True)
    )
    (line,) = [note for note in named.notes if "passage" in note]
    assert line.startswith(f"clusters: item.metadata.passage ({PASSAGES - 1 + QUESTIONS}); ICC ")
    clustered(paths[0])
    assert widths(assay.compare(paths)) == widths(plain), "they do not agree"
    clustered(paths[1])
    assert assay.compare(paths).notes == named.notes
    with pytest.raises(UserError, match="exists in no row"):
        assay.compare(paths, cluster_by="pasage")


def test_facets_of_one_experiment(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "a", model_name="one")
    other = (
        experiment(tmp_path / "b", 1, model_name="two") / "evaluation_results.jsonl"
    ).read_text()
    with (folder / "evaluation_results.jsonl").open("a") as file:
        file.write(other)
    plain, named = (
        assay.compare([folder], facet="model_name", cluster_by=name) for name in ("", "passage")
    )
    assert all(
        wide > 1.2 * narrow for wide, narrow in zip(widths(named), widths(plain), strict=True)
    )


def test_what_the_plans_agree_on(tmp_path: Path) -> None:
    folders = [experiment(tmp_path / name) for name in "ab"]
    sources = [find_source(folder, "evaluation") for folder in folders]
    assert shared_cluster_by(sources) == ""
    clustered(folders[0])
    clustered(folders[1], "passage")
    sources = [find_source(folder, "evaluation") for folder in folders]
    assert [shared_cluster_by([source]) for source in sources] == [
        "item.metadata.passage",
        "passage",
    ]
    assert shared_cluster_by(sources) == ""


def test_a_gate_is_about_clusters(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "a")
    alone, named = (
        assay.gate(folder, min=0.1, cluster_by=name).checks[0] for name in ("", "passage")
    )
    assert None not in (alone.low, named.low)
    assert named.low < alone.low - 0.02  # type: ignore[operator]
    config = {"name": "e", "cluster_by": "passage", "gates": [{"metric": "mean", "min": 0.1}]}
    (tmp_path / "gates.yaml").write_text(json.dumps(config))
    assert assay.gate(folder, config=tmp_path / "gates.yaml").checks[0].low == named.low
    clustered(folder)
    assert assay.gate(folder, min=0.1).checks[0].low == named.low
