"""Filters, sorts, searches and pages of samples against plain loops over the same rows; flips against `compare`."""

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import assay
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.index.opening import open_index
from assay.viewer.index.search import found_by
from assay.viewer.pages import page
from assay.viewer.rows import carried
from tests.viewer.generated import WORDS, Row, evaluations, experiment, responses, samples, write

FIELDS = (
    "experiment",
    "item",
    "task",
    "model",
    "sample",
    "outcome",
    "verdict",
    "passed",
    "score",
    "latency",
    "length",
)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))


def ask(root: Path, name: str, **query: Any) -> Any:
    texts = {
        key: value if isinstance(value, list) else [str(value)] for key, value in query.items()
    }
    return page(Experiments([root]), name, texts)


def shown(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in FIELDS)


def disagreements(rows: list[Row]) -> dict[str, float]:
    """By item: the largest difference between the mean scores of its tasks."""
    means: dict[str, dict[Any, list[float]]] = {}
    for row in rows:
        if row["score"] is not None:
            means.setdefault(row["item"], {}).setdefault(
                (row["experiment"], row["task"]), []
            ).append(row["score"])
    found = {row["item"]: 0.0 for row in rows}
    for item, tasks in means.items():
        values = [sum(scores) / len(scores) for scores in tasks.values()]
        found[item] = min(1.0, max(values) - min(values))
    return found


def passing_tasks(rows: list[Row], item: str) -> tuple[int, int]:
    """How many tasks of an item have samples with a verdict, and how many have one that passed."""
    own = [row for row in rows if row["item"] == item and row["passed"] is not None]
    tasks = {(row["experiment"], row["task"]) for row in own}
    return len(tasks), len({(row["experiment"], row["task"]) for row in own if row["passed"]})


def matching(rows: list[Row], query: dict[str, Any]) -> list[Row]:
    """The oracle: what a reader of the contract would write."""
    differences = disagreements(rows)
    kept: list[Row] = []
    for row in rows:
        tasks, passed = passing_tasks(rows, row["item"])
        only = {
            "": True,
            "disagree": differences[row["item"]] > 1e-9,
            "failed_by_all": tasks > 0 and passed == 0,
            "passed_by_one": passed == 1,
        }
        wanted: dict[str, set[str]] = {}
        for condition in query.get("where", []):
            name, _, value = condition.partition("=")
            wanted.setdefault(name, set()).add(value)
        text = query.get("search", "")
        if query.get("regex"):
            found = any(re.search(text, each) for each in row["texts"])
        else:
            found = any(text.lower() in each.lower() for each in row["texts"])
        holds = [
            not query.get("outcome") or (row["verdict"] or row["outcome"]) in query["outcome"],
            not query.get("passed") or row["passed"] is (query["passed"] == "passed"),
            "low" not in query or (row["score"] is not None and row["score"] >= query["low"]),
            "high" not in query or (row["score"] is not None and row["score"] <= query["high"]),
            all(row["facets"].get(name, "null") in values for name, values in wanted.items()),
            only[query.get("only", "")],
            found,
        ]
        if all(holds):
            kept.append(row)
    return ordered(kept, query, differences)


def ordered(rows: list[Row], query: dict[str, Any], differences: dict[str, float]) -> list[Row]:
    name, descending = query.get("sort", "order"), query.get("descending", False)
    if name == "order":
        return rows[::-1] if descending else rows
    keys = {"disagreement": lambda row: round(differences[row["item"]], 9)}
    key = keys.get(name, lambda row: row[name])
    there, missing = (
        [row for row in rows if key(row) is not None],
        [row for row in rows if key(row) is None],
    )
    if descending:  # equal rows stay in their order
        return sorted(there, key=key, reverse=True) + missing
    return sorted(there, key=key) + missing


