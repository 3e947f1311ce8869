"""`compare --reference`: ours against published scores, by tests that SciPy knows too."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import assay
from assay.analysis.compare.reference import Agreement, Referenced, load_references
from assay.errors import UserError
from assay.reports.sheet import sheet
from assay.stats.intervals import wilson
from tests.analysis.rows import counted, save

Z = 1.959963984540054


def metric(value: float, items: int, **more: Any) -> dict[str, Any]:
    """A metric row with the interval of a share."""
    low, high = wilson(value * items, items)
    row: dict[str, Any] = {
        "metric_name": "of",
        "metric_type": "some.aggregate",
        "facets": ["model_name", "benchmark"],
    }
    row |= {
        "model_name": "mine",
        "benchmark": "piqa",
        "label": "acc,none",
        "value": value,
        "total_item_count": items,
    }
    return (
        row
        | {
            "ci_low": low,
            "ci_high": high,
            "ci_level": 0.95,
            "ci_method": "wilson",
            "num_fewshot": 0,
        }
        | more
    )


def experiment(folder: Path, *rows: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def published(folder: Path, *entries: dict[str, Any]) -> Path:
    usual = {
        "model": "theirs",
        "benchmark": "piqa",
        "metric": "acc",
        "value": 0.6,
        "source": "a paper",
    }
    (folder / "published.json").write_text(
        json.dumps({"references": [usual | entry for entry in entries]})
    )
    return folder / "published.json"


def against(folder: Path, row: dict[str, Any], entry: dict[str, Any], **options: Any) -> Agreement:
    compared = assay.compare(
        [experiment(folder / "own", row)], reference=published(folder, entry), **options
    )
    (agreement,) = compared.agreements
    return agreement


def test_the_test_is_welchs_where_the_number_of_items_is_known(tmp_path: Path) -> None:
    agreement = against(tmp_path, metric(0.55, 200), {"n": 300})
    own = (agreement.ci_high - agreement.ci_low) / (2 * Z)  # type: ignore[operator]
    theirs = math.sqrt(0.6 * 0.4 / 300)
    expected = stats.ttest_ind_from_stats(
        0.55, own * math.sqrt(200), 200, 0.6, theirs * math.sqrt(300), 300, equal_var=False
    )
    assert agreement.test == "two_sample"
    assert agreement.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert agreement.difference == pytest.approx(-0.05)


def test_without_it_the_published_score_is_exact(tmp_path: Path) -> None:
    agreement = against(tmp_path, metric(0.55, 200), {})
    own = (agreement.ci_high - agreement.ci_low) / (2 * Z)  # type: ignore[operator]
    assert agreement.test == "one_sample"
    assert agreement.p == pytest.approx(2 * stats.t.sf(0.05 / own, 199), rel=1e-9)
    reach = stats.t.ppf(0.975, 199) * own
    assert (agreement.low, agreement.high) == pytest.approx((-0.05 - reach, -0.05 + reach))


@pytest.mark.parametrize(
    ("value", "items", "options", "verdict"),
    [
        (0.60, 5000, {}, "agrees"),
        (0.60, 50, {}, "inconclusive"),
        (0.70, 1000, {}, "better"),
        (0.50, 1000, {}, "worse"),
        (0.61, 20000, {"margin": 0.03}, "equivalent"),
        (0.62, 1000, {"margin": 0.03}, "inconclusive"),
    ],
)
def test_each_verdict(
    tmp_path: Path, value: float, items: int, options: dict[str, Any], verdict: str
) -> None:
    assert against(tmp_path, metric(value, items), {"n": 20000}, **options).verdict == verdict


def test_less_is_better_where_the_reference_says_so(tmp_path: Path) -> None:
    entry = {"n": 5000, "lower_is_better": True}
    assert against(tmp_path, metric(0.7, 5000), entry).verdict == "worse"


def test_an_open_verdict_says_how_many_items_would_settle_it(tmp_path: Path) -> None:
    few = against(tmp_path, metric(0.6, 100), {"n": 10000})
    assert few.items_needed is not None
    fewest, most = few.items_needed
    assert most is None
    enough = against(tmp_path, metric(0.6, int(1.05 * fewest)), {"n": 10000})
    assert (few.verdict, enough.verdict) == ("inconclusive", "agrees")
    hopeless = against(tmp_path, metric(0.6, 100), {"n": 100})
    assert (hopeless.verdict, hopeless.items_needed) == ("inconclusive", None)


def test_equal_models_are_seldom_called_different(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = [metric(float(random.binomial(300, 0.6) / 300), 300) for _ in range(1000)]
    folder = experiment(tmp_path / "own", *rows)
    theirs = (random.binomial(500, 0.6, 1000) / 500).tolist()
    different = 0
    for row, value in zip(rows, theirs, strict=True):
        experiment(folder, row)
        compared = assay.compare(
            [folder], reference=published(tmp_path, {"value": value, "n": 500})
        )
        different += compared.agreements[0].verdict in ("better", "worse")
    assert different <= 70, "five in a hundred, and three standard errors of the simulation"


def test_many_comparisons_are_corrected(tmp_path: Path) -> None:
    rows = [metric(0.65, 500, model_name=f"m{n}") for n in range(20)]
    one = assay.compare([experiment(tmp_path / "one", rows[0])], reference=published(tmp_path, {}))
    many = assay.compare([experiment(tmp_path / "many", *rows)], reference=published(tmp_path, {}))
    assert one.agreements[0].verdict == "better"
    assert {agreement.verdict for agreement in many.agreements} == {"inconclusive"}
    assert many.agreements[0].p_corrected == pytest.approx(20 * one.agreements[0].p)


# ---- what is compared with what


def test_what_differs_in_the_settings_is_said(tmp_path: Path) -> None:
    entry = {"n": 1838, "shots": 5, "variant": "choices in the prompt"}
    agreement = against(tmp_path, metric(0.6, 100, modified="num_fewshot 5→0"), entry)
    assert agreement.settings == [
        "5 shots, ours 0",
        "1,838 items, ours 100",
        "ours is modified: num_fewshot 5→0",
        "theirs: choices in the prompt",
    ]
    row = metric(0.6, 1838)
    row.pop("num_fewshot")
    assert against(tmp_path, row, {"shots": 5}).settings == ["5 shots, ours not recorded"]
    assert against(tmp_path, metric(0.6, 1838), {"n": 1838, "shots": 0}).settings == []


def test_a_score_with_our_number_of_shots_goes_before_others(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "own", metric(0.6, 100))
    entries = [{"shots": shots, "value": shots / 10} for shots in (0, 5)]
    compared = assay.compare([folder], reference=published(tmp_path, *entries))
    assert [agreement.reference_value for agreement in compared.agreements] == [0.0]


@pytest.mark.parametrize(
    ("entry", "matches"),
    [
        ({"filter": "none"}, True),
        ({"filter": "strict-match"}, False),
        ({"metric": "acc_norm"}, False),
        ({"benchmark": "sciq"}, False),
        ({"metric": "of"}, True),
    ],
)
def test_benchmark_metric_and_filter_match(
    tmp_path: Path, entry: dict[str, Any], matches: bool
) -> None:
    if matches:
        assert against(tmp_path, metric(0.6, 100), entry).label == "acc,none"
    else:
        with pytest.raises(UserError, match="no metric of these experiments"):
            against(tmp_path, metric(0.6, 100), entry)


def test_of_several_models_the_one_of_the_same_name(tmp_path: Path) -> None:
    file = published(
        tmp_path, {"model": "org/Mine", "value": 0.5}, {"model": "org/other", "value": 0.9}
    )
    folder = experiment(tmp_path / "own", metric(0.6, 100))
    (agreement,) = assay.compare([folder], reference=file).agreements
    assert agreement.reference == "org/Mine"
    (agreement,) = assay.compare([folder], reference=f"{file}:other").agreements
    assert agreement.reference == "org/other"


def test_an_ordinary_experiment_is_called_like_its_folder(tmp_path: Path) -> None:
    folder = save(tmp_path / "quiz", counted(60, 100))
    (folder / "metrics.jsonl").write_text(
        json.dumps(metric(0.6, 100, metric_type="mean", label="match", facets=[], benchmark=None))
        + "\n"
    )
    entry = {"benchmark": "quiz", "metric": "match", "value": 0.6}
    (agreement,) = assay.compare([folder], reference=published(tmp_path, entry)).agreements
    assert (agreement.side, agreement.difference) == ("ours", 0)


def test_the_shipped_scores(tmp_path: Path) -> None:
    value = 0.627312  # of Pythia 160M on PIQA, without examples
    folder = experiment(tmp_path / "own", metric(value, 1838))
    compared = assay.compare([folder], reference="pythia-160m")
    (agreement,) = compared.agreements
    assert (agreement.verdict, agreement.settings, agreement.difference) == ("agrees", [], 0)
    assert "arXiv:2304.01373" in compared.notes[0]
    shown = sheet(compared).form("markdown")
    assert "| mine | piqa acc,none | 0.627 | 0.627 | +0.000 |" in shown
    assert "agrees" in shown


def test_the_shipped_file_is_whole() -> None:
    from importlib.resources import files

    whole = files("assay") / "data" / "reference_scores.json"
    entries = load_references(Path(str(whole)))
    assert len(entries.references) > 80
    assert len({(e.model, e.benchmark, e.metric, e.shots) for e in entries.references}) == len(
        entries.references
    )
    for entry in entries.references:
        assert entry.source in entries.sources
        assert entry.n is not None
        assert 0 < entry.value < 1
        # exact numbers: so many of so many items, and the error that follows from them
        if entry.stderr is not None:
            assert entry.value * entry.n == pytest.approx(round(entry.value * entry.n), abs=0.01)
            assert entry.stderr == pytest.approx(
                math.sqrt(entry.value * (1 - entry.value) / (entry.n - 1)), abs=2e-6
            )


# ---- what is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "cannot be read"),
        ('{"references": [{"model": "m"}]}', "missing required field"),
        ('{"references": [{"model": 1}]}', "Expected `str`"),
        ("{", "cannot be read"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "broken.json").write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        load_references(tmp_path / "broken.json")
    assert "broken.json" in str(caught.value)


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "own", metric(0.6, 100))
    with pytest.raises(UserError, match="no reference is called 'pythia-161m'") as caught:
        assay.compare([folder], reference="pythia-161m")
    assert "EleutherAI/pythia-160m" in str(caught.value)
    with pytest.raises(UserError, match="row by row"):
        assay.compare([folder], reference="pythia-160m", facet="model_name")
    with pytest.raises(UserError, match="cannot be read"):
        assay.compare([folder], reference=tmp_path / "nothing.json")
    bare = metric(0.6, 100, ci_low=None)
    with pytest.raises(UserError, match="neither an interval nor a standard error"):
        against(tmp_path, bare, {})
    assert against(tmp_path, bare | {"stderr": 0.02}, {"value": 0.5}).p == pytest.approx(
        2 * stats.t.sf(5, 99)
    )


def test_unfinished_rows_are_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.engine.experiment.sources import Source

    monkeypatch.setattr(Source, "partial", lambda self: "3 of 4 labels")
    assert against(tmp_path, metric(0.6, 5000), {}).verdict == "incomplete"
    agreement = against(tmp_path, metric(0.6, 5000), {}, partial=True)
    assert (agreement.verdict, agreement.partial) == ("agrees", "3 of 4 labels")
    assert isinstance(
        assay.compare([tmp_path / "own"], reference=published(tmp_path, {})), Referenced
    )
