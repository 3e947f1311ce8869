"""The second executor: responses → labels, one row each.

A scorer call with existing rows is not made again. All labels of a call are one commit. A scorer that raises,
hangs or returns nonsense gives an error row; a response that is an error, or was refused, is never scored.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Unpack

from assay.engine.calls.executor import Executor, Shared
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.directions import LOWER
from assay.engine.evaluate.job import EvaluationJob
from assay.engine.evaluate.judges import OWN_ANSWERS, own_answers
from assay.engine.run.artefact import input_of, new_manifest
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
        """Return the evaluation's manifest, when every call has its rows. `dataset`: where the runs do not say it. With
        a `budget` only this many matches are played, those that tell most about who is better. `metadata` is for the
        manifest."""
        id, plan, source = self.describe(runs, scorers, id=id, dataset=dataset, budget=budget)
        self.progress.begin("evaluate")
        with self.store.lock("evaluation", id):
            old = self.store.manifest("evaluation", id)
            rows = self.store.log("evaluation", id)
            if old is not None and is_finished(old, plan_digest(plan), rows, retry_errors):
                self.show_present((scorer.name for scorer in scorers), old)
                return old
            manifest = self.new_manifest(id, plan, runs, scorers, name=name, metadata=metadata)
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
    ) -> tuple[str, dict[str, Any], str]:
        """Return the id of an evaluation, its plan, and the id of its dataset."""
        check_scorers(runs, scorers)
        inputs, source = self.inputs(runs, dataset)
        plan: dict[str, Any] = {"runs": inputs, "scorers": [planned(scorer) for scorer in scorers]}
        if budget is not None:
            plan["matches"] = budget
        id = id or plan_digest(plan)[:16]  # what is declared of labels does not change them
        plan["scorers"] = [planned(scorer) | scorer.declared for scorer in scorers]
        return id, plan, source

    def inputs(self, runs: Sequence[str], dataset: str) -> tuple[list[dict[str, Any]], str]:
        """Return what an evaluation of these runs is made from, and the id of its dataset."""
        inputs = [input_of(self.store, "run", run) for run in runs]
        sources = [dataset] if dataset else self._datasets_of(runs)
        if len(sources) != 1:
            known = ", ".join(map(repr, sources)) or "none"
            raise UserError(
                f"the runs must share one dataset, found {known}", fix="evaluate them one by one"
            )
        stored = self.store.manifest("dataset", sources[0])
        digest = stored.digest if stored else ""
        return [*inputs, {"kind": "dataset", "id": sources[0], "digest": digest}], sources[0]

    def _datasets_of(self, runs: Sequence[str]) -> list[str]:
        manifests = (self.store.manifest("run", run) for run in runs)
        entries = chain.from_iterable(manifest.inputs for manifest in filter(None, manifests))
        return list(dict.fromkeys(entry["id"] for entry in entries if entry["kind"] == "dataset"))

    def new_manifest(
        self,
        id: str,
        plan: dict[str, Any],
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        name: str,
        metadata: Mapping[str, Any] | None,
    ) -> Manifest:
        """Return the manifest of an evaluation that begins, with what an earlier one remembers and what this one is to
        remember. A judge is kinder to its own answers: metrics of such rows say so."""
        old = self.store.manifest("evaluation", id)
        manifest = new_manifest(old, "evaluation", id, plan, name=name, inputs=plan["runs"])
        manifest.metadata = {**(old.metadata if old else {}), **(metadata or {})}
        judges = {scorer.name: scorer.judges for scorer in scorers if scorer.judges}
        found = own_answers(judges, [self.store.manifest("run", run) for run in runs])
        manifest.metadata.pop(OWN_ANSWERS, None)
        if found:
            manifest.metadata[OWN_ANSWERS] = found
        return manifest


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
