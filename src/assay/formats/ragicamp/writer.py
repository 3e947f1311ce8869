"""`assay export --format ragicamp`: questions, predictions and summaries, three files for each agent of an experiment.

Files are written beside their place and get their names one by one under the folder's lock, so that several exports may
write to one folder at the same time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Literal

import msgspec

from assay.analysis.look.export import WHOLE_ROWS, Export, Tables
from assay.analysis.look.joining import Joining, Series
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.bind import Policy, bind_metric
from assay.engine.experiment.bind import BoundOutput
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG, stored_config
from assay.formats.ragicamp.files import date_of, timestamp_of
from assay.formats.ragicamp.merging import (
    FileKind,
    Note,
    RowList,
    check_questions,
    document,
    exclusive_access,
    merge_questions,
    places_of,
    put_in_place,
)
from assay.formats.ragicamp.rows import (
    OVERALL,
    Agent,
    counted_score,
    is_failed,
    outcome_of,
    prediction_row,
    question_of,
)
from assay.sdk import (
    Evaluation,
    EvaluationOutcome,
    JsonObject,
    Manifest,
    Store,
    UserError,
    as_object,
    make_folder,
    store_error,
    write_file,
    writer,
)
from assay.store.files import temporary_suffix
from assay.store.stores import FlatStore

STATISTICS = ("mean", "min", "max", "std", "median")
_PARAMS: dict[str, JsonObject] = {"std": {"ddof": 0}}  # RAGiCamp's is that of the population
_INTERVAL = ("ci_low", "ci_high", "ci_level", "ci_method")
_FACET = "model_name"
_ID = "scores"
Samples = Literal["separate", "mean"]
Scored = tuple[str, str, float | None, EvaluationOutcome]  # metric, scorer, score, outcome


def check(output: BoundOutput, store: Store, id: str) -> None:
    """Refuse a dataset where the folder has other questions, before a model is asked."""
    name = output.params.get("dataset") or dataset_name(store.manifest("dataset", id), id)
    check_questions(Path(output.path), name, store.log("dataset", id))


@writer(
    name="ragicamp",
    whole="ragicamp",
    holds=WHOLE_ROWS,
    converting={"extras": True},
    check=check,
)
def ragicamp(
    export: Export,
    *,
    samples: Samples = "separate",
    plain_names: bool = False,
    dataset: str = "",
    extras: bool = False,
) -> list[str]:
    """RAGiCamp's three files in a folder: a dataset's questions, an agent's predictions and its summary.

    Parameters:
    samples: separate makes each sample index an agent; mean has one prediction a question, with the mean of its scores
    plain_names: agents' files have no dataset in their names even where they replace those of another dataset
    extras: write what RAGiCamp has no field for beside its fields, so that an import gives all rows back
    dataset: the dataset's name; by default the one that it was stored or imported under, else that of its file
    """
    if export.path is None:
        raise UserError("ragicamp writes several files", fix="name a folder with -o")
    source = export.tables.source
    name = dataset or dataset_name(source.manifest("dataset"), source.name)
    notes: list[str] = []
    folder = export.path
    try:
        make_folder(folder)
    except OSError as error:
        raise store_error(error, folder) from error
    with TemporaryDirectory(prefix=".assay-", suffix=temporary_suffix(), dir=folder) as temporary:
        policy, level = _counting(source)
        files = _Agents(Path(temporary), name, samples, extras, policy, level).write(
            export.tables, notes.append
        )
        with exclusive_access(folder):
            places = {
                agent: places_of(folder, agent, name, plain_names=plain_names, force=export.force)
                for agent in files
            }
            merge_questions(folder, name, export.tables.log("items"), notes.append)
            for agent, own in files.items():
                put_in_place(own, places[agent])
    return notes


def _counting(source: Source) -> tuple[Policy, float]:
    """Return how the experiment counts rows without a verdict, and the level of its intervals."""
    folder = source.folder or source.path.parent
    if not (folder / CONFIG).exists():
        return Policy(), 0.95
    config = stored_config(folder, "gate", used=())
    return msgspec.convert(msgspec.to_builtins(config.policy), Policy), config.ci_level


def dataset_name(manifest: Manifest | None, experiment: str) -> str:
    """Return what the dataset of an experiment is called."""
    given = as_object(manifest.plan.get("dataset")) if manifest else {}
    path = given.get("path")
    stem = Path(path).name.partition(".")[0] if isinstance(path, str) else ""
    own = manifest.name if manifest else ""
    return own or str(given.get("name") or "") or stem or experiment


# ---- statistics: the engine's metrics over the scores that the predictions show


class AgentScores:
    """Collects scores by agent in a folder of its own, and has the engine make statistics of them."""

    def __init__(self, folder: Path, policy: Policy, level: float) -> None:
        self._store: Store = FlatStore(folder)
        self._policy = policy
        self._level = level
        self._log = self._store.log("evaluation", _ID)
        self._lines: list[bytes] = []

    def add(self, agent: str, item_id: str, metrics: Iterable[Scored]) -> None:
        """Add the scores of one prediction."""
        for name, scorer, score, outcome in metrics:
            row = Evaluation(
                item_id=item_id,
                label=name,
                model_name=agent,
                score=score,
                scorer=scorer,
                outcome=outcome,
            )
            self._lines.append(msgspec.json.encode(row) + b"\n")
        if len(self._lines) > 1000:
            self._flush()

    def _flush(self) -> None:
        self._log.append(b"".join(self._lines))
        self._lines.clear()

    def statistics(self) -> dict[str, dict[str, JsonObject]]:
        """By agent and metric: mean, min, max, population std, median, count, errors and the mean's interval."""
        self._flush()
        if not self._log.segments():
            return {}
        metrics = [
            bind_metric(
                type=name,
                params=_PARAMS.get(name),
                facets=[_FACET],
                policy=self._policy,
                level=self._level,
            )
            for name in STATISTICS
        ]
        found: dict[str, dict[str, JsonObject]] = {}
        for row in Aggregator(self._store).aggregate([_ID], metrics, id=_ID):
            of = found.setdefault(str(row[_FACET]), {})
            entry = of.setdefault(row["label"], dict.fromkeys(STATISTICS))  # RAGiCamp's four first
            entry[row["metric_name"]] = row["value"]
            if row["metric_name"] == "mean":
                entry |= {"count": row["used_sample_count"], "errors": row["errored_count"]}
                entry |= {name: row.get(name) for name in _INTERVAL}
        # A metric without any value is left out, as RAGiCamp does: code that prints numbers does not know null.
        return {
            agent: {name: of[name] for name in sorted(of) if of[name]["mean"] is not None}
            for agent, of in found.items()
        }


