"""Response files that another tool has begun: their rows are responses of the run, and only the rest is asked for."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from assay.engine.calls.executor import Shared
from assay.engine.experiment.experiment import Experiment
from assay.engine.experiment.responses import Bound, Tasks
from assay.engine.run.plan import cells
from assay.engine.run.rows import response_of, written
from assay.errors import UserError
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.finding import ModelFiles, file_name
from assay.formats.mixeval.responses import HARMLESS, Import
from assay.formats.mixeval.written import Written
from assay.interfaces import Answer, Task
from assay.records import Manifest
from assay.store.files import safe_name
from assay.store.index import ItemIndex
from assay.store.repair import read_rows
from assay.store.repositories import DatasetRepository


class _Row(msgspec.Struct):
    item_id: str
    task: str = ""
    key: str = ""
    response: str = ""
    outcome: str = "ok"


class Continued(Tasks):
    """Tasks whose models may have response files already, in the folders given by `folder_of`. `problems` are those of
    the files."""

    def __init__(self, benchmark: str, folder_of: Callable[[str], Path]) -> None:
        self.benchmark, self.folder_of = benchmark, folder_of
        self.problems: list[str] = []

    async def infer(self, experiment: Experiment, bound: Bound, shared: Shared) -> Manifest:
        items = DatasetRepository(experiment.store).index(experiment.id)
        for task in bound.tasks:
            await asyncio.to_thread(self._adopt, experiment, task, items)
        return await super().infer(experiment, bound, shared)

    def _adopt(self, experiment: Experiment, task: Task, items: ItemIndex) -> None:
        """Store what the files of a model answer, and the run does not."""
        ours = Written(self.folder_of(task.model_name))
        names = {
            kind: file_name(safe_name(task.model_name), kind, self.benchmark)
            for kind in (FREE_FORM, MULTIPLE_CHOICE)
        }
        begun = {kind: lines for kind, name in names.items() if (lines := ours.begun(name))}
        if not begun:
            return
        if not experiment.config.resume:
            raise UserError(
                "another tool's responses are continued",
                where=str(ours.folder),
                fix="use resume: true",
            )
        files = {kind: ours.folder / names[kind] for kind in begun}
        imported = Import(ModelFiles(model=task.model_name, files=files, lines=begun), items)
        answers = {row.item_id: row.response for row in imported.responses() if row.outcome == "ok"}
        self._check(imported, task.model_name, ours.folder)
        log = experiment.store.log("run", experiment.id)
        stored = {row.item_id: row for _, row in read_rows(log, _Row) if row.task == task.name}
        _refuse_changes(answers, stored, ours.folder)
        unlisted = [names[kind] for kind in begun if not ours.is_ours(names[kind])]
        if unlisted and answers.keys() <= stored.keys():
            for name in unlisted:
                ours.claim(name)
            self._adopt(experiment, task, items)
            return
        added = 0
        for cell in cells([task], items, 1):
            if cell.item.id in answers and stored.get(cell.item.id, _NO_ROW).key != cell.key.hex():
                answer = Answer(text=answers[cell.item.id])
                log.append(written(response_of(cell, answer, 1, 0.0, None, None))[1])
                added += 1
        if added:
            log.sync()
            experiment.progress.note(
                f"{task.model_name}: {added:,} responses of {ours.folder} are continued"
            )

    def _check(self, imported: Import, model: str, folder: Path) -> None:
        said = imported.problems()
        if "different" in said:
            raise UserError(
                f"{model}: {said['different']}",
                where=str(folder),
                fix="choose another folder with -o, or the version that was answered with --version",
            )
        self.problems += [
            f"{model} on {self.benchmark}: {text}"
            for what, text in said.items()
            if what not in (*HARMLESS, "null")
        ]


_NO_ROW = _Row("")


def _refuse_changes(answers: Mapping[str, str], stored: Mapping[str, _Row], folder: Path) -> None:
    changed = [
        id
        for id, text in answers.items()
        if id in stored and stored[id].outcome != "errored" and stored[id].response != text
    ]
    if changed:
        raise UserError(
            f"{len(changed):,} responses are not those of the run, the first is {changed[0]!r}: the files were changed",
            where=str(folder),
            fix="move them away, or choose another folder with -o",
        )