QUERIES: list[dict[str, Any]] = [
    {},
    {"outcome": ["errored", "refused"]},
    {"outcome": ["scored"], "passed": "failed"},
    {"passed": "passed", "sort": "latency"},
    {"low": 0.25, "high": 0.9},
    {"where": ["model_id=small", "prompt_template=long"]},
    {"where": ["kind=k1", "kind=k2"], "sort": "length", "descending": True},
    {"where": ["extra=true"]},
    {"where": ["extra=1"]},
    {"where": ["extra=null", "task=large/short"]},
    {"where": ["metadata.model_id=large"]},
    {"only": "disagree", "sort": "disagreement", "descending": True},
    {"only": "failed_by_all", "sort": "item"},
    {"only": "passed_by_one", "sort": "item", "descending": True},
    {"sort": "score"},
    {"sort": "score", "descending": True},
    {"sort": "order", "descending": True},
    {"search": "beta"},
    {"search": 'SAY "yes"', "outcome": ["scored"]},
    {"search": "back\\slash"},
    {"search": "école"},
    {"search": "日本"},
    {"search": "🙂"},
    {"search": "b\th"},
    {"search": "what is 3?"},
    {"search": "q00"},
    {"search": r"^q00[12]$|x{200}", "regex": True},
    {"search": r"Beta|gamm. ray", "regex": True, "passed": "failed"},
]


@pytest.mark.parametrize("label", ["match", "grade"])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_samples_are_those_of_the_rows(tmp_path: Path, query: dict[str, Any], label: str) -> None:
    for seed in (1, 2):
        folder = experiment(tmp_path / f"e{seed}", seed, escaped=seed == 2)
        expected = matching(samples(folder, label, f"e{seed}"), _plain(query))
        answer = ask(tmp_path, "samples", experiment=[f"e{seed}"], label=label, limit=500, **query)
        assert [shown(row) for row in answer["rows"]] == [shown(row) for row in expected]
        assert answer["total"] == len(expected)
        assert (answer["all"], answer["label"], answer["indexed"]) == (72, label, None)


def _plain(query: dict[str, Any]) -> dict[str, Any]:
    where = [condition.removeprefix("metadata.") for condition in query.get("where", [])]
    return {**query, "where": where}


def test_experiments_are_joined_by_the_ids_of_items(tmp_path: Path) -> None:
    folders = {
        f"e{seed}": experiment(tmp_path / f"e{seed}", seed, of=10 + seed) for seed in (1, 2, 3)
    }
    rows = [row for name, folder in folders.items() for row in samples(folder, "match", name)]
    for query in QUERIES:
        expected = matching(rows, _plain(query))
        answer = ask(tmp_path, "samples", label="match", limit=500, **query)
        assert [shown(row) for row in answer["rows"]] == [shown(row) for row in expected]
        differences = disagreements(rows)
        assert [row["disagreement"] for row in answer["rows"]] == pytest.approx(
            [differences[row["item"]] for row in expected]
        )


def test_pages_are_parts_of_the_whole(tmp_path: Path) -> None:
    experiment(tmp_path / "e", 3)
    whole = ask(tmp_path, "samples", sort="latency", limit=500)["rows"]
    parts = [
        ask(tmp_path, "samples", sort="latency", limit=7, offset=at)["rows"]
        for at in range(0, 77, 7)
    ]
    assert [row for part in parts for row in part] == whole
    for wrong in (
        {"limit": 501},
        {"offset": -1},
        {"label": "macth"},
        {"where": ["knd=k1"]},
        {"where": ["kind"]},
    ):
        with pytest.raises(UserError):
            ask(tmp_path, "samples", **wrong)


def test_what_can_be_filtered_by_is_listed(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "e", 4)
    answer = ask(tmp_path, "samples")
    rows = samples(folder, "match")
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, text in row["facets"].items():
            values.setdefault(name, set()).add(text)
    assert answer["facets"] == {name: sorted(texts) for name, texts in values.items()}
    assert sorted(answer["labels"]) == ["grade", "match"]
    assert answer["label"] == answer["labels"][0]


