"""What Runner and Evaluator are given alike: where rows are, which models may be called, and how far they may go."""

from collections.abc import Mapping
from typing import TypedDict, Unpack

from assay.engine.calls.budget import Budget
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.interfaces import Limits, Model, Store
from assay.store.repositories import DatasetRepository


class Shared(TypedDict, total=False):
    """`models` can be called by tasks and scorers; `limits` are by lane, that is by model; calls in flight have `grace`
    seconds after a request to stop; `datasets`, shared by steps, is indexed once."""

    models: Mapping[str, Model]
    limits: Mapping[str, Limits]
    default_limits: Limits
    seed: int
    grace: float
    progress: Progress
    stop: Stop | None
    budget: Budget | None
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
        self.datasets = shared.get("datasets") or DatasetRepository(store)
