"""Test runs of deepeval, streamed: one experiment for each `test_run_….json`, or the last one in `.deepeval/`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay import reading
from assay.engine.experiment.imports.foreign import (
    HEAD,
    REST,
    Foreign,
    ForeignCase,
    Headline,
    Row,
    files_below,
    head_of,
    json_row,
    list_of,
    number_of,
    rows_of,
    without_secrets,
)
from assay.formats.deepeval.rows import VERDICT, Reading, TestCase
from assay.registry import reader

_BEGINS = re.compile(
    rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*(?:"testRunData"\s*:\s*\{\s*)?"(?:testFile|testCases|[a-zA-Z]+)"\s*:'
)
_CASES = re.compile(rb'"testCases"\s*:\s*\[\s*(?:\{\s*"name"\s*:|\])')
_MARKS = (b'"metricsData"', b'"metricsScores"', b'"conversationalTestCases"', b'"actualOutput"')
_LATEST = (".deepeval/.latest_run_full.json", ".latest_run_full.json")
_WRAPPER = "testRunData"
_KEPT = {
    "identifier",
    "hyperparameters",
    "testFile",
    "testPassed",
    "testFailed",
    "runDuration",
    "evaluationCost",
    "datasetAlias",
    "datasetId",
    "datasetVersion",
    "official",
    "prompts",
    "traceMetricsScores",
    "testRunLink",
}


@reader
def deepeval(path: Path) -> list[Foreign]:
    """Test runs that deepeval wrote into its results folder, or `.deepeval/.latest_run_full.json`."""
    files = [file for file in files_below(path, ".json") if _is_run(file)]
    if not files and path.is_dir():  # the results folder was not set
        files = [file for name in _LATEST if (file := path / name).is_file() and _is_run(file)][:1]
    return [TestRun(file) for file in files]


def _is_run(file: Path) -> bool:
    head = head_of(file)
    return bool(
        _BEGINS.match(head) and _CASES.search(head) and any(mark in head for mark in _MARKS)
    )


class TestRun(Reading):
    """One test run. deepeval gives its files no version: unknown fields are kept and counted."""

    format, rows = "deepeval", ("testCases", "conversationalTestCases")
    version = {"reader": 1}  # raised when rows come out otherwise
    said = {
        "unanswered": "{:,} test cases have no answer: they are errors here",
        "unscored": "{:,} metrics gave no score: deepeval's mean leaves them out, its pass rate counts them as failed",
        "unnamed": "the run does not name a model in its hyperparameters: it is called 'unnamed'",
    }

    def __init__(self, path: Path) -> None:
        super().__init__(_model(path), path.stem.lstrip("."), path)

    def begin(self) -> None:
        super().begin()
        self._facts: Row = {}
        self._scores: list[Row] = []
        self.odd["unnamed"] = self._model == "unnamed"

    @property
    def facts(self) -> Row:
        return {"read_from": ["a test run of deepeval"], "agents": [self._model], **self._facts}

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        read = 0
        for test, raw in self._rows_of_shape(self._tests(), TestCase):
            read += 1
            yield self.case(test, raw)
        told = sum(self._counts)
        self.planned = told if told > read else None

    def _tests(self) -> Iterator[tuple[str, Any]]:
        for name, number, value in self._parts(_WRAPPER):
            key = name.removeprefix(f"{_WRAPPER}.")
            if key in self.rows:
                if number is not None:
                    yield f"{self.files[0]}: {key}[{number}]", value
            elif key == "metricsScores":
                self._scores += rows_of([value])
            else:
                self._header(key, number, value)

    def _header(self, key: str, number: int | None, value: Any) -> None:
        fields = self._facts if key in _KEPT else self._facts.setdefault(REST, {})
        if number is not None:
            fields[key].append(without_secrets(value))
        elif value is not None:
            fields[key] = without_secrets(value)
            if key not in _KEPT:
                self.rest.unknown[key] += 1

    def headlines(self) -> list[Headline]:
        every = [headline for entry in self._scores for headline in self._of_metric(entry)]
        if not sum(self._counts):
            return every
        rate = self._counts[0] / sum(self._counts)
        first = Headline(label=VERDICT, metric="pass_rate", value=rate, of="passed", reduce="none")
        return [first, *every]

    @property
    def _counts(self) -> list[int]:
        """How many test cases have passed, and failed; none where the run does not say both."""
        counts = [self._facts.get(name) for name in ("testPassed", "testFailed")]
        known = [count for count in counts if isinstance(count, int)]
        return known if len(known) == len(counts) else []

    def _of_metric(self, entry: Row) -> list[Headline]:
        """deepeval shows the mean of the scores that there are, and the passes of all, failures among them."""
        label, scores = str(entry.get("metric")), entry.get("scores")
        total = self.totals.get(label)
        several = total if total is not None and len(total.labels) > 1 else None
        every: list[Headline] = []
        if values := _numbers(list_of(scores)):
            ours = several.sum / several.scored if several and several.scored else None
            every.append(
                Headline(label=label, metric="mean", value=sum(values) / len(values), ours=ours)
            )
        counts = _numbers([entry.get(name) for name in ("passes", "fails", "errors")])
        if len(counts) == 3 and sum(counts):
            ours = several.passed / several.rows if several else None
            rate = counts[0] / sum(counts)
            every.append(
                Headline(
                    label=label,
                    metric="pass_rate",
                    value=rate,
                    of="passed",
                    failed_as=0.0,
                    ours=ours,
                )
            )
        for headline in every:
            headline.reduce = "none"
        return every


def _numbers(values: list[Any]) -> list[float]:
    return [value for value in map(number_of, values) if value is not None]


def _model(path: Path) -> str:
    """What the hyperparameters, which stand after the test cases, call the model."""
    with reading.opened(path) as file:
        file.seek(max(0, path.stat().st_size - 16 * HEAD))
        tail = file.read()
    begin = tail.rfind(b'"hyperparameters"')
    found = re.match(rb'"hyperparameters"\s*:\s*(\{[^{}]*\})', tail[begin:]) if begin >= 0 else None
    if found is None:
        return "unnamed"
    try:
        settings = json_row(found[1])
    except (ValueError, RecursionError):
        return "unnamed"
    names = {name.lower().replace(" ", "_"): value for name, value in settings.items()}
    known = [names[name] for name in ("model", "model_name", "llm", "model_id") if names.get(name)]
    return str(next(iter(known), "unnamed"))
