"""The two flows: models run on MixEval's entries, and response files made elsewhere; both end in the same scores.

Each is an ordinary experiment in a folder of its own, so that the same command resumes, nothing is paid or scored
twice, and every other command can read it. The original's files are written from its rows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from assay.config import Config
from assay.engine.calls.failures import UNANSWERED
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.experiment import (
    Experiment,
    Mode,
    Options as RunOptions,
    Result as ExperimentResult,
)
from assay.engine.experiment.imports.rows import import_rows
from assay.formats.mixeval.dataset import read_corrections
from assay.formats.mixeval.files import (
    EntryRows,
    ModelFolder,
    refuse_others,
    scores_of,
    verdict_files,
    write_responses,
    write_scores,
    write_verdicts,
)
from assay.formats.mixeval.finding import ModelFiles, find_responses
from assay.formats.mixeval.metric import OVERALL, ModelScores
from assay.formats.mixeval.plans import (
    MixEvalOptions,
    Parsers,
    benchmarks_of,
    config_of,
    earlier_models,
    version_of,
)
from assay.formats.mixeval.responses import HARMLESS, Import
from assay.sdk import UserError, safe_name
from assay.store.repositories import DatasetRepository
from assay.store.seal import seal
from assay.store.sealed import seal_folder


class BenchmarkScores(msgspec.Struct, kw_only=True):
    """The scores of all models on one benchmark, and where their rows and files are."""

    benchmark: str
    version: str
    level: float = 0.95
    scores: list[ModelScores] = []
    folders: list[str] = []


class Result(msgspec.Struct, kw_only=True):
    """What a command left behind. `problems` are those of the input: what could be scored was. `errors` says why rows
    failed, `failed` names the models and judges of which every row did."""

    scored: list[BenchmarkScores] = []
    problems: list[str] = []
    errors: list[str] = []
    failed: list[str] = []
    notes: list[str] = []


class _Flow:
    """What both flows begin with."""

    def __init__(self, options: MixEvalOptions, folder: str) -> None:
        self.options = options
        self.progress = Progress()
        self.version = version_of(options)
        self.benchmarks = benchmarks_of(options, self.version)
        self.root = Path(options.output_dir or folder)
        self.result = Result(notes=self.progress.notes)

    def _experiment(
        self,
        config: Config,
        models: Sequence[str] = (),
        mode: Mode | None = None,
    ) -> Experiment:
        options = self.options
        experiment = Experiment(
            config,
            RunOptions(
                mode=mode,
                models=models,
                limit=options.limit,
                max_concurrency=options.max_concurrency,
                retry_errors=options.retry_errors,
            ),
        )
        experiment.progress = self.progress
        self.progress.lanes.clear()  # the display shows one experiment at a time
        return experiment

    def _refuse_others(self, place: ModelFolder, parsers: Parsers, *, experiment: bool) -> None:
        """Before anything is spent: files of scores and verdicts are replaced only where Assay wrote them."""
        if not self.options.force:
            verdicts = [] if self.options.judged else verdict_files(parsers)
            place.refuse_others([*verdicts, "score.json", "scores.json"], experiment=experiment)

    def _scores(
        self,
        experiment: Experiment,
        done: ExperimentResult,
        parsers: Parsers,
        benchmark: str,
        model: str = "",
    ) -> tuple[EntryRows, list[ModelScores]]:
        """Return the scores of an experiment, of all its models or of the one whose responses are
        in an order of their own; tell why rows failed. What responses lack was told when they were
        read."""
        where = f"{model} on {benchmark}" if model else benchmark
        lines: list[str] = []
        for failures in done.failures:
            failures.reasons = [
                reason for reason in failures.reasons if not reason.error.startswith(UNANSWERED)
            ]
            lines += failures.lines()
        self.result.errors += [f"{where}: {line}" for line in lines]
        self.result.failed += [f"{name} on {where}" for name in done.failed]
        store, id = experiment.store, experiment.id
        joined = EntryRows(store, id, file_order=bool(model))
        dataset = store.manifest("dataset", id)
        entries = dataset.counts.get("items", 0) if dataset else 0
        scores = scores_of(done.metrics, parsers.shown, joined, entries)
        for score in scores:
            whole = score.cells[OVERALL]
            score.errors = lines if whole.errored else []
            if whole.errored and not whole.entries:
                self.result.failed.append(f"{score.label} of {score.model} on {benchmark}")
        return joined, scores

    def _write_model(
        self,
        joined: EntryRows,
        model: str,
        place: ModelFolder,
        parsers: Parsers,
        scores: Sequence[ModelScores],
    ) -> None:
        if not self.options.judged:
            write_verdicts(joined, model, place, parsers, trim_base=self.options.trim_base)
        write_scores(place, [entry for entry in scores if entry.model == model])


class MixEvalRun(_Flow):
    """Models on the entries of one or several benchmarks."""

    def __init__(self, options: MixEvalOptions) -> None:
        if not options.models:
            raise UserError(
                "which model runs?", fix="name it with -m, such as -m demo:small or -m NAME@URL"
            )
        super().__init__(options, "mixeval_responses")

    async def run(self, stop: Stop | None = None) -> Result:
        for benchmark in self.benchmarks:
            self.result.scored.append(await self._benchmark(benchmark, stop))
        return self.result

    async def _benchmark(self, benchmark: str, stop: Stop | None) -> BenchmarkScores:
        folder = self.root / benchmark / safe_name(self.version)
        config, parsers = config_of(self.options, benchmark, self.version, folder, "run")
        chosen = [model.name for model in config.models if not model.helper]
        config = msgspec.structs.replace(
            config, models=[*config.models, *earlier_models(folder, config)]
        )
        experiment = self._experiment(config, chosen)
        stored = EntryRows(experiment.store, experiment.id, file_order=False)
        for model in (model.name for model in config.models if not model.helper):
            place = self._place(model, benchmark)
            self._refuse_others(place, parsers, experiment=False)
            refuse_others(stored, model, place, benchmark)
        done = await experiment.run(stop)
        return await asyncio.to_thread(self._write, experiment, done, parsers, benchmark)

    def _write(
        self, experiment: Experiment, done: ExperimentResult, parsers: Parsers, benchmark: str
    ) -> BenchmarkScores:
        joined, scores = self._scores(experiment, done, parsers, benchmark)
        folders = [str(self.root / benchmark / safe_name(self.version))]
        for model in joined.models:
            place = self._place(model, benchmark)
            write_responses(joined, model, place, benchmark, self.options.layout)
            self._write_model(joined, model, place, parsers, scores)
            folders.append(str(place.folder))
        level = experiment.config.ci_level
        return BenchmarkScores(
            benchmark=benchmark, version=self.version, level=level, scores=scores, folders=folders
        )

    def _place(self, model: str, benchmark: str) -> ModelFolder:
        return ModelFolder(self.root / safe_name(model) / benchmark / safe_name(self.version))


class MixEvalScore(_Flow):
    """Response files made elsewhere, of one or several models."""

    def __init__(self, paths: Sequence[str], options: MixEvalOptions) -> None:
        super().__init__(options, "mixeval_scores")
        self.paths = paths
        self._first: dict[str, Experiment] = {}

    async def run(self, stop: Stop | None = None) -> Result:
        """A model whose files cannot be scored is a problem of the result, unless there is no other."""
        result = self.result
        for benchmark in self.benchmarks:
            scored = BenchmarkScores(benchmark=benchmark, version=self.version)
            refused: list[tuple[str, UserError]] = []
            for files in find_responses(
                self.paths, benchmark, self.version, judged=self.options.judged
            ):
                try:
                    await self._model(files, benchmark, scored, stop)
                except UserError as error:
                    refused.append((files.model, error))
            if refused and not scored.scores:
                raise refused[0][1]
            result.problems += [f"{model} on {benchmark}: {error}" for model, error in refused]
            result.scored.append(scored)
        return result

    def _tell_odd(self, odd: Mapping[str, str], where: str) -> None:
        for what, said in odd.items():
            told = self.progress.notes if what in HARMLESS else self.result.problems
            told.append(f"{where}: {said}")

    async def _model(
        self, files: ModelFiles, benchmark: str, scored: BenchmarkScores, stop: Stop | None
    ) -> None:
        folder = self.root / safe_name(files.model) / benchmark / safe_name(self.version)
        folder = folder / "judged" if self.options.judged else folder
        config, parsers = config_of(self.options, benchmark, self.version, folder, "evaluate")
        place = ModelFolder(folder)
        self._refuse_others(place, parsers, experiment=True)
        experiment = self._experiment(config, mode="evaluation")
        _share_items(self._first.setdefault(benchmark, experiment), experiment)
        odd = await asyncio.to_thread(_import, experiment, files)
        self._tell_odd(odd, f"{files.model} on {benchmark}")
        done = await experiment.run(stop)
        joined, scores = await asyncio.to_thread(
            self._scores, experiment, done, parsers, benchmark, files.model
        )
        await asyncio.to_thread(self._write_model, joined, files.model, place, parsers, scores)
        await asyncio.to_thread(seal_folder, folder)
        scored.level = experiment.config.ci_level
        scored.scores += scores
        scored.folders.append(str(folder))


def _import(experiment: Experiment, files: ModelFiles) -> dict[str, str]:
    """Make a model's files the experiment's responses; returns what is odd about them."""
    store, id = experiment.store, experiment.id
    experiment.progress.begin("run")
    with store.lock("run", id):
        dataset = experiment.ingest()
        source = experiment.config.dataset
        corrections = read_corrections(source.params.get("corrections", "") if source else "")
        left_out = {entry for entry, change in corrections.items() if change is None}
        imported = Import(files, DatasetRepository(store).index(id), left_out)
        stamps = {kind: content_stamp(path.absolute()) for kind, path in files.files.items()}
        manifest = import_rows(
            store,
            "run",
            id,
            imported.responses(),
            source={"model": files.model, "files": stamps},
            inputs=[{"kind": "dataset", "id": id, "digest": dataset.digest}],
            name=experiment.config.name,
        )
        if imported.read:
            manifest.metadata = {**manifest.metadata, "odd": imported.odd.notes()}
            store.put_manifest(manifest)
    return manifest.metadata.get("odd", {})


def _share_items(first: Experiment, other: Experiment) -> None:
    """The data are read and checked once for all models: the others get a copy of the items."""
    manifest = first.store.manifest("dataset", first.id)
    if first is other or manifest is None or other.store.ids("dataset"):
        return
    log = other.store.log("dataset", other.id)
    log.replace(first.store.log("dataset", first.id).blocks())
    copy = msgspec.structs.replace(manifest, id=other.id)
    seal(copy, log)
    other.store.put_manifest(copy)
