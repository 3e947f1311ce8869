"""Evalscope's runs as items, responses and evaluations: one run's folder is one experiment.

Samples stand in the order in which they ended. Those that failed are in none of its files; a report counts them, so
they become responses with an error.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from assay.foreign import Foreign, ForeignCase, Headline, without_secrets
from assay.formats.evalscope.files import RunFiles, SampleLines, SubsetFiles, read_report, runs_at
from assay.formats.evalscope.rows import (
    EvaluatedSample,
    answer_of,
    evaluations_of,
    item_of,
    missing_evaluations,
    missing_response,
)
from assay.formats.evalscope.scores import Sums
from assay.readers._results import FileResults
from assay.sdk import Evaluation, JsonObject, as_object, reader

_SETTINGS = (
    "evalscope_version",
    "model",
    "model_args",
    "generation_config",
    "datasets",
    "dataset_args",
    "repeats",
    "limit",
    "seed",
    "eval_type",
    "api_url",
    "judge",
    "evaluation_identity",
)
_MOST_LOST = 1_000_000  # samples that may have failed in one subset


@reader
def evalscope(path: Path) -> list[Foreign]:
    """A work directory, the folder of one run in it, or one of its files of predictions, reviews or reports."""
    return [EvalscopeRun(files) for files in runs_at(path) if files.parts]


class EvalscopeRun(FileResults):
    """One run."""

    format = "evalscope"
    said = {
        "missing": "samples that failed, of which evalscope stores nothing else: {:,}",
        "zeros": "scores that are 0.0 because the metric failed, which are errors here: {:,}",
        "unreviewed": "answers without a review: {:,}",
    }

    def __init__(self, files: RunFiles) -> None:
        self.run = files
        self.reports = [report for file in files.reports if (report := read_report(file))]
        self.parts = [(part, *self._dataset_and_subset(part)) for part in files.parts]
        models = dict.fromkeys(part.model for part in files.parts if part.model)
        datasets = "+".join(dict.fromkeys(dataset for _, dataset, _ in self.parts))
        named = "-".join([datasets, *(models if len(models) == 1 else ())])
        samples = [file for part in files.parts for file in (part.predictions, part.reviews)]
        super().__init__(named, *filter(None, samples), *files.reports)

    def begin(self) -> None:
        super().begin()
        self._sums = Sums()

    def _dataset_and_subset(self, part: SubsetFiles) -> tuple[str, str]:
        """Dataset and subset, which the file's name has with a line between them."""
        config = self.run.config
        named = [*(config.get("datasets") or ()), *(config.get("resolved_benchmarks") or ())]
        named += [report.get("dataset_name") for report in self.reports]
        fitting = [name for name in map(str, named) if part.stem.startswith(f"{name}_")]
        dataset = max(fitting, key=len, default="")
        return (dataset, part.stem[len(dataset) + 1 :]) if dataset else (part.stem, "")

    @property
    def facts(self) -> JsonObject:
        config = self.run.config
        settings = {name: config[name] for name in _SETTINGS if config.get(name) is not None}
        executed = {
            str(report.get("name")): report.get("execution_summary") for report in self.reports
        }
        models = dict.fromkeys(part.model or self._model for part in self.run.parts)
        return {"agents": [*models], **without_secrets(settings), "execution_summary": executed}

    @property
    def _model(self) -> str:
        return str(self.run.config.get("model_id") or self.run.config.get("model") or "")

    def notes(self) -> list[str]:
        reported = {
            (str(report.get("model_name")), str(report.get("dataset_name")))
            for report in self.reports
        }
        without = sorted(
            {dataset for part, dataset, _ in self.parts if (part.model, dataset) not in reported}
        )
        if not without:
            return super().notes()
        named = ", ".join(without)
        return [*super().notes(), f"there is no report on {named}: the run may not have ended"]

    def headlines(self) -> list[Headline]:
        several = len({report.get("model_name") for report in self.reports}) > 1
        return [
            headline
            for report in self.reports
            for headline in self._sums.headlines(report, several)
        ]

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        planned = 0
        for part, dataset, subset in self.parts:
            predictions, reviews = SampleLines(part.predictions), SampleLines(part.reviews)
            self.further += [*predictions.problems, *reviews.problems]
            requested = self._planned_of(part, dataset, subset)
            present = predictions.places.keys() | reviews.places.keys()
            expected = max(requested or 0, max(present, default=-1) + 1)
            if expected > len(present) + _MOST_LOST:
                self.further.append(
                    f"{part.stem}: {expected:,} samples were asked for, which is not believed"
                )
                expected = 0
            planned += max(expected, len(present))
            lost = [index for index in range(expected) if index not in present]
            self.odd["missing"] += len(lost)
            yield from self._cases(part, dataset, subset, (predictions, reviews), lost)
        self.planned = planned
        self.odd["zeros"] = self._sums.zeros

    @property
    def rejected(self) -> int:
        return len(self.further)

    def _planned_of(self, part: SubsetFiles, dataset: str, subset: str) -> int | None:
        for report in self.reports:
            if report.get("dataset_name") == dataset and report.get("model_name") == part.model:
                subsets = as_object(as_object(report.get("execution_summary")).get("subsets"))
                requested = as_object(subsets.get(subset)).get("requested")
                return requested if isinstance(requested, int) else None
        return None

    def _cases(
        self,
        part: SubsetFiles,
        dataset: str,
        subset: str,
        files: tuple[SampleLines, SampleLines],
        lost: list[int],
    ) -> Iterator[ForeignCase]:
        predictions, reviews = files
        repeats = self._repeats()
        order = list(dict.fromkeys([*predictions.places, *reviews.places]))
        groups = {index // repeats for index in lost}
        items: dict[int, JsonObject] = {}
        for index, prediction, review in zip(
            order, predictions.rows(order), reviews.rows(order), strict=True
        ):
            model = part.model or str(prediction.get("model") or self._model)
            sample = EvaluatedSample(model, dataset, subset, index, repeats, prediction, review)
            case = self._case(sample, reviews.labels)
            if index // repeats in groups:
                items[index // repeats] = as_object(case.item)
            yield case
        for index in lost:
            item = items.get(index // repeats) or _unknown(dataset, subset, index // repeats)
            sample = EvaluatedSample(
                part.model or self._model, dataset, subset, index, repeats, {}, {}
            )
            response = missing_response(item, sample)
            labels = missing_evaluations(response, reviews.labels)
            yield ForeignCase(item, response, self._count(sample, labels))

    def _case(self, sample: EvaluatedSample, labels: Collection[str]) -> ForeignCase:
        item = item_of(sample)
        response = answer_of(sample, item, self.rest)
        self.odd["unreviewed"] += not sample.review
        evaluations = list(evaluations_of(sample, response, labels, self.rest))
        return ForeignCase(item, response, self._count(sample, evaluations))

    def _count(self, sample: EvaluatedSample, evaluations: list[Evaluation]) -> list[Evaluation]:
        place = (sample.model, sample.dataset, sample.subset)
        for row in evaluations:
            self._sums.add(place, row.label, row.score, counted=row.label in sample.values)
        return evaluations

    def _repeats(self) -> int:
        given = self.run.config.get("repeats")
        return given if isinstance(given, int) and given > 0 else 1


def _unknown(dataset: str, subset: str, group: int) -> JsonObject:
    """A question of which only the place in its subset is known."""
    id = f"{dataset}/{subset}/{group}" if subset else f"{dataset}/{group}"
    metadata = {"dataset": dataset, "subset": subset}
    return {"id": id, "data": {}, "ground_truth": None, "metadata": metadata}
