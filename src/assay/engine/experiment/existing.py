"""Experiments over rows that are there, ours or anybody's, of one run or of several: scoring responses (`assay evaluate`),
measuring evaluations (`assay aggregate`).

Rows are read where they are; what is made goes into one folder.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import msgspec

from assay.config import Config
from assay.engine.calls.executor import Shared
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.experiment import bind
from assay.engine.experiment.experiment import BoundConfig, Experiment, Options
from assay.engine.experiment.models import bind_usable
from assay.engine.experiment.preflight import label_problems
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.runs import (
    answers_of,
    items_of,
    keyed_log,
    named_log,
    refuse_lost_runs,
    runs_of,
    take_over,
    unite_items,
)
from assay.engine.experiment.sources import ELSEWHERE, ConfigSource, Source, config_of, keep_config
from assay.engine.experiment.trust import vouch_rows
from assay.reading import Paths, each_of
from assay.sdk import ROWS_FILE, ConfigError, JsonMapping, JsonObject, Kind, Manifest, UserError
from assay.store.index import content_hash
from assay.store.log import FileLog
from assay.store.shared.mirror import local, named, placed
from assay.store.stores import FlatStore
from assay.store.table.decode import read_rows


def evaluate(
    paths: Paths,
    config: ConfigSource | None = None,
    *,
    output_dir: str | None = None,
    overrides: JsonMapping | None = None,
    retry_errors: bool = False,
    budget: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> Experiment:
    """The experiment that scores the responses of some folders or files, again or for the first time, and computes the
    config's metrics. `budget` is how many matches are played, those that tell most."""
    sources = find_each(paths, "run")
    for source in sources:
        source.log("run", "run a config first, or name a file with rows")
    changes = dict(overrides or {})
    names_dataset = config is not None or "dataset" in changes
    unused: JsonObject = {"tasks": []}
    if not names_dataset and "dataset" in sources[0].files:
        unused["dataset"] = None  # the folder's items do: the file that they came from may be gone
    options = Options(output_dir=str(_folder(sources, output_dir)), retry_errors=retry_errors)
    loaded = config_of(config, sources[0], "evaluate", {**unused, **changes})
    experiment = ExistingResponses(loaded, options, sources, names_dataset, environ)
    experiment.budget = budget
    return experiment


