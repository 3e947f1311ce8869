"""SyGra's metrics as scorers and metrics of ordinary configs: `sygra.exact_match`, `sygra.f1_score`, `sygra.pass@k` …

Each is one of ours with SyGra's defaults and parameter names. Keys name fields of the ground truth (golden) and of the
JSON in the answer (predicted). Scorers keep both texts in `detailed_results`, where the metrics of labels find them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from assay.formats.sygra.metrics.aggregate import PassAtKMetric, PassPowerKMetric
from assay.formats.sygra.metrics.unit import DIRECTIONS, NotNegative, Share, comparable
from assay.interfaces import Group, Score, Values
from assay.metrics.label_scores import ACTUAL, PREDICTED, label_scores
from assay.metrics.pass_rate import pass_rate
from assay.metrics.step_efficiency import step_efficiency as core_step_efficiency
from assay.records import Item, Response
from assay.registry import metric, scorer
from assay.scorers.edit_similarity import edit_similarity
from assay.scorers.exact_match import exact_match as core_exact_match
from assay.scorers.numeric_match import numeric_match
from assay.scorers.within_box import within_box
from assay.text.answers import answer_of
from assay.text.expected import accepted

Positive = Annotated[int, Meta(ge=1)]

# ---- scorers


@scorer(name="sygra.exact_match", reads="ground_truth", version=1)
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
    case_sensitive: whether case counts
    normalize_whitespace: whether runs of whitespace count as one space, and none around the text
    """
    found = core_exact_match(
        item,
        response,
        expected=golden_key,
        response_field=predicted_key,
        normalize=comparable(case_sensitive, normalize_whitespace),
        strip_whitespace=False,
    )
    return _with_texts(found, item, response, golden_key, predicted_key)