# ---- predictions and summaries


@dataclass
class _Agents:
    """Writes the files of all agents, not yet under their names."""

    folder: Path
    dataset: str
    samples: Samples
    extras: bool
    policy: Policy
    level: float

    def __post_init__(self) -> None:
        self._scores = AgentScores(self.folder / "scores", self.policy, self.level)
        self._heads: dict[str, JsonObject] = {}

    def write(self, tables: Tables, note: Note) -> dict[str, dict[FileKind, Path]]:
        # what was joined goes before statistics take its memory
        files = self._write_predictions(tables, note)
        found = self._scores.statistics()
        computed = _computed_metrics(tables)
        for name, head in self._heads.items():
            statistics = found.get(name, {})
            overall = {metric: entry["mean"] for metric, entry in statistics.items()}
            overall |= computed.get(name) or computed.get(head["model_name"], {})
            overall = {
                metric: value for metric, value in sorted(overall.items()) if value is not None
            }
            summary = {**head, "overall_metrics": overall, "metric_statistics": statistics}
            write_file(
                files[name]["summary"],
                msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n",
            )
        return files

    def _write_predictions(self, tables: Tables, note: Note) -> dict[str, dict[FileKind, Path]]:
        joining = Joining(tables, means=self.samples == "mean")
        if joining.matches:
            note(
                f"{joining.matches:,} evaluations are of matches and have no place in RAGiCamp's files"
            )
        files: dict[str, dict[FileKind, Path]] = {}
        for number, series in enumerate(joining.series()):
            name, agent = series.name, _agent(series)
            head = self._heads[name] = self._head(series, agent)
            files[name] = {
                kind: self.folder / f"{number}_{kind}.json" for kind in ("predictions", "summary")
            }
            rows = self._mean_rows if self.samples == "mean" else self._rows
            _write_lists(files[name]["predictions"], head, rows(joining, series, agent))
        return files

    def _head(self, series: Series, agent: Agent) -> JsonObject:
        return {
            "agent_name": agent.name,
            "dataset_name": self.dataset,
            "timestamp": date_of(agent.timestamp),
            "num_examples": 0,
            "num_failed": 0,
            "model_name": agent.model_name,
            "prompt_template": series.address.template or None,
            "task": agent.task,
            "sample_index": agent.sample_index if self.samples == "separate" else None,
            "total_samples": agent.total_samples,
        }

    def _rows(self, joining: Joining, series: Series, agent: Agent) -> Iterator[JsonObject]:
        for response, evaluations in joining.cases(series):
            metrics = {
                name: counted_score(evaluation, self.policy)
                for name, evaluation in evaluations
                if outcome_of(evaluation) != "skipped"  # it said nothing, which is no failure
            }
            asks = _question(joining, response)
            row = prediction_row(response, asks, agent, evaluations, metrics, extras=self.extras)
            last = dict(evaluations).items()
            self._scores.add(
                agent.name, row["question_id"], (self._score_of(*pair) for pair in last)
            )
            yield row

    def _score_of(self, name: str, evaluation: JsonObject) -> Scored:
        outcome, score = outcome_of(evaluation), counted_score(evaluation, self.policy)
        if outcome == "scored" and score is None:
            outcome = "errored"
        shown = score if outcome == "scored" else None
        return name, str(evaluation.get("scorer") or ""), shown, outcome

    def _mean_rows(self, joining: Joining, series: Series, agent: Agent) -> Iterator[JsonObject]:
        """Yield a row for an item: its first answer, all of them as a list, the means of their
        scores."""
        for cases in joining.by_item(series):
            responses = [response for response, _ in cases]
            evaluations = [pair for _, several in cases for pair in several]
            means = _means(evaluations, self.policy)
            first = next((row for row in responses if not row.get("error")), responses[0])
            row = prediction_row(first, _question(joining, first), agent, evaluations, means)
            row.pop("evaluations", None)  # which are of several answers
            scored: list[Scored] = [
                (name, name, score, "errored" if score is None else "scored")
                for name, score in means.items()
            ]
            self._scores.add(agent.name, row["question_id"], scored)
            said = [str(response.get("response") or "") for response in responses]
            yield {**row, "predictions": said, "num_samples": len(responses)}


