"""Metrics over evaluations that are there already, ours or anybody's: `assay aggregate`.

Rows are read where they are; what is made goes into one folder. The last functions serve `rescore` as well.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from assay.config import Config, Need, environment, load, resolved, to_yaml
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.calls.progress import Progress
from assay.engine.experiment import bind
from assay.engine.experiment.experiment import Result
from assay.engine.experiment.sources import KeyedLog, NamedLog, Source, View, find_sources
from assay.engine.experiment.status import log_to
from assay.errors import UserError
from assay.records import ROWS_FILE, Kind, MetricRow
from assay.store.files import write_file
from assay.store.log import FileLog
from assay.store.stores import FlatStore

ConfigSource = str | Path | Mapping[str, Any] | Config
UNUSED: dict[str, Any] = {"dataset": None, "models": [], "tasks": [], "evaluation_methods": []}  # to aggregate


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
        self.config = config_of(config, self.sources[0], "aggregate", {**UNUSED, **(overrides or {})})
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
                keep_config(self.folder, self.config)
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
                    rows = answers_of(source)
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


def answers_of(source: Source) -> FileLog:
    """The responses as evaluations that are ours refer to them."""
    file = source.files["run"]
    return FileLog(file) if source.manifest("run") is not None else KeyedLog(file)


def config_of(config: ConfigSource | None, source: Source, need: Need, overrides: Mapping[str, Any]) -> Config:
    if isinstance(config, Config):
        return config
    if config is None:
        config = (source.folder or source.path.parent) / "config.yaml"
        if source.folder is None or not config.is_file():
            raise UserError("there is no config", where=str(config), fix="name one with -c")
    return load(config, overrides=overrides, need=need)


def keep_config(folder: Path, config: Config) -> None:
    """A folder that has no config yet gets this one; that of its run stays."""
    file = folder / "config.yaml"
    if not file.exists():
        write_file(file, to_yaml(resolved(config)).encode())
