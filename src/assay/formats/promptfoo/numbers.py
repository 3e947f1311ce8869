"""The numbers that promptfoo reports, and who was asked: it counts by prompt and provider together."""

from typing import Any

from assay.foreign import Headline, free_name
from assay.formats.promptfoo.shapes import SCORE, VERDICT, PromptfooResult, PromptText
from assay.readers._results import pass_rate
from assay.sdk import JsonObject, as_object, count_of, number_of

_LONGEST_NAME = 80
_CLOSE = 1e-9


class _NamedSum:
    """A named score of one prompt: its weighted sum, and whether its mean is that of the scored rows alone."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.weight = 0.0
        self.plain = True

    def add(self, score: float, weight: float) -> None:
        self.sum += score * weight
        self.weight += weight
        self.plain &= weight == 1.0


class _Rated:
    """The scores of one prompt, and whether people gave some of them."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.rows = 0
        self.by_people = False


class PromptNumbers:
    def __init__(self) -> None:
        self.timestamp = 0.0
        self.rows = 0
        self._tasks: dict[int, tuple[str, str, str]] = {}  # by promptIdx: model, prompt, template
        self._named: dict[tuple[int, str], _NamedSum] = {}
        self._metrics: dict[int, JsonObject] = {}
        self._rated: dict[int, _Rated] = {}

    def models(self) -> list[str]:
        return sorted({model for model, _, _ in self._tasks.values()})

    def add_prompt(self, number: int, prompt: PromptText, value: JsonObject) -> None:
        """Take an entry of the file's list of prompts: what was asked in this way, and the numbers about it."""
        self._task(number, prompt.provider or "", prompt)
        if isinstance(value.get("metrics"), dict):
            self._metrics[number] = value["metrics"]

    def prompt_of(self, row: PromptfooResult) -> tuple[str, str, str]:
        """Return the model, the name of the prompt, and the template (empty if the file has none) of a row."""
        task = self._tasks.get(row.prompt_idx)
        if task is None:
            provider = row.provider
            name = provider if isinstance(provider, str) else provider.label or provider.id or ""
            task = self._task(row.prompt_idx, name, PromptText(label=row.prompt.label))
        return task

    def _task(self, number: int, model: str, prompt: PromptText) -> tuple[str, str, str]:
        label = prompt.label or prompt.raw or "prompt"
        if len(label) > _LONGEST_NAME:
            label = f"{label[:_LONGEST_NAME]}… {(prompt.id or '')[:8]}".rstrip()
        # one provider twice, with other settings
        taken = {name for name, of, _ in self._tasks.values() if of == label}
        task = free_name(model or "unnamed", taken, "#"), label, prompt.raw
        self._tasks[number] = task
        return task

    def count(self, row: PromptfooResult) -> None:
        self.rows += 1
        grading = row.grading_result
        found = (grading.component_results if grading else None) or ()
        results = [(each.assertion, each) for each in found if each and each.assertion]
        rated = self._rated.setdefault(row.prompt_idx, _Rated())
        rated.rows += 1
        rated.sum += row.score or 0.0
        rated.by_people |= any(assertion.type == "human" for assertion, _ in results)
        scores = row.named_scores or {}
        for metric, score in scores.items():
            if score is not None:
                named = self._named.setdefault((row.prompt_idx, metric), _NamedSum())
                named.add(score, row.weight(metric))
        for assertion, result in results if scores else ():
            named = self._named.get((row.prompt_idx, assertion.metric or ""))
            if named is not None and result.grader_failed:
                named.plain = False  # promptfoo counts 0, our row is an error

    # ---- what promptfoo reports

    def total(self, stats: Any) -> int | None:
        counts = _counts(stats, "successes", "failures", "errors")
        return sum(counts) if counts else None

    def headlines(self, stats: Any) -> list[Headline]:
        counts = _counts(stats, "successes", "failures", "errors")
        made = pass_rate(VERDICT, counts, failed_as=0.0)
        for number, metrics in sorted(self._metrics.items()):
            made += self._of_prompt(number, metrics)
        return made

    def _of_prompt(self, number: int, metrics: JsonObject) -> list[Headline]:
        model, prompt, _ = self._tasks[number]
        where = {"model_name": model, "prompt_template": prompt}
        counts = _counts(metrics, "testPassCount", "testFailCount", "testErrorCount")
        made = pass_rate(VERDICT, counts, where=where, failed_as=0.0)
        score = number_of(metrics.get("score"))
        if made and score is not None:
            mean = Headline(label=SCORE, metric="mean", value=score / sum(counts), where=where)
            mean.reduce, mean.failed_as = "none", 0.0
            self._explain(mean, number)
            made.append(mean)
        for metric in as_object(metrics.get("namedScores")):
            made.append(self._of_metric(number, metric, metrics, where))
        return made

    def _explain(self, headline: Headline, number: int) -> None:
        """Say that a person's rating that leaves the verdict as it was does not change promptfoo's sum."""
        rated = self._rated.get(number)
        if rated is not None and rated.by_people and rated.rows:
            headline.ours = rated.sum / rated.rows
            if headline.value is not None and abs(headline.ours - headline.value) > _CLOSE:
                headline.reason = (
                    "promptfoo's sum has the scores from before people rated some answers"
                )

    def _of_metric(
        self, number: int, metric: str, metrics: JsonObject, where: JsonObject
    ) -> Headline:
        value, weight = (
            number_of(as_object(metrics.get(name)).get(metric))
            for name in ("namedScores", "namedScoreWeights")
        )
        named = self._named.get((number, metric))
        made = Headline(label=metric, metric="derived", value=value, where=where)
        if named is None:
            made.reason = "promptfoo made it of other metrics"
        elif not weight or value is None:
            made.reason = "it has no weights"
        else:
            made.metric, made.value, made.reduce = "mean", value / weight, "none"
            if not named.plain and named.weight:
                made.ours = named.sum / named.weight
        return made


def _counts(found: Any, *names: str) -> list[int]:
    """Return these fields, if all of them are counts; else none."""
    values = [count_of(as_object(found).get(name)) for name in names]
    return [value for value in values if value is not None] if None not in values else []
