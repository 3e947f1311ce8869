"""The numbers that promptfoo reports, and who was asked: it counts by prompt and provider together."""

from typing import Any

from assay.engine.experiment.imports.foreign import (
    Headline,
    Row,
    count_of,
    fields_of,
    free_name,
    number_of,
)
from assay.formats.promptfoo.shapes import SCORE, VERDICT, Prompt, PromptfooResult

_LONGEST_NAME = 80
_CLOSE = 1e-9


class _Named:
    """A named score of one prompt: its weighted sum, and whether its mean is that of the scored rows alone."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.weight = 0.0
        self.plain = True


class _Rated:
    """The scores of one prompt, and whether people gave some of them."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.rows = 0
        self.by_people = False


class Numbers:
    def __init__(self) -> None:
        self.timestamp = 0.0
        self.rows = 0
        self._tasks: dict[int, tuple[str, str, str]] = {}  # by promptIdx: model, prompt, template
        self._named: dict[tuple[int, str], _Named] = {}
        self._metrics: dict[int, Row] = {}
        self._rated: dict[int, _Rated] = {}

    def models(self) -> list[str]:
        return sorted({model for model, _, _ in self._tasks.values()})

    def add_prompt(self, number: int, prompt: Prompt, value: Row) -> None:
        """An entry of the file's list of prompts: what was asked in this way, and the numbers about it."""
        self._task(number, prompt.provider or "", prompt)
        if isinstance(value.get("metrics"), dict):
            self._metrics[number] = value["metrics"]

    def asked(self, row: PromptfooResult) -> tuple[str, str, str]:
        """Model, name of the prompt, and its template (empty if the file has none) of a row."""
        task = self._tasks.get(row.prompt_idx)
        if task is None:
            provider = row.provider
            name = provider if isinstance(provider, str) else provider.label or provider.id or ""
            task = self._task(row.prompt_idx, name, Prompt(label=row.prompt.label))
        return task

    def _task(self, number: int, model: str, prompt: Prompt) -> tuple[str, str, str]:
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
        results = (grading.component_results if grading else None) or ()
        rated = self._rated.setdefault(row.prompt_idx, _Rated())
        rated.rows += 1
        rated.sum += row.score or 0.0
        rated.by_people |= any(
            result.assertion.type == "human" for result in results if result and result.assertion
        )
        if not row.named_scores:
            return
        for metric, score in row.named_scores.items():
            if score is None:
                continue
            weight = row.weight(metric)
            named = self._named.setdefault((row.prompt_idx, metric), _Named())
            named.sum += score * weight
            named.weight += weight
            named.plain &= weight == 1.0
        for result in results:
            if result and result.assertion and (result.metadata or {}).get("graderError") is True:
                named = self._named.get((row.prompt_idx, result.assertion.metric or ""))
                if named is not None:
                    named.plain = False  # promptfoo counts 0, our row is an error

    # ---- what promptfoo reports

    def total(self, stats: Any) -> int | None:
        counts = _counts(stats, "successes", "failures", "errors")
        return sum(counts) if counts else None

    def headlines(self, stats: Any) -> list[Headline]:
        every = _pass_rate(_counts(stats, "successes", "failures", "errors"), {})
        for number, metrics in sorted(self._metrics.items()):
            every += self._of_prompt(number, metrics)
        return every

    def _of_prompt(self, number: int, metrics: Row) -> list[Headline]:
        model, prompt, _ = self._tasks[number]
        where = {"model_name": model, "prompt_template": prompt}
        counts = _counts(metrics, "testPassCount", "testFailCount", "testErrorCount")
        every = _pass_rate(counts, where)
        score = number_of(metrics.get("score"))
        if every and score is not None:
            mean = score / sum(counts)
            every.append(
                Headline(
                    label=SCORE,
                    metric="mean",
                    value=mean,
                    where=where,
                    reduce="none",
                    failed_as=0.0,
                )
            )
            self._explain(every[-1], number)
        weights = fields_of(metrics.get("namedScoreWeights"))
        for metric, value in fields_of(metrics.get("namedScores")).items():
            weight = number_of(weights.get(metric))
            every.append(self._of_metric(number, metric, number_of(value), weight, where))
        return every

    def _explain(self, headline: Headline, number: int) -> None:
        """A person's rating that leaves the verdict as it was does not change promptfoo's sum."""
        rated = self._rated.get(number)
        if rated is not None and rated.by_people and rated.rows:
            headline.ours = rated.sum / rated.rows
            if headline.value is not None and abs(headline.ours - headline.value) > _CLOSE:
                headline.reason = (
                    "promptfoo's sum has the scores from before people rated some answers"
                )

    def _of_metric(
        self,
        number: int,
        metric: str,
        value: float | None,
        weight: float | None,
        where: Row,
    ) -> Headline:
        named = self._named.get((number, metric))
        if named is None or not weight or value is None:
            reason = "promptfoo made it of other metrics" if named is None else "it has no weights"
            return Headline(label=metric, metric="derived", value=value, where=where, reason=reason)
        ours = None if named.plain else named.sum / named.weight if named.weight else None
        return Headline(
            label=metric, metric="mean", value=value / weight, where=where, reduce="none", ours=ours
        )


def _counts(found: Any, *names: str) -> list[int]:
    """These fields, if all of them are counts; else none."""
    values = [count_of(fields_of(found).get(name)) for name in names]
    counts = [value for value in values if value is not None]
    return counts if len(counts) == len(names) else []


def _pass_rate(counts: list[int], where: Row) -> list[Headline]:
    if not sum(counts):
        return []
    rate = Headline(
        label=VERDICT, metric="pass_rate", value=counts[0] / sum(counts), of="passed", where=where
    )
    rate.reduce, rate.failed_as = "none", 0.0
    return [rate]
