"""The second executor: responses → labels, one row each.

A scorer call with existing rows is not made again. All labels of a call are one commit. A scorer that raises,
hangs or returns nonsense gives an error row; a response that is an error, or was refused, is never scored.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from assay.engine.calls.executor import Executor, Shared
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.directions import LOWER
from assay.engine.evaluate.job import EvaluationJob
from assay.engine.evaluate.judges import OWN_ANSWERS, own_answers
from assay.engine.run.evidence import PARTIAL, partial_of
from assay.engine.run.plan import is_finished, plan_digest, refuse_repeated
from assay.errors import UserError
from assay.interfaces import Store
from assay.records import Manifest
from assay.threads import blocking


class Evaluator(Executor):
    """Scores stored runs; scorers that are not async run in as many `threads`."""

    def __init__(self, store: Store, *, threads: int = 8, **shared: Unpack[Shared]) -> None:
        super().__init__(store, **shared)
        self.threads = threads

    async def evaluate_async(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str = "",
        name: str = "",
        dataset: str = "",
        retry_errors: bool | None = False,
        budget: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """The evaluation's manifest, when every call has its rows. `dataset`: where the runs do not say it. With a
        `budget` only this many matches are played, those that tell most about who is better. `metadata` is for the
        manifest."""
        manifest, source = self.describe(runs, scorers, id=id, dataset=dataset, budget=budget)
        self.progress.begin("evaluate")
        with self.store.lock("evaluation", manifest.id):
            old = self.store.manifest("evaluation", manifest.id)
            rows = self.store.log("evaluation", manifest.id)
            if old is not None and is_finished(old, manifest.digest, rows, retry_errors):
                self.show_present((scorer.name for scorer in scorers), old)
                return old
            self.go_on(manifest, old, scorers, runs, name=name, metadata=metadata or {})
            items = self.datasets.index(source)
            return await EvaluationJob(self, manifest, items, runs, scorers).run(
                retry_errors, budget
            )

    evaluate = blocking(evaluate_async)

    def describe(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str,
        dataset: str,
        budget: int | None = None,
    ) -> tuple[Manifest, str]:
        """The manifest of an evaluation before it begins, and the id of its dataset."""
        check_scorers(runs, scorers)
        inputs, source = self.inputs(runs, dataset)
        plan: dict[str, Any] = {"runs": inputs, "scorers": [planned(scorer) for scorer in scorers]}
        if budget is not None:
            plan["matches"] = budget
        id = id or plan_digest(plan)[:16]  # what is declared of labels does not change them
        plan["scorers"] = [planned(scorer) | scorer.declared for scorer in scorers]
        digest, now = plan_digest(plan), time.time()
        return Manifest(
            kind="evaluation", id=id, started=now, digest=digest, plan=plan, inputs=inputs
        ), source

    def inputs(self, runs: Sequence[str], dataset: str) -> tuple[list[dict[str, Any]], str]:
        """What an evaluation of these runs is made from, and the id of its dataset."""
        inputs: list[dict[str, Any]] = []
        sources: dict[str, None] = {dataset: None} if dataset else {}
        for run in runs:
            manifest = self.store.manifest("run", run)
            segments = self.store.log("run", run).segments()
            if manifest is None and not segments:
                raise UserError(
                    f"there is no run {run!r}", fix=f"stored: {', '.join(self.store.ids('run'))}"
                )
            stats = [(segment.name, segment.size, segment.mtime_ns) for segment in segments]
            entry = {
                "kind": "run",
                "id": run,
                "digest": manifest.digest if manifest else "",
                "rows": stats,
            }
            partial = partial_of([manifest])
            inputs.append({**entry, PARTIAL: partial} if partial else entry)
            if manifest is not None and not dataset:
                sources.update(
                    (entry["id"], None)
                    for entry in manifest.inputs
                    if entry.get("kind") == "dataset"
                )
        if len(sources) != 1:
            known = ", ".join(map(repr, sources)) or "none"
            raise UserError(
                f"the runs must share one dataset, found {known}", fix="evaluate them one by one"
            )
        source = next(iter(sources))
        stored = self.store.manifest("dataset", source)
        inputs.append({"kind": "dataset", "id": source, "digest": stored.digest if stored else ""})
        return inputs, source

    def go_on(
        self,
        manifest: Manifest,
        old: Manifest | None,
        scorers: Sequence[BoundScorer],
        runs: Sequence[str],
        *,
        name: str,
        metadata: Mapping[str, Any],
    ) -> None:
        """Take over what an earlier evaluation's manifest says, and what this one is to remember. A judge is kinder to
        its own answers: metrics of such rows say so."""
        manifest.name = name or (old.name if old else "")
        manifest.created = old.created if old else manifest.started
        manifest.metadata = {**(old.metadata if old else {}), **metadata}
        judges = {scorer.name: scorer.judges for scorer in scorers if scorer.judges}
        found = own_answers(judges, [self.store.manifest("run", run) for run in runs])
        manifest.metadata.pop(OWN_ANSWERS, None)
        if found:
            manifest.metadata[OWN_ANSWERS] = found


def planned(scorer: BoundScorer) -> dict[str, Any]:
    """What a plan says of a scorer."""
    found: dict[str, Any] = {
        "name": scorer.name,
        "identity": scorer.identity.hex(),
        "params": scorer.params,
    }
    if scorer.of_several:
        found |= {
            "player": scorer.player,
            "both_seats": scorer.both_seats,
            "skip_failures": scorer.skip_failures,
        }
    if scorer.lower_is_better:
        found[LOWER] = True
    if scorer.limit is not None:
        found["limit"] = scorer.limit
    if scorer.people is not None:
        found["people"] = scorer.people.digest
    return found


def check_scorers(runs: Sequence[str], scorers: Sequence[BoundScorer]) -> None:
    if not runs:
        raise UserError("there is no run to evaluate", fix="name at least one run")
    if not scorers:
        raise UserError("there is nothing to score with", fix="add `evaluation_methods:`")
    refuse_repeated(scorers, "scorers", "give one of them another `name:`")