@scorer(name="sygra.fuzzy_match", reads="ground_truth", version=1)
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
    threshold: the least likeness that passes
    case_sensitive: whether case counts
    """
    found = edit_similarity(
        item,
        response,
        expected=golden_key,
        response_field=predicted_key,
        normalize=comparable(case_sensitive, True),
        method="blocks",
        threshold=threshold,
    )
    return _with_texts(found, item, response, golden_key, predicted_key)


@scorer(name="sygra.typed_value_match", reads="ground_truth", version=1)
def typed_value_match(
    item: Item,
    response: Response,
    *,
    golden_text_key: str = "text",
    predicted_text_key: str = "text",
    fuzzy_match_threshold: Share = 0.8,
) -> Score:
    """The right text was typed, or one that is alike.

    Parameters:
    golden_text_key: the field of the ground truth that has the text
    predicted_text_key: the field of the JSON in the answer
    fuzzy_match_threshold: the least likeness that passes
    """
    return fuzzy_match(
        item,
        response,
        golden_key=golden_text_key,
        predicted_key=predicted_text_key,
        threshold=fuzzy_match_threshold,
    )


@scorer(name="sygra.action_within_bbox", reads="ground_truth", version=1)
def action_within_bbox(
    item: Item,
    response: Response,
    *,
    predicted_x_key: str = "x",
    predicted_y_key: str = "y",
    golden_bbox_key: str = "bbox",
) -> Score:
    """The point of an action lies in the expected box.

    Parameters:
    predicted_x_key: the field of the answer's JSON that has the first coordinate
    predicted_y_key: the field that has the second one
    golden_bbox_key: the field of the ground truth that has the box
    """
    return within_box(item, response, expected=golden_bbox_key, x=predicted_x_key, y=predicted_y_key)


@scorer(name="sygra.scroll_direction", reads="ground_truth", version=1)
def scroll_direction(
    item: Item,
    response: Response,
    *,
    golden_direction_key: str = "direction",
    predicted_direction_key: str = "direction",
) -> Score:
    """The direction is the expected one; it is `up`, `down`, `left` or `right`.

    Parameters:
    golden_direction_key: the field of the ground truth that has the direction
    predicted_direction_key: the field of the JSON in the answer
    """
    expected = [text for text in accepted(item.ground_truth, golden_direction_key) if text in DIRECTIONS]
    if not expected:
        raise LookupError(f"the expected direction is none of {', '.join(DIRECTIONS)}")
    return core_exact_match(
        item,
        response,
        expected_content=expected[0],
        response_field=predicted_direction_key,
        strip_whitespace=False,
    )


@scorer(name="sygra.scroll_amount", reads="ground_truth", version=1)
def scroll_amount(
    item: Item,
    response: Response,
    *,
    golden_amount_key: str = "amount",
    predicted_amount_key: str = "amount",
    tolerance_percent: NotNegative = 20.0,
    scroll_threshold: NotNegative = 10.0,
) -> Score:
    """The amount differs from the expected one by few percent, or by little where 0 is expected.

    Parameters:
    golden_amount_key: the field of the ground truth that has the amount
    predicted_amount_key: the field of the JSON in the answer
    tolerance_percent: the greatest difference in percent of the expected amount
    scroll_threshold: the greatest amount where 0 is expected
    """
    return numeric_match(
        item,
        response,
        expected=golden_amount_key,
        response_field=predicted_amount_key,
        tolerance=0.0,
        relative_tolerance=tolerance_percent / 100,
        zero_tolerance=scroll_threshold,
    )


def _with_texts(
    found: Score, item: Item, response: Response, golden_key: str | None, predicted_key: str | None
) -> Score:
    if found.outcome == "scored":
        expected = accepted(item.ground_truth, golden_key)[0]
        found.details = {**found.details, "predicted": answer_of(response, predicted_key), "expected": expected}
    return found


# ---- metrics


@metric(name="sygra.accuracy")
def accuracy(group: Group) -> Values:
    """The share of the records that passed."""
    found = pass_rate(group)
    found.fields["accuracy"] = found.value
    return found


def _predicted(params: Mapping[str, Any]) -> list[str]:
    return [params.get("predicted_key", PREDICTED), params.get("golden_key", ACTUAL)]


@metric(name="sygra.precision", columns=_predicted)
def precision(group: Group, *, predicted_key: str = PREDICTED) -> Values:
    """How often each predicted label passed, and the unweighted mean over the labels.

    Parameters:
    predicted_key: the field of the evaluation row that has the predicted label
    """
    return _labels(group, predicted_key, ACTUAL, "precision", "precision")


@metric(name="sygra.recall", columns=_predicted)
def recall(group: Group, *, golden_key: str = ACTUAL) -> Values:
    """How often each true label passed, and the unweighted mean over the labels.

    Parameters:
    golden_key: the field of the evaluation row that has the true label
    """
    return _labels(group, PREDICTED, golden_key, "recall", "recall")


@metric(name="sygra.f1_score", columns=_predicted)
def f1_score(group: Group, *, predicted_key: str = PREDICTED, golden_key: str = ACTUAL) -> Values:
    """The F1 of each label, and the harmonic mean of average precision and average recall.

    Parameters:
    predicted_key: the field of the evaluation row that has the predicted label
    golden_key: the field of the evaluation row that has the true label
    """
    return _labels(group, predicted_key, golden_key, "f1", "f1_score")


def _labels(
    group: Group, predicted: str, actual: str, statistic: Literal["precision", "recall", "f1"], name: str
) -> Values:
    found = label_scores(group, predicted=predicted, actual=actual, statistic=statistic)
    own = {f"average_{name}": found.value, f"{name}_per_class": found.fields[f"{statistic}_per_label"]}
    return Values(value=found.value, fields=own, reason=found.reason)


@metric(name="sygra.pass@k")
@metric(name="sygra.pass_at_k")
def pass_at_k(group: Group, *, k: Positive) -> Values:
    """The chance that k rows drawn from all of them hold a pass. For the chance of one item, see `pass_at_k`.

    Parameters:
    k: how many rows are drawn
    """
    return _pooled(PassAtKMetric(k=k), group, f"pass@{k}")


@metric(name="sygra.pass^k")
def pass_power_k(group: Group, *, k: Positive) -> Values:
    """The share of passes to the power of k. For the chance that k samples of one item pass, see `pass_hat_k`.

    Parameters:
    k: how many attempts must all pass
    """
    return _pooled(PassPowerKMetric(k=k), group, f"pass^{k}")


def _pooled(counting: PassAtKMetric | PassPowerKMetric, group: Group, name: str) -> Values:
    counting.total, counting.correct = len(group.passed), int(group.passed.sum())
    found = counting.payload()
    return Values(value=found[name], fields=found, reason="it is of all rows together, no mean over items")


@metric(name="sygra.step_efficiency")
def step_efficiency(group: Group, *, penalty_per_retry: Share = 0.2) -> Values:
    """How soon items pass, each sample after the first one being a retry.

    Parameters:
    penalty_per_retry: what each retry costs
    """
    return core_step_efficiency(group, penalty=penalty_per_retry)
