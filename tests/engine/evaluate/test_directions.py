"""What scorers and configs declare of scores: it reaches every number, and changes no row, key or identity."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay import registry
from assay.analysis.compare.compare import compare
from assay.analysis.compare.gate import gate
from assay.config import load
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.bind import BoundScorer, bind_scorer
from assay.engine.evaluate.directions import Directions, checked_scale
from assay.engine.evaluate.evaluate import scorer_plan
from assay.engine.experiment.bind import bind_metrics, bind_scorers
from assay.engine.experiment.existing import evaluate
from assay.errors import ConfigError, UserError
from assay.interfaces import Store
from assay.records import Manifest
from assay.store.seal import seal
from assay.store.stores import FlatStore
from assay.threads import run_blocking
from tests.analysis.rows import rows_of, save

CALLS: list[str] = []


def rating(item: Any, response: Any) -> float:
    CALLS.append(item.id)
    return 5.0


def declared(function: Any = rating, **marks: Any) -> BoundScorer:
    return bind_scorer(registry.scorer(name="rating", **marks)(function))


@pytest.fixture(autouse=True)
def _forget() -> Any:
    CALLS.clear()
    yield
    for plug_ins, name in (
        (registry.scorer, "rating"),
        (registry.scorer, "stars"),
        (registry.metric, "own"),
    ):
        plug_ins._found.pop(name, None)
    if hasattr(rating, "__assay__"):
        del rating.__assay__


@pytest.fixture
def store() -> Store:
    store = assay.MemoryStore()
    rows = [{"id": f"q{number}", "data": "x", "ground_truth": "x"} for number in range(12)]
    assay.DatasetRepository(store).create(rows, name="d", id="d")
    assay.Runner(store).run("d", [assay.function_task(str.upper, name="upper")], id="r")
    return store


# ---- who declares it


def test_scales_of_built_in_scorers() -> None:
    """Where a manifest does not say, as in older ones, the plug-in does."""
    scales = Directions([])
    assert scales.scale(["wer"]) == scales.scale(["cer", "ter"]) == (0, None)
    assert scales.scale(["text_likelihood"]) == (None, 0)
    assert scales.scale(["exact_match"]) is scales.scale(["unknown"]) is scales.scale([]) is None
    assert scales.scale(["wer", "exact_match"]) is None


def test_a_plan_says_what_the_name_does_not() -> None:
    """So the plans of stored evaluations with built-in scorers stay what they are."""
    wer = registry.scorer.get("wer")
    assert bind_scorer(wer).declared == {}
    assert bind_scorer(wer, name="mine").declared["scale"] == (0, None)
    bound = declared(scale=(1, 5))
    manifest = Manifest(
        kind="evaluation", id="e", plan={"scorers": [scorer_plan(bound) | bound.declared]}
    )
    read = msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)
    assert Directions([read]).scale(["rating"]) == (1, 5)


@pytest.mark.parametrize(
    "scale", [[5, 1], [1, 1], [1], "1-5", [0, float("inf")], [float("nan"), 1], [True, 5], 5]
)
def test_what_is_not_a_scale(scale: Any) -> None:
    with pytest.raises(UserError, match="is not a scale"):
        checked_scale(scale)
    with pytest.raises(UserError, match="is not a scale"):
        declared(scale=scale)


def test_a_config_wins(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from assay import scorer, metric\n"
        "@scorer(scale=(0, 10), lower_is_better=True)\ndef stars(item, response): return 1.0\n"
        "@metric(scale=(0, 10))\ndef own(group): return float(group.score.mean())\n"
    )

    def config(method: dict[str, Any], metric: dict[str, Any]) -> Any:
        return load(
            {
                "evaluation_methods": [{"name": f"{file}:stars", **method}],
                "metrics": [{"name": f"{file}:own", **metric}],
                "models": ["demo:small"],
                "dataset": str(_items(tmp_path)),
                "output_dir": str(tmp_path / "out"),
            },
            environ={},
        )

    plain = config({}, {})
    (scorer,), (metric,) = bind_scorers(plain, {}), bind_metrics(plain)
    assert scorer.declared["scale"] == metric.scale == (0, 10)
    assert scorer_plan(scorer)["lower_is_better"] is True
    told = config({"scale": [1, 5], "lower_is_better": False}, {"scale": [None, 5]})
    (other,), (changed,) = bind_scorers(told, {}), bind_metrics(told)
    assert scorer_plan(other) == scorer_plan(scorer)
    assert other.declared == {"scale": (1, 5), "lower_is_better": False}
    assert changed.scale == (None, 5)
    assert other.identity == scorer.identity
    manifest = Manifest(
        kind="evaluation", id="e", plan={"scorers": [scorer_plan(other) | other.declared]}
    )
    assert not Directions([manifest]).lower(["stars"])
    assert Directions([manifest]).scale(["stars"]) == (1, 5)
    # a metric's plan says it only where it is not the function's own: others keep their digests
    assert "scale" not in metric.plan()
    assert changed.plan()["scale"] == (None, 5)
    with pytest.raises(ConfigError, match=r"(?s)\[5.0, 1.0\] is not a scale"):
        bind_metrics(config({}, {"scale": [5, 1]}))
    with pytest.raises(ConfigError, match=r"(?s)is not a scale.*evaluation_methods\[0\]"):
        bind_scorers(config({"scale": [1, 2, 3]}, {}), {})


def _items(folder: Path) -> Path:
    file = folder / "items.jsonl"
    file.write_text('{"id": "q", "data": "x", "ground_truth": "x"}\n')
    return file


# ---- what it changes, and what not


def test_no_label_is_made_again(store: Store) -> None:
    """The evaluation has the same id and rows with and without a scale; only its numbers change."""
    evaluator, bound = assay.Evaluator(store), bind_scorer(rating)
    first = evaluator.evaluate(["r"], [bound])
    (row,) = assay.Aggregator(store).aggregate([first.id], [bind_metric(type="mean")], id="a")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (5.0, None, None)
    assert "no `scale` says" in row["ci_method"]
    before = [line for _, line in store.log("evaluation", first.id).scan()]
    bound.declared = {"scale": (1.0, 5.0)}
    second = evaluator.evaluate(["r"], [bound])
    assert (second.id, len(CALLS)) == (first.id, 12)
    assert [line for _, line in store.log("evaluation", first.id).scan()] == before
    assert second.plan["scorers"][0]["scale"] in ((1.0, 5.0), [1.0, 5.0])
    (row,) = assay.Aggregator(store).aggregate([first.id], [bind_metric(type="mean")], id="a")
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == (
        pytest.approx(1 + 4 * 0.757506),
        5.0,
        "scaled_wilson",
    )
    evaluator.evaluate(["r"], [bound])
    assert len(CALLS) == 12


def test_a_config_adds_it_to_stored_labels(tmp_path: Path) -> None:
    """Through the command's own way: the folder's labels stay, its metrics are made anew."""
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "def stars(item, response):\n"
        f"    with open({str(tmp_path / 'calls')!r}, 'a') as file: file.write('.')\n"
        "    return 5\n"
    )
    answers = [
        {"item_id": f"q{number}", "response": "x", "model_name": "m", "data": "x"}
        for number in range(12)
    ]
    (tmp_path / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (tmp_path / "items.jsonl").write_text(
        "".join(
            json.dumps({"id": f"q{n}", "data": "x", "ground_truth": "x"}) + "\n" for n in range(12)
        )
    )
    method: dict[str, Any] = {"name": "stars", "path": str(tmp_path / "mine.py")}
    seen: list[Any] = []
    for scale in (None, [1, 5]):
        config = {
            "name": "e",
            "dataset": str(tmp_path / "items.jsonl"),
            "evaluation_methods": [{**method, **({"scale": scale} if scale else {})}],
            "metrics": ["mean"],
            "output_dir": str(tmp_path / "out"),
        }
        made = evaluate(tmp_path / "responses.jsonl", config, output_dir=str(tmp_path / "out"))
        result = run_blocking(made.run)
        seen.append((result.metrics[0]["value"], result.metrics[0]["ci_low"]))
    assert seen == [(5.0, None), (5.0, pytest.approx(4.030, abs=1e-3))]
    assert (tmp_path / "calls").read_text() == "." * 12
    checks = gate(tmp_path / "out", metric="mean", label="stars", min=3.5).checks
    assert [check.outcome for check in checks] == ["passed"]


def test_lower_is_better_in_a_config(tmp_path: Path) -> None:
    """Of a method whose function does not say it."""
    low, high = (
        save(tmp_path / name, rows_of({f"q{n}": level + n / 100 for n in range(40)}))
        for name, level in (("low", 0.1), ("high", 0.5))
    )
    assert compare([low, high]).pairs[0].verdict == "better"
    entry = {"name": "match", "lower_is_better": True}
    told = Manifest(kind="evaluation", id="e", complete=True, plan={"scorers": [entry]})
    for folder in (low, high):
        store = FlatStore(folder)
        manifest = msgspec.structs.replace(told, id=store.id)
        seal(manifest, store.log("evaluation", store.id))
        store.put_manifest(manifest)
    assert compare([low, high]).pairs[0].verdict == "worse"


def test_imported_scores_have_the_metrics_scale(tmp_path: Path) -> None:
    """Nobody knows the scorer of a file's rows: the config's metric says what their ends are."""
    folder = save(tmp_path / "e", rows_of({f"q{number}": 5.0 for number in range(20)}))
    metric: dict[str, Any] = {"name": "stars", "type": "mean"}
    outcomes: list[str] = []
    for scale in (None, [1, 5]):
        config = load({"metrics": [{**metric, **({"scale": scale} if scale else {})}]}, need="gate")
        (check,) = gate(folder, config=config, metric="stars", min=4).checks
        outcomes.append(check.outcome)
    assert outcomes == ["inconclusive", "passed"]
