"""SyGra's unit metrics as scorers of ordinary configs (`sygra.exact_match` …), and `sygra.unit_result`, which reads the
result of a graph's own unit metric out of its output.

Keys name fields of the ground truth (golden) and of the JSON in the answer (predicted). Both sides are kept in
`detailed_results`, where the metrics of labels find them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from assay.formats.sygra.metrics import UnitMetricResult, unit
from assay.formats.sygra.metrics.unit import DIRECTIONS, Share, alike, equal, same_direction
from assay.formats.sygra.types import Config, Row
from assay.scorers.within_box import within_box
from assay.sdk import Item, Response, Score, as_object, scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted

ID = "id\x1f"


@scorer(name="sygra.unit_result", reads="ground_truth", version=1)
def unit_result(
    item: Item,
    response: Response,
    *,
    column: str,
    metadata: Mapping[str, str] | None = None,
    processor: str = "",
) -> Score | list[Score]:
    """Return what a unit metric of the graph found: a column of its output record. A record without
    it has no label.

    Parameters:
    column: the field of the output record that has the unit metric's result
    metadata: what is copied into the result's metadata: its name there, and the field of the record
    processor: the post-processor that made the records; the graph itself if empty
    """
    record: Any = response.output
    stored: Any = as_object(record).get(column)
    if not isinstance(stored, dict) or response.metadata.get("processor", "") != processor:
        return []
    result = result_of(stored, record, metadata or {})
    details: Row = {
        "predicted": result.predicted,
        "expected": result.golden,
        "metadata": result.metadata,
    }
    problem = problem_of(result.metadata, record)
    if problem not in (None, f"{ID}{item.id}"):
        details["problem"] = problem
    return Score(passed=bool(result.correct), score=float(bool(result.correct)), details=details)


def result_of(stored: Config, record: Config, copied: Mapping[str, str]) -> UnitMetricResult:
    """The result in a record's column, with the fields that are copied into its metadata."""
    result = UnitMetricResult.from_dict(stored)
    if copied:
        more = {name: record.get(source, "unknown") for name, source in copied.items()}
        result.metadata = {**result.metadata, **more}
    return result


def problem_of(metadata: Config, record: Config) -> str | None:
    """Return what a record is an attempt at: a mission's step, else its id; None if it says
    neither."""
    mission, step = metadata.get("mission_id"), metadata.get("step_id")
    if mission is not None or step is not None:
        return f"{mission}\x1f{step}"
    return None if record.get("id") is None else f"{ID}{record['id']}"


def _as_scorer(kind: type[unit.BuiltIn]) -> Callable[[Callable[..., Score]], Callable[..., Score]]:
    """Register a scorer under the name of a unit metric, with the parameters of that."""
    return scorer(
        name=f"sygra.{kind.about.name}", reads="ground_truth", params=kind.parameters, version=1
    )


@_as_scorer(unit.ExactMatchMetric)
def exact_match(
    item: Item,
    response: Response,
    *,
    golden_key: str | None = None,
    predicted_key: str | None = None,
    case_sensitive: bool = False,
    normalize_whitespace: bool = True,
) -> Score:
    """The answer equals an accepted one; case and runs of whitespace do not count.

    Parameters:
    golden_key: the field of the ground truth that has the accepted answers
    predicted_key: the field of the JSON in the answer; all of the answer if null
    """
    judge = partial(equal, case_sensitive=case_sensitive, normalize_whitespace=normalize_whitespace)
    return _texts(item, response, golden_key, predicted_key, judge, threshold=1.0)


@_as_scorer(unit.FuzzyMatchMetric)
def fuzzy_match(
    item: Item,
    response: Response,
    *,
    golden_key: str | None = None,
    predicted_key: str | None = None,
    threshold: Share = 0.8,
    case_sensitive: bool = False,
) -> Score:
    """The answer is alike to an accepted one, by their common blocks.

    Parameters:
    golden_key: the field of the ground truth that has the accepted answers
    predicted_key: the field of the JSON in the answer; all of the answer if null
    """
    judge = partial(alike, case_sensitive=case_sensitive)
    return _texts(item, response, golden_key, predicted_key, judge, threshold=threshold)


@_as_scorer(unit.TypedValueMatchMetric)
def typed_value_match(item: Item, response: Response, **params: Any) -> Score:
    """The right text was typed, or one that is alike."""
    chosen: Any = unit.TypedValueMatchMetric.parameters(**params)
    keys = chosen.golden_text_key, chosen.predicted_text_key
    return _texts(item, response, *keys, alike, threshold=chosen.fuzzy_match_threshold)


def _texts(
    item: Item,
    response: Response,
    golden_key: str | None,
    predicted_key: str | None,
    judge: Callable[[str, str], float],
    threshold: float,
) -> Score:
    """The best over the accepted answers."""
    expected = accepted(item.ground_truth, golden_key)
    try:
        predicted = answer_of(response, predicted_key)
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    best = float(max(judge(golden, predicted) for golden in expected))
    return Score(
        passed=best >= threshold,
        score=best,
        details={"predicted": predicted, "expected": expected[0]},
    )


@_as_scorer(unit.ActionWithinBboxMetric)
def action_within_bbox(item: Item, response: Response, **params: Any) -> Score:
    """The point of an action lies in the expected box."""
    chosen: Any = unit.ActionWithinBboxMetric.parameters(**params)
    point = {"x": chosen.predicted_x_key, "y": chosen.predicted_y_key}
    return within_box(item, response, expected=chosen.golden_bbox_key, **point)


@_as_scorer(unit.ScrollDirectionMetric)
def scroll_direction(item: Item, response: Response, **params: Any) -> Score:
    """The direction is the expected one; it is `up`, `down`, `left` or `right`."""
    chosen: Any = unit.ScrollDirectionMetric.parameters(**params)
    expected = [
        text
        for text in accepted(item.ground_truth, chosen.golden_direction_key)
        if text in DIRECTIONS
    ]
    if not expected:
        raise LookupError(f"the expected direction is none of {', '.join(DIRECTIONS)}")
    try:
        passed = same_direction(expected[0], answer_of(response, chosen.predicted_direction_key))
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    return Score(passed=passed, score=float(passed))


@_as_scorer(unit.ScrollAmountMetric)
def scroll_amount(item: Item, response: Response, **params: Any) -> Score:
    """The amount differs from the expected one by few percent, or by little where 0 is expected."""
    from assay.scorers.numeric_match import numeric_match

    chosen: Any = unit.ScrollAmountMetric.parameters(**params)
    return numeric_match(
        item,
        response,
        expected=chosen.golden_amount_key,
        response_field=chosen.predicted_amount_key,
        tolerance=0.0,
        relative_tolerance=chosen.tolerance_percent / 100,
        zero_tolerance=chosen.scroll_threshold,
    )
