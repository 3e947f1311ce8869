"""Metrics over existing evaluations, ours or anybody's: `assay aggregate`.

Rows are read where they are; what is made goes into one folder.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import msgspec

from assay.engine.calls.executor import Shared
from assay.engine.experiment import bind
from assay.engine.experiment.evaluate import Paths
from assay.engine.experiment.experiment import Experiment, Options
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.responses import Bound, Measured, Responses
from assay.engine.experiment.runs import KeyedLog, NamedLog
from assay.engine.experiment.sources import ConfigSource, Source, config_of, keep_config
from assay.records import ROWS_FILE, Kind
from assay.store.log import FileLog
from assay.store.shared.mirror import local
from assay.store.stores import FlatStore

UNUSED: dict[str, Any] = {"dataset": None, "models": [], "tasks": [], "evaluation_methods": []}


def aggregate(
    paths: Paths,
    config: ConfigSource | None = None,
    *,
    output_dir: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    retry_errors: bool = False,
    workers: int = 1,
) -> Experiment:
    """The experiment that computes the config's metrics from the evaluations of some folders or files, taken together.
    They are stored where there is a folder for them, otherwise only returned."""
    sources = find_each(paths, "evaluation")
    loaded = config_of(config, sources[0], "aggregate", {**UNUSED, **(overrides or {})})
    folder, why_not = (local(output_dir), "") if output_dir is not None else _folder(sources)
    evaluations = ExistingEvaluations(sources, stored=folder is not None)
    options = Options(
        output_dir=str(folder or evaluations.scratch()), retry_errors=retry_errors, workers=workers
    )
    experiment = Experiment(loaded, options, responses=evaluations)
    if folder is None:
        experiment.progress.note(f"the metrics are not stored: {why_not}-o FOLDER stores them")
    return experiment


class ExistingEvaluations(Responses):
    """The evaluations of one or several sources, with the responses and items behind them."""

    kinds = ("aggregation", "evaluation")
    kind = "aggregation"

    def __init__(self, sources: list[Source], *, stored: bool) -> None:
        self.sources = sources
        self.stored = stored
        self._examines = False
        for source in sources:
            if not source.looks_sealed("evaluation"):
                source.log("evaluation", "evaluate its responses first")
        self._scratch = ""

    def scratch(self) -> str:
        """A folder that is gone afterwards, for metrics that are only returned."""
        self._scratch = mkdtemp(prefix="assay-")
        return self._scratch

    def close(self) -> None:
        if self._scratch:
            rmtree(self._scratch, ignore_errors=True)

    def bind(self, experiment: Experiment) -> Bound:
        return Bound({}, [], bind.bind_metrics(experiment.config))

    async def make(
        self, experiment: Experiment, bound: Bound, shared: Shared, stack: AsyncExitStack
    ) -> None:
        store, old = experiment.store, experiment.store.manifest("aggregation", experiment.id)
        if experiment.options.retry_errors and old is not None:
            store.put_manifest(msgspec.structs.replace(old, complete=False))
        if self.stored and (note := keep_config(experiment.folder, experiment.config)):
            experiment.progress.note(note)

    def examine(self) -> None:
        self._examines = True

    def measured(self, experiment: Experiment) -> Measured:
        """The ids under which the store shows each source's rows."""
        shown: dict[Kind, list[str]] = {"evaluation": [], "run": [], "dataset": []}
        for source in self.sources:
            ours = source.folder is not None and source.folder.absolute() == experiment.folder
            id = experiment.id if ours else source.name
            for kind, ids in shown.items():
                file = source.files.get(kind)
                if file is None:
                    continue
                rows, manifest = FileLog(file), source.manifest(kind)
                if kind == "run" and manifest is None and source.manifest("evaluation") is not None:
                    rows = KeyedLog(file)
                if kind == "evaluation":
                    if len(self.sources) > 1:
                        rows = NamedLog(file, source.name)
                    if self._examines or not source.looks_sealed(kind):
                        evidence = source.evidence(kind)
                        manifest, rows.hidden = evidence.manifest, evidence.log.hidden
                experiment.store.show(kind, id, rows, manifest)
                ids.append(id)
        return {
            "evaluations": shown["evaluation"],
            "runs": shown["run"],
            "datasets": shown["dataset"],
        }


def _folder(sources: list[Source]) -> tuple[Path | None, str]:
    """Where the metrics go without -o: beside the evaluations of one folder, never over somebody else's file; or why
    nowhere."""
    folder = sources[0].folder
    if len(sources) > 1 or folder is None:
        return None, ""
    theirs = [
        name for name in (ROWS_FILE["aggregation"], "metrics.json") if (folder / name).exists()
    ]
    if theirs and not FlatStore(folder).ids("aggregation"):
        return None, f"{theirs[0]} is not Assay's; "
    return folder, ""