@pytest.mark.parametrize(
    "query", [{}, {"where": ["model_id=small"]}, {"only": "disagree"}, {"sort": "score"}], ids=str
)
def test_the_matrix_has_the_means_of_cells(tmp_path: Path, query: dict[str, Any]) -> None:
    folders = {f"e{seed}": experiment(tmp_path / f"e{seed}", seed) for seed in (5, 6)}
    rows = [row for name, folder in folders.items() for row in samples(folder, "grade", name)]
    kept = matching(rows, {name: value for name, value in query.items() if name != "sort"})
    answer = ask(tmp_path, "matrix", label="grade", limit=500, **query)
    columns = [(column["experiment"], column["task"]) for column in answer["columns"]]
    assert sorted(columns) == sorted({(row["experiment"], row["task"]) for row in kept})
    by_item: dict[str, list[Row]] = {}
    for row in kept:
        by_item.setdefault(row["item"], []).append(row)
    assert answer["total"] == len(by_item)
    if query.get("sort") == "score":
        rates = [row["rate"] for row in answer["rows"] if row["rate"] is not None]
        assert rates == sorted(rates)
    else:
        assert [row["item"] for row in answer["rows"]] == list(by_item)
    for row in answer["rows"]:
        own = by_item[row["item"]]
        assert row["rate"] == _mean(own)
        for column, cell in zip(columns, row["cells"], strict=True):
            inside = [each for each in own if (each["experiment"], each["task"]) == column]
            failed = sum(each["score"] is None for each in inside)
            assert cell == (
                {"value": _mean(inside), "samples": len(inside), "failed": failed}
                if inside
                else None
            )


def _mean(rows: list[Row]) -> Any:
    scores = [row["score"] for row in rows if row["score"] is not None]
    return pytest.approx(sum(scores) / len(scores)) if scores else None


# ---- search


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(
        st.text(st.sampled_from("aAkKiI\u212a\u0130 éÉßẞ日\"\\/\n\t<'&\x01\u0307ςΣ"), max_size=12),
        min_size=1,
    ),
    needle=st.text(st.sampled_from("aAkKi \u212aéßẞ日\"\\/\n<'\u0307σ"), min_size=1, max_size=4),
    escaped=st.booleans(),
    ended=st.booleans(),
)
def test_text_is_found_however_it_is_written(
    tmp_path_factory: Any, texts: list[str], needle: str, escaped: bool, ended: bool
) -> None:
    root = tmp_path_factory.mktemp("search")
    rows = [
        {"item_id": f"n{at}", "response": text, "prompt": "", "model_name": "m"}
        for at, text in enumerate(texts)
    ]
    write(root / "e/responses.jsonl", rows, escaped=escaped)
    if not ended:
        os.truncate(root / "e/responses.jsonl", os.path.getsize(root / "e/responses.jsonl") - 1)
    (root / "e/manifest.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_STATE_DIR", str(root / "state"))
        index, _ = open_index(Experiments([root]), "e", wait=True)
    found = found_by(index, needle).tolist()
    assert found == [
        at
        for at, text in enumerate(texts)
        if needle.lower() in text.lower() or needle.lower() in f"n{at}"
    ]


def test_a_pattern_that_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.viewer.index.search._SECONDS", 0.5)
    write(
        tmp_path / "e/responses.jsonl",
        [{"item_id": "q", "response": "a" * 40 + "!", "model_name": "m"}],
    )
    (tmp_path / "e/manifest.json").write_text("{}")
    with pytest.raises(UserError, match="takes too long"):
        ask(tmp_path, "samples", search=r"(a|a)+$", regex=True)
    with pytest.raises(UserError, match="not a regular expression"):
        ask(tmp_path, "samples", search="(", regex=True)
    monkeypatch.undo()
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("assay.viewer.index.search._SECONDS", 60.0)
    assert ask(tmp_path, "samples", search=r"(a|b)+!", regex=True)["total"] == 1


