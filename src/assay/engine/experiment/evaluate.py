"""Scoring responses that are there already, ours or anybody's, of one run or of several: `assay evaluate`.

It drives the same executors as `assay run`. Rows are read where they are; what is made goes into one folder.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from assay.config import environment
from assay.engine.calls.executor import Shared
from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment import bind
from assay.engine.experiment.aggregate import ConfigSource, answers_of, config_of, keep_config
from assay.engine.experiment.bind import bind_usable
from assay.engine.experiment.experiment import Experiment, Options, Result
from assay.engine.experiment.runs import items_of, refuse_lost_runs, runs_of, take_over, unite_items
from assay.engine.experiment.sources import ELSEWHERE, Source, View, find_sources
from assay.engine.experiment.status import log_to
from assay.errors import UserError
from assay.records import ROWS_FILE, Manifest
from assay.store.index import content_hash
from assay.store.log import FileLog
from assay.store.stores import FlatStore


class Rescoring(Experiment):
    """Scores the responses of one or several sources, again or for the first time, and computes the config's metrics.

    Where answers meet in matches, the runs behind an evaluation that is in the folder already take part: a run that
    is added later plays only its own matches. `budget` is how many matches are played, those that tell most.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        config: ConfigSource | None = None,
        *,
        output_dir: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        retry_errors: bool = False,
        budget: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.given = find_sources([paths] if isinstance(paths, (str, Path)) else list(paths), "run")
        for source in self.given:
            source.log("run", "run a config first, or name a file with rows")
        self.runs = runs_of(self.given)
        self.source = self.given[0]
        self.budget = budget
        folder = _folder(self.given, output_dir)
        given = dict(overrides or {})
        self.given_dataset = config is not None or "dataset" in given
        unused: dict[str, Any] = {"tasks": []}
        if not self.given_dataset and "dataset" in self.source.files:
            unused["dataset"] = None  # the folder's items do: the file that they came from may be gone
        loaded = config_of(config, self.source, "evaluate", {**unused, **given})
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
            self._gather(scorers)
            self._show_runs(lambda run: FileLog(run.files["run"]))
            self._find_items()
            keep_config(self.folder, self.config)
            result.evaluation = await self._score(self._around(models, stop), scorers)
            self._remember(result.evaluation)
            self._note_missing_items(result.evaluation)
            if metrics:
                self._show_runs(answers_of)
                result.metrics = await self._measure(metrics)
            elif self._metrics_are_older(result.evaluation):
                self.progress.note("the config has no metrics: those in the folder are of earlier evaluations")
        return result

    def _gather(self, scorers: Sequence[BoundScorer]) -> None:
        """For matches: the runs behind the earlier evaluation in the folder, and the rows of others."""
        if not any(scorer.form == "match" for scorer in scorers):
            if self.budget is not None:
                fix = "add an evaluation method with `type: pairwise`"
                raise UserError("a budget of matches needs a method that plays them", fix=fix)
            return
        refuse_lost_runs([self.folder, *(source.folder for source in self.given if source.folder)])
        named = {run.files["run"].resolve() for run in self.runs}
        self.runs = runs_of(self.given, self.folder)
        joined = [run.name for run in self.runs if run.files["run"].resolve() not in named]
        if joined:
            self.progress.note(f"with the runs of the earlier evaluation in the folder: {', '.join(joined)}")
        others = [each for each in (*self.given, *self.runs) if each.folder is None or each.folder != self.folder]
        names = [scorer.name for scorer in scorers]
        take_over(self.store, self.id, others, names, self.progress.note)

    def _show_runs(self, log: Callable[[Source], FileLog]) -> None:
        for run, id in zip(self.runs, self._run_ids, strict=True):
            self.view.show("run", id, log(run), run.manifest("run"))

    @property
    def _run_ids(self) -> list[str]:
        return [self.id] if len(self.runs) == 1 else [run.name for run in self.runs]

    async def _score(self, around: Shared, scorers: Sequence[BoundScorer]) -> Manifest:
        return await Evaluator(self.store, **around).evaluate_async(
            self._run_ids,
            scorers,
            id=self.id,
            name=self.config.name,
            dataset=self.id,
            retry_errors=self.options.retry_errors,
            budget=self.budget,
            metadata={ELSEWHERE: self._elsewhere()},
        )

    def _metrics_are_older(self, evaluation: Manifest) -> bool:
        old = self.store.manifest("aggregation", self.id)
        return old is not None and evaluation.digest not in [entry.get("digest") for entry in old.inputs]

    def _find_items(self) -> None:
        """The dataset of an explicit config; else the items beside the responses; else what the config names."""
        own = self.folder / ROWS_FILE["dataset"]
        files = items_of(self.runs)
        if [source.folder for source in self.given] == [self.folder] and "dataset" in self.source.files:
            files = [self.source.files["dataset"]]
        beside = files[0] if files else None
        foreign = own.exists() and not self.store.ids("dataset")
        named = self.config.dataset
        if foreign and (named is None or named.path in (str(own.absolute()), [str(own.absolute())])):
            beside, files = own, [own]
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
        if len(files) > 1:
            if (self.folder / ROWS_FILE["run"]).exists():
                fix = "choose another folder with -o"
                raise UserError("the runs have different items, and this folder is one run's", where=str(own), fix=fix)
            unite_items(self.store, self.id, files)
            return
        log = FileLog(beside)
        manifest = Source(path=beside, name="", files={"dataset": beside}).manifest("dataset")
        if manifest is None:
            manifest = Manifest(kind="dataset", id=self.id, name=str(beside), digest=content_hash(log))
        self.view.show("dataset", self.id, log, manifest)

    def _elsewhere(self) -> dict[str, Any]:
        """Where the responses and the items are that did not come into the folder."""
        found: dict[str, Any] = {}
        for kind in ("run", "dataset"):
            own = self.folder / ROWS_FILE[kind]
            files = dict.fromkeys(str(run.files[kind].absolute()) for run in self.runs if kind in run.files)
            files.pop(str(own.absolute()), None)
            if kind == "dataset":  # they have the same content, or the folder has them all
                files = {} if own.exists() else dict.fromkeys(list(files)[:1])
            if files:
                found[kind] = list(files) if len(files) > 1 else next(iter(files))
        return found

    def _remember(self, evaluation: Manifest) -> None:
        """An evaluation that was finished before may have been made from the same rows at another place."""
        elsewhere = self._elsewhere()
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


def _folder(sources: Sequence[Source], output_dir: str | None) -> Path:
    """Where the evaluations go: never over rows that are not ours."""
    if output_dir is not None:
        return Path(output_dir)
    source = sources[0]
    if len(sources) > 1:
        fix = "name a folder with -o; with the same one next time, only what is new is scored"
        raise UserError(f"it is not clear where the evaluations of {len(sources)} sources should go", fix=fix)
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
