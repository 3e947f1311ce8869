"""Metrics over existing evaluations, ours or anybody's: `assay aggregate`.

Rows are read where they are; what is made goes into one folder.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import msgspec

from assay.config import Config
from assay.engine.calls.executor import Shared
from assay.engine.experiment import bind
from assay.engine.experiment.experiment import BoundConfig, Experiment, Options
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.runs import keyed_log, named_log
from assay.engine.experiment.sources import ConfigSource, Source, config_of, keep_config
from assay.reading import Paths
from assay.records import ROWS_FILE, JsonMapping, JsonObject, Kind, Manifest
from assay.store.log import FileLog
from assay.store.shared.mirror import local
from assay.store.stores import FlatStore

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
    folder, why_not = (local(output_dir), "") if output_dir is not None else _folder(sources)
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


def _folder(sources: list[Source]) -> tuple[Path | None, str]:
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
