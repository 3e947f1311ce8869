"""Scoring and metrics over rows that are there already, ours or anybody's: `assay evaluate` and `assay aggregate`.

They drive the same executors as `assay run`. Rows are read where they are; what is made goes into one folder.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from assay.config import Config, Need, environment, load, resolved, to_yaml
from assay.errors import UserError
from assay.records import ROWS_FILE, Kind, Manifest, MetricRow
from assay.steps import bind
from assay.steps.aggregate import Aggregator
from assay.steps.experiment import Experiment, Options, Result
from assay.steps.logs import log_to
from assay.steps.progress import Progress
from assay.steps.sources import ELSEWHERE, Source, find_source, find_sources
from assay.steps.stop import Stop
from assay.steps.usable import bind_usable
from assay.steps.views import KeyedLog, NamedLog, View
from assay.store.files import write_file
from assay.store.index import content_hash
from assay.store.log import FileLog
from assay.store.stores import FlatStore

ConfigSource = str | Path | Mapping[str, Any] | Config
UNUSED: dict[str, Any] = {"dataset": None, "models": [], "tasks": [], "evaluation_methods": []}  # to aggregate


class Rescoring(Experiment):
    """Scores responses again, or for the first time, and computes the config's metrics."""

    def __init__(
        self,
        path: str | Path,
        config: ConfigSource | None = None,
        *,
        output_dir: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        retry_errors: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.source = find_source(path, "run")
        self.responses = self.source.log("run", "run a config first, or name a file with rows")
        folder = _folder(self.source, output_dir)
        given = dict(overrides or {})
        self.given_dataset = config is not None or "dataset" in given
        unused: dict[str, Any] = {"tasks": []}
        if not self.given_dataset and "dataset" in self.source.files:
            unused["dataset"] = None  # the folder's items do: the file that they came from may be gone
        loaded = _config(config, self.source, "evaluate", {**unused, **given})
        super().__init__(loaded, Options(output_dir=str(folder), retry_errors=retry_errors), environ=environ)
        self.view = self.store = View(self.folder)
        ids = [*self.store.ids("evaluation"), *self.store.ids("dataset"), *self.store.ids("run"), self.store.id]
        self.id = ids[0]

    async def run(self, stop: Stop | None = None) -> Result:
        os.environ.update(environment(self.config, self.environ))
        models = bind_usable(self.config, self.environ)
        scorers, metrics = bind.bind_scorers(self.config, models), bind.bind_metrics(self.config)
        result = Result(folder=str(self.folder), notes=self.progress.notes)
        async with AsyncExitStack() as stack:
            for model in models.values():
                stack.push_async_callback(model.close)
            stack.enter_context(self.store.lock("evaluation", self.id))
            stack.enter_context(log_to(self.config.logging))
            self.view.show("run", self.id, self.responses, self.source.manifest("run"))
            self._find_items()
            _keep_config(self.folder, self.config)
            result.evaluation = await self._score(self._around(models, stop), scorers)
            self._remember(result.evaluation)
            self._note_missing_items(result.evaluation)
            if metrics:
                self.view.show("run", self.id, _answers(self.source), self.source.manifest("run"))
                result.metrics = await self._measure(metrics)
            elif self._metrics_are_older(result.evaluation):
                self.progress.note("the config has no metrics: those in the folder are of earlier evaluations")
        return result

    def _metrics_are_older(self, evaluation: Manifest) -> bool:
        old = self.store.manifest("aggregation", self.id)
        return old is not None and evaluation.digest not in [entry.get("digest") for entry in old.inputs]

    def _find_items(self) -> None:
        """The dataset of an explicit config; else the items beside the responses; else what the config names."""
        own = self.folder / ROWS_FILE["dataset"]
        beside = self.source.files.get("dataset")
        foreign = own.exists() and not self.store.ids("dataset")
        named = self.config.dataset
        if foreign and (named is None or named.path in (str(own.absolute()), [str(own.absolute())])):
            beside = own
        elif foreign:
            raise UserError(
                "the folder has items of its own, which are not Assay's to replace",
                where=str(own),
                fix="choose another folder with -o, or leave `dataset` out of the config",
            )
        elif named is not None and (self.given_dataset or beside is None):
            self.ingest()
            return
        if beside is None:
            raise UserError(
                "there is no ground truth for these responses",
                where=str(self.source.path),
                fix="name their dataset in a config: `dataset: items.jsonl`, and pass it with -c",
            )
        log = FileLog(beside)
        manifest = Source(path=beside, name="", files={"dataset": beside}).manifest("dataset")
        if manifest is None:
            manifest = Manifest(kind="dataset", id=self.id, name=str(beside), digest=content_hash(log))
        self.view.show("dataset", self.id, log, manifest)

    def _remember(self, evaluation: Manifest) -> None:
        """Where the responses and the items are that did not come into the folder."""
        elsewhere = {
            kind: str(file.absolute())
            for kind, file in self.source.files.items()
            if kind in ("run", "dataset") and not (self.folder / ROWS_FILE[kind]).exists()
        }
        if evaluation.metadata.get(ELSEWHERE, {}) != elsewhere:
            evaluation.metadata = {**evaluation.metadata, ELSEWHERE: elsewhere}
            self.store.put_manifest(evaluation)

    def _note_missing_items(self, evaluation: Manifest) -> None:
        if not evaluation.counts.get("errored"):
            return
        decode = msgspec.json.Decoder(_Failure).decode
        items: set[str] = set()
        by_scorer: Counter[str] = Counter()
        for _, line in self.store.log("evaluation", self.id).scan():
            row = decode(line)
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


class Reaggregation:
    """Computes metrics from the evaluations of one or several sources, taken together."""

    def __init__(
        self,
        paths: Sequence[str | Path],
        config: ConfigSource | None = None,
        *,
        output_dir: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        retry_errors: bool = False,
    ) -> None:
        self.sources = find_sources(list(paths), "evaluation")
        self.logs = [source.log("evaluation", "evaluate its responses first") for source in self.sources]
        self.config = _config(config, self.sources[0], "aggregate", {**UNUSED, **(overrides or {})})
        self.retry_errors = retry_errors
        self.progress = Progress()
        self.folder = self._own_folder() if output_dir is None else Path(output_dir)

    def run(self) -> Result:
        """The metrics; stored where there is a folder for them, otherwise only returned."""
        os.environ.update(environment(self.config, None))
        metrics = bind.bind_metrics(self.config)
        with ExitStack() as stack:
            folder = self.folder or Path(stack.enter_context(TemporaryDirectory(prefix="assay-")))
            store = View(folder)
            id = next(iter([*store.ids("aggregation"), *store.ids("evaluation")]), store.id)
            stack.enter_context(store.lock("aggregation", id))
            stack.enter_context(log_to(self.config.logging))
            shown = self._show(store, id)
            old = store.manifest("aggregation", id)
            if self.retry_errors and old is not None:
                store.put_manifest(msgspec.structs.replace(old, complete=False))
            if self.folder is not None:
                _keep_config(self.folder, self.config)
            self.progress.begin("aggregate")
            rows: list[MetricRow] = Aggregator(store).aggregate(
                shown["evaluation"],
                metrics,
                id=id,
                name=self.config.name,
                runs=shown["run"],
                datasets=shown["dataset"],
            )
        return Result(folder=str(self.folder or ""), metrics=rows, notes=self.progress.notes)

    def _show(self, store: View, id: str) -> dict[Kind, list[str]]:
        """The ids under which the store shows each source's rows."""
        shown: dict[Kind, list[str]] = {"evaluation": [], "run": [], "dataset": []}
        several = len(self.sources) > 1
        for source, log in zip(self.sources, self.logs, strict=True):
            own = id if source.folder is not None and source.folder == self.folder else source.name
            for kind, ids in shown.items():
                file = source.files.get(kind)
                if file is None:
                    continue
                rows = log if kind == "evaluation" else FileLog(file)
                if kind == "run" and source.manifest("evaluation") is not None:
                    rows = _answers(source)
                if several and kind == "evaluation":
                    rows = NamedLog(file, source.name)
                store.show(kind, own, rows, source.manifest(kind))
                ids.append(own)
        return shown

    def _own_folder(self) -> Path | None:
        """Where the metrics go without -o: beside the evaluations of one folder, never over somebody else's file."""
        folder = self.sources[0].folder
        if len(self.sources) > 1 or folder is None:
            self.progress.note("the metrics are not stored: -o FOLDER stores them")
            return None
        theirs = [name for name in (ROWS_FILE["aggregation"], "metrics.json") if (folder / name).exists()]
        if theirs and not FlatStore(folder).ids("aggregation"):
            self.progress.note(f"the metrics are not stored: {theirs[0]} is not Assay's; -o FOLDER stores them")
            return None
        return folder


def _answers(source: Source) -> FileLog:
    """The responses as evaluations that are ours refer to them."""
    file = source.files["run"]
    return FileLog(file) if source.manifest("run") is not None else KeyedLog(file)


def _folder(source: Source, output_dir: str | None) -> Path:
    """Where the evaluations go: never over rows that are not ours."""
    if output_dir is not None:
        return Path(output_dir)
    if source.folder is None:
        raise UserError(
            "it is not clear where the evaluations should go",
            where=str(source.path),
            fix="name a folder with -o: nothing is written beside a file that is not Assay's",
        )
    rows = source.folder / ROWS_FILE["evaluation"]
    if rows.exists() and not FlatStore(source.folder).ids("evaluation"):
        raise UserError("these evaluations are not Assay's to replace", where=str(rows), fix="name a folder with -o")
    return source.folder


def _config(config: ConfigSource | None, source: Source, need: Need, overrides: Mapping[str, Any]) -> Config:
    if isinstance(config, Config):
        return config
    if config is None:
        config = (source.folder or source.path.parent) / "config.yaml"
        if source.folder is None or not config.is_file():
            raise UserError("there is no config", where=str(config), fix="name one with -c")
    return load(config, overrides=overrides, need=need)


def _keep_config(folder: Path, config: Config) -> None:
    """A folder that has no config yet gets this one; that of its run stays."""
    file = folder / "config.yaml"
    if not file.exists():
        write_file(file, to_yaml(resolved(config)).encode())