def _write_lists(path: Path, head: JsonObject, rows: Iterable[JsonObject]) -> None:
    """Write the predictions, and beside them those that failed; the head gets their numbers."""
    with TemporaryFile(prefix="assay-") as good, TemporaryFile(prefix="assay-") as bad:
        predictions, failed = RowList(good), RowList(bad)
        for row in rows:
            (failed if is_failed(row) else predictions).add(row)
        head |= {"num_examples": predictions.count, "num_failed": failed.count}
        write_file(path, document(head, predictions=predictions, failed=failed))


def _agent(series: Series) -> Agent:
    return Agent(
        name=series.name,
        model_name=series.address.model,
        task=series.address.task,
        sample_index=max(series.address.sample, 0),
        total_samples=series.total_samples,
        timestamp=timestamp_of(date_of(series.timestamp)),  # as a reader will find it
        template=series.address.template,
    )


def _question(joining: Joining, response: JsonObject) -> str:
    """Return what the response's item asks; what was sent, where the item is not in the dataset."""
    item = joining.item(response)
    return str(response.get("prompt") or "") if item is None else question_of(item)


def _computed_metrics(tables: Tables) -> dict[str, JsonObject]:
    """By agent or model: what metrics gave for all answers together, which is not a mean; of imported results, as long
    as their scores are those that were imported."""
    run, evaluation = tables.source.manifest("run"), tables.source.manifest("evaluation")
    found: dict[str, JsonObject] = {}
    if run is not None and (evaluation is None or "adopted" in evaluation.plan):
        found |= {
            name: dict(values)
            for name, values in run.metadata.get("ragicamp", {}).get(OVERALL, {}).items()
        }
    for row in tables.rows("metrics") if "metrics" in tables else ():
        found.setdefault(str(row.get("model_name")), {}).update(row.get(OVERALL) or {})
    return found


def _means(
    evaluations: Sequence[tuple[str, JsonObject]], policy: Policy
) -> dict[str, float | None]:
    """Return the mean of each metric's scores; none where all of them failed."""
    found: dict[str, list[float]] = {}
    for name, evaluation in evaluations:
        if outcome_of(evaluation) != "skipped":
            score = counted_score(evaluation, policy)
            found.setdefault(name, []).extend(() if score is None else (score,))
    return {
        name: sum(scores) / len(scores) if scores else None
        for name, scores in sorted(found.items())
    }
