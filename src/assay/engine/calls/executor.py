"""What Runner and Evaluator have in common: where rows are, which models may be called, and how far they may go."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TypedDict, Unpack

from assay.engine.calls.budget import Budget
from assay.engine.calls.context import Surroundings
from assay.engine.calls.lanes import Lanes, Paces
from assay.engine.calls.log import CallLog
from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.calls.stop import Stop
from assay.sdk import Kind, LaneError, Limits, Manifest, Model, Store
from assay.store.repositories import DatasetRepository
from assay.threads import Threads


class Shared(TypedDict, total=False):
    """`models` can be called by tasks and scorers; `limits` are by lane, that is by model; `paces` are a worker's part
    of limits that several share; calls in flight have `grace` seconds after a request to stop; `datasets`, shared by
    steps, is indexed once."""

    models: Mapping[str, Model]
    limits: Mapping[str, Limits]
    default_limits: Limits
    seed: int
    grace: float
    progress: Progress
    stop: Stop | None
    budget: Budget | None
    paces: Paces | None
    datasets: DatasetRepository


class Executor:
    def __init__(self, store: Store, **shared: Unpack[Shared]) -> None:
        self.store = store
        self.models = dict(shared.get("models", {}))
        self.limits = dict(shared.get("limits", {}))
        self.default_limits = shared.get("default_limits", Limits())
        self.seed = shared.get("seed", 0)
        self.grace = shared.get("grace", 10.0)
        self.progress = shared.get("progress") or Progress()
        self.stop = shared.get("stop")
        self.budget = shared.get("budget")
        self.paces = shared.get("paces")
        self.datasets = shared.get("datasets") or DatasetRepository(store)

    def lanes(self, shown: Callable[[str], LaneProgress]) -> Lanes:
        """A lane for each model; `shown` gives the counters of a lane by its name. After a request to stop none of
        them begins another call or try."""
        lanes = Lanes(self.limits, self.default_limits, shown, self.budget, self.paces)
        if self.stop is not None:
            self.stop.listen(lambda: lanes.stop(LaneError("the run was asked to stop")))
        return lanes

    def show_present(self, lanes: Iterable[str], old: Manifest) -> None:
        """Show the rows of a step that was finished, an equal share for each entry of `lanes`."""
        shares = Counter(lanes)
        for name, share in shares.items():
            shown = self.progress.lane(name)
            shown.total = shown.present = (old.planned or 0) * share // shares.total()
            shown.ended = shown.started

    @contextmanager
    def surroundings(
        self, kind: Kind, id: str, lanes: Lanes, threads: int, timeout: float | None = None
    ) -> Generator[Surroundings]:
        """Open what the rows of one artefact share while they are made."""
        workers = Threads(threads)
        calls, traces = self.store.log(kind, id, "calls"), self.store.log(kind, id, "traces")
        try:
            yield Surroundings(lanes, workers, self.models, lambda: CallLog(calls), traces, timeout)
        finally:
            workers.close()
            calls.close()
            traces.close()
