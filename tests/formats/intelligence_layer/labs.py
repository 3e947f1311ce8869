"""Types, tasks and repositories that the tests of runs and datasets share."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import (
    DatasetRepository,
    FileDatasetRepository,
    FileRunRepository,
    InMemoryDatasetRepository,
    InMemoryRunRepository,
    RunRepository,
)

FAILS = "fail"
ODD_IDS = ["a.1", "a.2", "a/1", "a", "../up", "é\u2028 x", "A", "x" * 300, ".", "a.json"]


class Question(BaseModel):
    text: str


class Reply(BaseModel):
    text: str
    length: int


@dataclasses.dataclass
class QuestionData:
    text: str


class QuestionStruct(msgspec.Struct):
    text: str


class Answering(Task[Question, Reply]):
    """Answers, and fails where the question asks it to. `seen` are the questions in the order they came."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def do_run(self, input: Question, task_span: TaskSpan) -> Reply:
        self.seen.append(input.text)
        task_span.log("question", input)
        if input.text == FAILS:
            raise RuntimeError("asked to fail")
        return Reply(text=input.text.upper(), length=len(input.text))


def memory_datasets(folder: Path) -> DatasetRepository:
    return InMemoryDatasetRepository()


def file_datasets(folder: Path) -> DatasetRepository:
    return FileDatasetRepository(folder / "root")


def memory_runs(folder: Path) -> RunRepository:
    return InMemoryRunRepository()


def file_runs(folder: Path) -> RunRepository:
    return FileRunRepository(folder / "root")


MAKE_DATASETS: dict[str, Callable[[Path], Any]] = {
    "memory": memory_datasets,
    "files": file_datasets,
}
MAKE_RUNS: dict[str, Callable[[Path], Any]] = {"memory": memory_runs, "files": file_runs}