def test_searches_are_kept_but_few(tmp_path: Path) -> None:
    experiment(tmp_path / "e", 7)
    index, _ = open_index(Experiments([tmp_path]), "e")
    masks = [found_by(index, word) for word in (*WORDS, *WORDS[-2:])]
    assert masks[-1] is masks[len(WORDS) - 1]
    assert len(index.searches) == 8


# ---- tags


def test_tags_are_the_last_word_of_each_person(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "e", 8)
    keyed = [json.loads(line) for line in (folder / "responses.jsonl").read_text().splitlines()]
    first, second, third = (
        {
            "item": row["item_id"],
            "sample": row["sample_index"],
            "model": row["model_name"],
            "response": row["key"],
        }
        for row in keyed[:3]
    )
    records: list[Any] = [
        {**first, "annotator": "ann", "tags": ["odd", "long"]},
        {**first, "annotator": "ann", "tags": ["odd"], "note": "why"},
        {**second, "annotator": "bob", "tags": ["odd"]},
        {**second, "annotator": "bob", "tags": []},
        {**third, "response": "", "annotator": "bob", "tags": ["vague"]},
    ]
    write(folder / "labels.jsonl", records)
    with (folder / "labels.jsonl").open("a") as file:
        file.write('{"item": 5}\nnot JSON\n')
    answer = ask(tmp_path, "samples")
    assert answer["tags"] == ["odd", "vague"]
    assert [row["key"] for row in ask(tmp_path, "samples", tag=["odd"])["rows"]] == [
        keyed[0]["key"]
    ]
    vague = ask(tmp_path, "samples", tag=["vague"])["rows"]
    assert {(row["item"], row["sample"], row["model"]) for row in vague} == {
        (third["item"], third["sample"], third["model"])
    }
    traced = ask(tmp_path, "sample", item=first["item"])["experiments"][0]["tags"]
    assert {"annotator": "ann", "tag": "odd", "note": "why"} in traced


# ---- flips


@pytest.mark.parametrize("label", ["match", "grade"])
def test_flips_are_those_of_compare(tmp_path: Path, label: str) -> None:
    folders = [experiment(tmp_path / name, seed, of=30) for name, seed in (("a", 11), ("b", 12))]
    pair = assay.compare(folders, label=label, flips=1000).pairs[0]
    answer = ask(tmp_path, "flips", a="a", b="b", label=label, limit=500)
    assert (answer["gained"], answer["lost"]) == (pair.gained, pair.lost)
    assert answer["total"] == pair.gained + pair.lost > 0
    expected = [(flip.item_id, flip.baseline, flip.candidate) for flip in pair.flips]
    assert [
        (row["item"], row["a"]["value"], row["b"]["value"]) for row in answer["rows"]
    ] == expected
    answers = [(flip.baseline_answer or "", flip.candidate_answer or "") for flip in pair.flips]
    plain = [(_beginning(first), _beginning(second)) for first, second in answers]
    assert [(row["a"]["answer"], row["b"]["answer"]) for row in answer["rows"]] == plain
    assert all(
        row["direction"] == ("gained" if row["b"]["value"] > row["a"]["value"] else "lost")
        for row in answer["rows"]
    )
    lost = ask(tmp_path, "flips", a="a", b="b", label=label, direction="lost", limit=2, offset=1)
    assert lost["rows"] == [row for row in answer["rows"] if row["direction"] == "lost"][1:3]
    assert lost["total"] == pair.lost


def _beginning(text: str) -> str:
    from assay.text.plain import plain

    return plain(text[:200])


def test_flips_within_an_experiment_are_those_of_its_facet(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "e", 13, of=30)
    pair = assay.compare(
        [folder], facet="model_id", values=["small", "large"], label="match"
    ).pairs[0]
    answer = ask(tmp_path, "flips", a="e::model_id=small", b="e::model_id=large", label="match")
    assert (answer["gained"], answer["lost"]) == (pair.gained, pair.lost)
    both = [f"e::model_id={model}::model_name={model}" for model in ("small", "large")]
    assert ask(tmp_path, "flips", a=both[0], b=both[1], label="match")["rows"] == answer["rows"]
    for wrong in (
        {"a": "e::model_id", "b": "e"},
        {"a": "e::model_id=medium", "b": "e"},
        {"a": "x", "b": "e"},
    ):
        with pytest.raises(UserError):
            ask(tmp_path, "flips", **wrong, label="match")


