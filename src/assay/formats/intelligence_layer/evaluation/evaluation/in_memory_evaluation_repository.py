"""Evaluations that end with the process."""

from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.async_evaluator import AsyncEvaluationRepository
from assay.formats.intelligence_layer.evaluation.evaluation.stored_evaluation_repository import (
    StoredEvaluationRepository,
    StoredPartials,
)
from assay.store.stores import MemoryStore


class InMemoryEvaluationRepository(StoredEvaluationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())


class AsyncInMemoryEvaluationRepository(StoredPartials, AsyncEvaluationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