class ExistingResponses(Experiment):
    """Scores the responses of one or several sources.

    Where answers meet in matches, the runs behind an evaluation that is in the folder already take part: a run that
    is added later plays only its own matches.
    """

    kinds = ("evaluation", "dataset", "run")
    kind = "evaluation"

    def __init__(
        self,
        config: Config,
        options: Options,
        sources: list[Source],
        names_dataset: bool,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(config, options, environ=environ)
        self.sources = sources
        self.names_dataset = names_dataset
        self._runs = runs_of(sources)

    def bind(self) -> BoundConfig:
        models = bind_usable(self.config, self.environ)
        return BoundConfig(
            models,
            bind.bind_scorers(self.config, models),
            bind.bind_metrics(self.config),
        )

    async def make(self, bound: BoundConfig, shared: Shared, stack: AsyncExitStack) -> None:
        self._gather(bound.scorers)
        self._show(lambda run: run.evidence("run").log)
        for run in self._runs:
            if partial := run.evidence("run").partial:
                self.progress.note(f"the responses of {run.name} are partial: {partial}")
        self._find_items()
        stored = self.store.log("evaluation", self.id)
        if problems := label_problems(bound.scorers, bound.metrics, (), stored):
            raise ConfigError(problems, source=self.config.source)
        if note := keep_config(self.folder, self.config):
            self.progress.note(note)

    def runs(self) -> list[str]:
        return [self.id] if len(self._runs) == 1 else [run.name for run in self._runs]

    def metadata(self) -> JsonObject:
        elsewhere = self._elsewhere()
        files = (str(file) for files in elsewhere.values() for file in each_of(files))
        if note := vouch_rows(self.folder, map(placed, files)):
            self.progress.note(note)
        return {ELSEWHERE: elsewhere}

    def after_scoring(self, evaluation: Manifest) -> None:
        elsewhere = self._elsewhere()
        # finished before, from the same rows elsewhere
        if evaluation.metadata.get(ELSEWHERE, {}) != elsewhere:
            evaluation.metadata = {**evaluation.metadata, ELSEWHERE: elsewhere}
            self.store.put_manifest(evaluation)
        self._note_missing_items(evaluation)
        old = self.manifest("aggregation")
        older = old is not None and evaluation.digest not in [
            entry.get("digest") for entry in old.inputs
        ]
        if older and not self.config.metrics:
            self.progress.note(
                "the config has no metrics: those in the folder are of earlier evaluations"
            )

    def ids_to_measure(self) -> dict[str, list[str]]:
        self._show(answers_of)
        return super().ids_to_measure()

    def _gather(self, scorers: Sequence[BoundScorer]) -> None:
        """For matches: the runs behind the earlier evaluation in the folder, and the rows of others."""
        if not any(scorer.form == "match" for scorer in scorers):
            if self.budget is not None:
                fix = "add an evaluation method with `type: pairwise`"
                raise UserError("a budget of matches needs a method that plays them", fix=fix)
            return
        folder, note = self.folder, self.progress.note
        refuse_lost_runs([folder, *(source.folder for source in self.sources if source.folder)])
        before = {run.files["run"].resolve() for run in self._runs}
        self._runs = runs_of(self.sources, folder)
        joined = [run.name for run in self._runs if run.files["run"].resolve() not in before]
        if joined:
            note(f"with the runs of the earlier evaluation in the folder: {', '.join(joined)}")
        every = (*self.sources, *self._runs)
        others = [source for source in every if source.folder is None or source.folder != folder]
        take_over(self.store, self.id, others, [scorer.name for scorer in scorers], note)

    def _show(self, log: Callable[[Source], FileLog]) -> None:
        for run, id in zip(self._runs, self.runs(), strict=True):
            self.store.show("run", id, log(run), run.evidence("run").manifest)

    def _find_items(self) -> None:
        """The dataset of an explicit config; else the items beside the responses; else what the config names."""
        own = self.folder / ROWS_FILE["dataset"]
        files, first = items_of(self._runs), self.sources[0]
        if [source.folder for source in self.sources] == [self.folder] and "dataset" in first.files:
            files = [first.files["dataset"]]
        beside = files[0] if files else None
        foreign = own.exists() and not self.store.ids("dataset")
        dataset = self.config.dataset
        if foreign and (dataset is None or dataset.path in (named(own), [named(own)])):
            beside, files = own, [own]
        elif foreign:
            raise UserError(
                "the folder has items of its own, which are not Assay's to replace",
                where=str(own),
                fix="choose another folder with -o, or leave `dataset` out of the config",
            )
        elif dataset is not None and (self.names_dataset or beside is None):
            self.ingest()
            return
        if beside is None:
            raise UserError(
                "there is no ground truth for these responses",
                where=str(first.path),
                fix="name their dataset in a config: `dataset: items.jsonl`, and pass it with -c",
            )
        if len(files) > 1:
            if (self.folder / ROWS_FILE["run"]).exists():
                fix = "choose another folder with -o"
                raise UserError(
                    "the runs have different items, and this folder is one run's",
                    where=str(own),
                    fix=fix,
                )
            unite_items(self.store, self.id, files)
            return
        log = FileLog(beside)
        manifest = Source(path=beside, name="", files={"dataset": beside}).manifest("dataset")
        if manifest is None:
            manifest = Manifest(
                kind="dataset", id=self.id, name=str(beside), digest=content_hash(log)
            )
        self.store.show("dataset", self.id, log, manifest)

    def _elsewhere(self) -> JsonObject:
        """Return where the responses and the items are that did not come into the folder."""
        found: JsonObject = {}
        for kind in ("run", "dataset"):
            own = self.folder / ROWS_FILE[kind]
            files = dict.fromkeys(named(run.files[kind]) for run in self._runs if kind in run.files)
            files.pop(named(own), None)
            if kind == "dataset":  # they have the same content, or the folder has them all
                files = {} if own.exists() else dict.fromkeys(list(files)[:1])
            if files:
                found[kind] = list(files) if len(files) > 1 else next(iter(files))
        return found

    def _note_missing_items(self, evaluation: Manifest) -> None:
        if not evaluation.counts.get("errored"):
            return
        items: set[str] = set()
        by_scorer: Counter[str] = Counter()
        for _, row in read_rows(self.store.log("evaluation", self.id), _Failure):
            if row.error is not None and row.error.endswith("is not in the dataset"):
                items.add(row.item_id)
                by_scorer[row.scorer] += 1
        if items:
            responses = max(by_scorer.values())
            self.progress.note(
                f"{responses} responses belong to {len(items)} items that are not in the dataset: they are error rows"
            )


class _Failure(msgspec.Struct):
    item_id: str
    scorer: str = ""
    error: str | None = None


def _folder(sources: Sequence[Source], output_dir: str | None) -> Path:
    """Return where the evaluations go: never over rows that are not ours."""
    if output_dir is not None:
        return local(output_dir)
    source = sources[0]
    if len(sources) > 1:
        fix = "name a folder with -o; with the same one next time, only what is new is scored"
        raise UserError(
            f"it is not clear where the evaluations of {len(sources)} sources should go", fix=fix
        )
    if source.folder is None:
        raise UserError(
            "it is not clear where the evaluations should go",
            where=str(source.path),
            fix="name a folder with -o: nothing is written beside a file that is not Assay's",
        )
    rows = source.folder / ROWS_FILE["evaluation"]
    if rows.exists() and not FlatStore(source.folder).ids("evaluation"):
        raise UserError(
            "these evaluations are not Assay's to replace",
            where=str(rows),
            fix="name a folder with -o",
        )
    return source.folder


# ---- measuring evaluations

UNUSED: JsonObject = {"dataset": None, "models": [], "tasks": [], "evaluation_methods": []}


def aggregate(
    paths: Paths,
    config: ConfigSource | None = None,
    *,
    output_dir: str | None = None,
    overrides: JsonMapping | None = None,
    retry_errors: bool = False,
    workers: int = 1,
) -> Experiment:
    """The experiment that computes the config's metrics from the evaluations of some folders or files, taken together.
    They are stored where there is a folder for them, otherwise only returned."""
    sources = find_each(paths, "evaluation")
    loaded = config_of(config, sources[0], "aggregate", {**UNUSED, **(overrides or {})})
    folder, why_not = (
        (local(output_dir), "") if output_dir is not None else _folder_of_metrics(sources)
    )
    for source in sources:
        if not source.looks_sealed("evaluation"):
            source.log("evaluation", "evaluate its responses first")
    options = Options(
        output_dir=str(folder or mkdtemp(prefix="assay-")),
        retry_errors=retry_errors,
        workers=workers,
    )
    experiment = ExistingEvaluations(loaded, options, sources, stored=folder is not None)
    if folder is None:
        experiment.progress.note(f"the metrics are not stored: {why_not}-o FOLDER stores them")
    return experiment


class ExistingEvaluations(Experiment):
    """Measures the evaluations of one or several sources, with the responses and items behind them. Where
    metrics are only returned, the folder is gone afterwards."""

    kinds = ("aggregation", "evaluation")
    kind = "aggregation"

    def __init__(
        self, config: Config, options: Options, sources: list[Source], *, stored: bool
    ) -> None:
        super().__init__(config, options)
        self.sources = sources
        self.stored = stored
        self._examines = False

    def close(self) -> None:
        if not self.stored:
            rmtree(self.folder, ignore_errors=True)

    def bind(self) -> BoundConfig:
        return BoundConfig({}, [], bind.bind_metrics(self.config))

    async def make(self, bound: BoundConfig, shared: Shared, stack: AsyncExitStack) -> None:
        store, old = self.store, self.manifest("aggregation")
        if self.options.retry_errors and old is not None:
            store.put_manifest(msgspec.structs.replace(old, complete=False))
        if self.stored and (note := keep_config(self.folder, self.config)):
            self.progress.note(note)

    def examine(self) -> None:
        self._examines = True

    def ids_to_measure(self) -> dict[str, list[str]]:
        """The ids under which the store shows each source's rows."""
        shown: dict[Kind, list[str]] = {"evaluation": [], "run": [], "dataset": []}
        for source in self.sources:
            is_own = source.folder and source.folder.absolute() == self.folder
            id = self.id if is_own else source.name
            for kind, ids in shown.items():
                if kind in source.files:
                    self.store.show(kind, id, *self._rows_of(source, kind))
                    ids.append(id)
        return {
            "evaluations": shown["evaluation"],
            "runs": shown["run"],
            "datasets": shown["dataset"],
        }

    def _rows_of(self, source: Source, kind: Kind) -> tuple[FileLog, Manifest | None]:
        """Return the rows of a source as the store shows them, and their manifest."""
        file, manifest = source.files[kind], source.manifest(kind)
        rows = FileLog(file)
        if kind == "run" and manifest is None and source.manifest("evaluation"):
            rows = keyed_log(file)
        if kind == "evaluation":
            if len(self.sources) > 1:
                rows = named_log(file, source.name)
            if self._examines or not source.looks_sealed(kind):
                evidence = source.evidence(kind)
                manifest, rows.hidden = evidence.manifest, evidence.log.hidden
        return rows, manifest


def _folder_of_metrics(sources: list[Source]) -> tuple[Path | None, str]:
    """Return where the metrics go without -o: beside the evaluations of one folder, never over
    somebody else's file; or why nowhere."""
    folder = sources[0].folder
    if len(sources) > 1 or folder is None:
        return None, ""
    theirs = [
        name for name in (ROWS_FILE["aggregation"], "metrics.json") if (folder / name).exists()
    ]
    if theirs and not FlatStore(folder).ids("aggregation"):
        return None, f"{theirs[0]} is not Assay's; "
    return folder, ""
