"""Several criteria, judged one by one."""

from typing import Any, NamedTuple

from assay.scorers._judge_prompt import (
    GradeScale,
    JudgeQuestion,
    answer_text,
    check_panel,
    check_scale,
    check_threshold,
    names_used,
    scale_of,
    texts_of,
)
from assay.scorers._judging import Panel, ask_judges, joint_id, missing
from assay.sdk import (
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Response,
    Score,
    UserError,
    nearest,
    scorer,
)

Criteria = JsonObject | list[Any]
_FIELDS = ("name", "description", "weight", "scale", "threshold")


class Criterion(NamedTuple):
    name: str
    description: str
    weight: float
    scale: GradeScale
    threshold: float | None

    @property
    def full_text(self) -> str:
        return self.name if self.name == self.description else f"{self.name}: {self.description}"


def criteria_of(written: Criteria, scale: GradeScale, where: str = "") -> list[Criterion]:
    """The criteria, however they are written; UserError says what is wrong with one."""
    listed = (
        [{name: entry} for name, entry in written.items()] if isinstance(written, dict) else written
    )
    criteria = [_criterion(entry, scale, where) for entry in listed]
    if not criteria:
        raise UserError(
            "the rubric has no criteria", where=where, fix="write `criteria: {name: what is asked}`"
        )
    names = [criterion.name for criterion in criteria]
    for name in names:
        if names.count(name) > 1:
            raise UserError(
                f"the criterion {name!r} is there twice",
                where=where,
                fix="rename one, or remove it",
            )
    return criteria


def _criterion(entry: Any, scale: GradeScale, where: str) -> Criterion:
    if isinstance(entry, str):
        entry = {"name": entry, "description": entry}
    elif isinstance(entry, dict) and len(entry) == 1 and "name" not in entry:
        ((name, content),) = entry.items()
        entry = {"description": content} if isinstance(content, str) else content
        entry = {**entry, "name": name} if isinstance(entry, dict) else entry
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("name"), str)
        or not entry["name"].strip()
    ):
        raise UserError(
            "a criterion needs a name and a description",
            where=where,
            fix="write `name: what is asked`",
        )
    fields: JsonObject = entry
    for key in fields:
        if key not in _FIELDS:
            raise UserError(
                f"a criterion has no {key!r}", where=where, fix=nearest(str(key), _FIELDS)
            )
    weight: Any = fields.get("weight", 1)
    if (
        isinstance(weight, bool)
        or not isinstance(weight, (int, float))
        or not 0 < weight < float("inf")
    ):
        raise UserError(
            f"the weight of {fields['name']!r} is {weight!r}",
            where=where,
            fix="give a number above 0",
        )
    threshold: Any = fields.get("threshold")
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, (int, float))
    ):
        raise UserError(
            f"the threshold of {fields['name']!r} is {threshold!r}",
            where=where,
            fix="give a number",
        )
    described = str(fields.get("description") or fields["name"])
    return Criterion(
        fields["name"], described, float(weight), fields.get("scale", scale), threshold
    )


def check(params: JsonMapping, where: str) -> None:
    check_scale(params["scale"], None, where)
    for criterion in criteria_of(params["criteria"], params["scale"], where):
        check_scale(criterion.scale, criterion.threshold, where)
    check_threshold(params["threshold"], 0, 1, where)
    check_panel(params, where, must=("answer", "criterion"), may=("criteria",))


@scorer(judge=True, check=check, params=Panel, version=1)
async def judge_rubric(
    item: Item,
    response: Response,
    *,
    context: Context,
    criteria: Criteria,
    prompt: str = "rubric",
    scale: GradeScale = [1, 5],  # noqa: B006  never changed
    threshold: float = 0.5,
    expected: str | None = None,
    strip_reasoning: bool = True,
    **panel: Any,
) -> list[Score]:
    """A model judges the answer by several criteria, each in a call and with a label of its own.

    Score: NAME.CRITERION is (grade − lowest) / (highest − lowest), or 1 for yes and 0 for no; NAME is Σ w·s / Σ w over
    the criteria's weights and scores, and passes from `threshold` on. It has no score if a criterion has none. A
    criterion is judged alone, so that one does not colour the next, and changing it asks about no other again. Panels,
    repeats and failures are as for [judge](#judge); members of a panel are labelled NAME.CRITERION.MODEL.

    Parameters:
    criteria: by name what is asked, or an object with `description`, `weight`, `scale` and `threshold`; or a list of
      such
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `answer` and `criterion`, and may show `question`, `reference`, `criteria`, `scale`, `item`
    scale: for criteria that have none: `yes_no`, or the lowest and the highest grade
    threshold: the score, from 0 to 1, from which the whole passes
    """
    rubric = criteria_of(criteria, scale)
    texts = texts_of(item, prompt, expected=expected, answer=answer_text(response, strip_reasoning))
    listed = [
        {"name": criterion.name, "description": criterion.description} for criterion in rubric
    ]
    shared = {"criteria": listed} if "criteria" in names_used(prompt) else {}
    questions: list[JudgeQuestion] = []
    for criterion in rubric:
        reads, passes_from = scale_of(criterion.scale, criterion.threshold)
        words = {"criterion": criterion.full_text, **shared}
        questions.append(JudgeQuestion(texts, words, reads, passes_from, f".{criterion.name}"))
    judges = Panel(prompt=prompt, **panel)
    labels = await ask_judges(context, item, judges, questions)
    return [
        _whole([scores[0] for scores in labels], rubric, judges.models, threshold),
        *(label for scores in labels for label in scores),
    ]


def _whole(
    scores: list[Score], criteria: list[Criterion], models: list[str], threshold: float
) -> Score:
    weights = {criterion.name: criterion.weight for criterion in criteria}
    details = {
        "criteria": {
            criterion.name: score.score for criterion, score in zip(criteria, scores, strict=True)
        },
        "weights": weights,
        "judge": {"models": models, "id": joint_id(scores, list(weights.values()))},
    }
    if any(score.outcome != "scored" for score in scores):
        return missing(scores, "", details)
    total = sum(
        criterion.weight * float(score.score or 0.0)
        for criterion, score in zip(criteria, scores, strict=True)
    )
    value = total / sum(weights.values())
    return Score(score=value, passed=value >= threshold - 1e-9, details=details)