# ---- what a report carries


def test_the_items_that_failed_most_are_carried_first(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "e", 14)
    rows = list(carried(Experiments([tmp_path]), ["e"]))
    by_label = {label: samples(folder, label, "e") for label in ("match", "grade")}
    failed = [
        row["outcome"] != "ok"
        or any(
            own[at]["verdict"] not in ("", "scored") or own[at]["passed"] is False
            for own in by_label.values()
        )
        for at, row in enumerate(by_label["match"])
    ]
    owners = [row["item"] for row in by_label["match"]]
    share = {
        item: np.mean([bad for bad, owner in zip(failed, owners, strict=True) if owner == item])
        for item in owners
    }
    order = sorted(
        range(len(failed)),
        key=lambda at: (-share[owners[at]], owners.index(owners[at]), not failed[at]),
    )
    names = ("item", "task", "model", "sample", "outcome", "latency", "length", "facets")
    assert [[row[name] for name in names] for row in rows] == [
        [by_label["match"][at][name] for name in names] for at in order
    ]
    for row, at in zip(rows, order, strict=True):
        for label, own in by_label.items():
            verdict = {name: own[at][name] for name in ("verdict", "passed", "score")}
            assert (
                row["labels"].get(label, {"verdict": "", "passed": None, "score": None}) == verdict
            )
        assert row["text"].endswith(by_label["match"][at]["texts"][2])
    for most, whole in ((5, 5), (13, 12)):  # an item has six rows
        assert list(carried(Experiments([tmp_path]), ["e"], most)) == rows[:whole]


def test_a_failure_without_a_label_counts_under_all_labels_of_its_scorer(tmp_path: Path) -> None:
    rows = responses(15, 4)
    judged = evaluations(rows, 16, ("precise", "brief"))
    chance = random.Random(17)
    for entry in judged:
        entry["scorer"] = "judge"
    lost = {row["key"] for row in rows if chance.random() < 0.3}
    kept = [entry for entry in judged if entry["responses"][0] not in lost]
    failed = [
        {
            "item_id": row["item_id"],
            "sample_index": row["sample_index"],
            "model_name": row["model_name"],
            "label": "judge",
        }
        | {"scorer": "judge", "outcome": "errored", "responses": [row["key"]], "error": "no server"}
        for row in rows
        if row["key"] in lost
    ]
    write(tmp_path / "e/responses.jsonl", rows)
    write(tmp_path / "e/evaluation_results.jsonl", [*kept, *failed])
    (tmp_path / "e/manifest.json").write_text("{}")
    for label in ("precise", "brief"):
        answer = ask(tmp_path, "samples", label=label, outcome=["errored"], limit=500)
        keys = {row["key"] for row in answer["rows"]}
        assert lost <= keys
        assert sorted(answer["labels"]) == ["brief", "precise"]


def test_lines_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    assay.run(
        dataset=[{"id": f"i{n}", "question": f"{n} + 1", "answer": str(n + 1)} for n in range(5)],
        models=["demo:small"],
        prompts={"short": "{{question}}"},
        scorers=[{"name": "exact_match", "params": {"expected": "answer"}}],
        output_dir=str(tmp_path / "out"),
    )
    rows = tmp_path / "out" / "responses.jsonl"
    assert page(Experiments([tmp_path]), "samples", {})["left_out"] == 0
    with rows.open("ab") as file:
        file.write(b'not a row\n{"item_id":"i9"')
    shown = page(Experiments([tmp_path]), "samples", {})
    assert (shown["all"], shown["left_out"]) == (5, 1)  # half a line may become one
