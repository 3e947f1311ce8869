"""One task folder, one command: records in; output file and post-processors' files out.

The engine's rows live beside the output in `.assay/<digest>/`; the digest is that of the task, its graph, its data and
its models. So the same command resumes after a crash and pays no call twice, and all files are projections of the
rows, written whole or not at all.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from assay.config import LoggingConfig
from assay.engine.calls.executor import Shared
from assay.engine.calls.failures import Failures, failures_of
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.experiment.dataset import ingest
from assay.engine.experiment.preflight import LOOKED_AT
from assay.engine.experiment.status import log_to, status_file
from assay.engine.run.run import Runner
from assay.formats.sygra.data import NoRecords, id_text, item_ids, open_records
from assay.formats.sygra.helpers import running_task
from assay.formats.sygra.models_file import BoundModel, bind_model, load_environment, read_models
from assay.formats.sygra.modules import Loader
from assay.formats.sygra.names import Begun, Names, begin, find_task, keep, read_yaml, set_aside
from assay.formats.sygra.outputs import (
    LARGEST_JSON,
    Format,
    Processed,
    Records,
    bind_processors,
    check_columns,
    run_processors,
    write_records,
)
from assay.formats.sygra.scoring import RunStore, Scoring, result_columns
from assay.formats.sygra.task import SygraTask, models_used
from assay.formats.sygra.types import Row, YamlPlace
from assay.sdk import Item, Limits, UserError, canonical, digest
from assay.store.files import INSIDE
from assay.store.repositories import DatasetRepository
from assay.store.stores import FlatStore
from assay.store.table.decode import read_rows

LOG_FILE = "logs/out.log"


class Options(msgspec.Struct, kw_only=True):
    """The flags of `assay sygra`; `base` is the folder that holds `tasks/`, by default the current one."""

    task: str
    start_index: int = 0
    num_records: int = 10
    batch_size: int = 25
    run_name: str = ""
    output_dir: str | None = None
    output_with_ts: bool = True
    output_format: Format | None = None
    report_keys: str | None = None
    resume: bool | None = None
    retry_errors: bool = False
    disable_metadata: bool = False
    debug: bool = False
    clear_logs: bool = False
    seed: int = 0
    base: str = "."


class Result(msgspec.Struct, kw_only=True):
    """What a run left behind; `failures` says why records failed. `problem` is why it is not `ok`: no record came out,
    or a post-processor has no result, or not all of it."""

    folder: str
    output: str
    total: int
    failed: int
    failures: list[Failures] = []
    processed: list[Processed] = []
    notes: list[str] = []

    @property
    def problem(self) -> str:
        if self.failed == self.total:
            return (
                "every record failed"
                if self.total
                else "the output generator left out every record"
            )
        bad = [
            processed.name
            for processed in self.processed
            if processed.status in ("failed", "fatal_error")
        ]
        return (
            f"not all results of {' and '.join(dict.fromkeys(bad))} could be computed"
            if bad
            else ""
        )

    @property
    def ok(self) -> bool:
        return not self.problem


class SygraRun:
    """A task folder with the options of one command. What is wrong with the YAML is raised when it is made, or by `run`
    before anything is spent."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.progress = Progress()
        self.task = find_task(options.task, Path(options.base))
        self.source = read_yaml(self.task.graph)
        self.names = Names(options.run_name, options.output_with_ts)
        load_environment(self.task.base)
        self.load = Loader(self.task.base)
        entries = read_models(self.task.base, models_used(self.source, self.task), os.environ)
        self.models: dict[str, BoundModel] = {
            name: bind_model(name, entry, self.load, max_concurrency=options.batch_size)
            for name, entry in entries.items()
        }
        uses = {name: bound.use for name, bound in self.models.items()}
        self.graph = SygraTask(self.task, self.source, self.load, uses)
        # after the graph: its modules may register metrics
        processors = self.source.get("graph_post_process")
        self.processors = bind_processors(
            processors, self.load, self.task.graph, report_keys=options.report_keys
        )
        self.output_dir = Path(options.output_dir or self.task.folder).expanduser().absolute()
        self.folder = self.output_dir / INSIDE / self._digest()

    def _digest(self) -> str:
        """Return what determines the rows of a folder. The number of records is left out: asking
        for more adds to them."""
        data = {
            key: value
            for key, value in self.data_config.items()
            if key not in ("sink", "resumable")
        }
        parts = {
            "task": self.task.name,
            "graph": self.source.get("graph_config"),
            "data": data,
            "start": self.options.start_index,
            "seed": self.options.seed,
            "models": {name: bound.use.identity for name, bound in self.models.items()},
        }
        return digest("sygra", canonical(parts)).hex()[:16]

    @property
    def data_config(self) -> Row:
        config, where = self.source.get("data_config") or {}, f"{self.task.graph}: data_config"
        return YamlPlace(config, where).require(dict, "data_config is not a mapping")

    async def run(self, stop: Stop | None = None) -> Result:
        """Every record through the graph, then the files; the same command resumes an earlier run."""
        running_task.set(self.task)
        # The first record is read before anything is written.
        records = await asyncio.to_thread(self._open)
        for note in [*self.load.notes(), *_notes_of_no_effect(self.task.folder, self.options)]:
            self.progress.note(note)
        if self.options.resume is False:
            set_aside(self.folder)
        store = RunStore(self.folder)
        async with AsyncExitStack() as stack:
            stack.enter_context(store.lock("run", store.id))
            stack.enter_context(self._logging())
            for bound in self.models.values():
                stack.push_async_callback(bound.model.close)
            datasets = await self._store_records(store, records)
            begun = begin(self.folder, self.output_dir, self.names)
            await stack.enter_async_context(status_file(self.folder, self.progress, "full"))
            shared = self._executor_parts(datasets, stop)
            await self._run_graph(store, shared)
            self._note_present()
            result = await self._write(store, begun, shared)
            begun.finished = True
            keep(self.folder, begun)
        return result

    def _open(self) -> Iterator[Row]:
        return open_records(
            self.data_config,
            base=self.task.base,
            load=self.load,
            start=self.options.start_index,
            count=self.options.num_records or None,
            where=f"{self.task.graph}: data_config",
        )

    async def _store_records(self, store: FlatStore, records: Iterator[Row]) -> DatasetRepository:
        """Make items of the records, and check that all has its variables."""
        is_new = store.manifest("dataset", store.id) is None
        try:
            # the items of 0.1 have the ids of their records: the keys of paid calls hold them
            stored = (item for _, item in read_rows(store.log("dataset", store.id), Item))
            old = any(item.id == id_text(item.data.get("id")) for item in islice(stored, 1))
            rows = partial(self._rows, item_ids(records, by_index=not old))
            await asyncio.to_thread(ingest, store, store.id, rows, name=self.task.name)
        except NoRecords:
            await self._write_nothing()
            raise
        datasets = DatasetRepository(store)
        try:
            await asyncio.to_thread(self._check, partial(datasets.items, store.id))
        except UserError:
            if is_new:  # what was refused is no experiment
                rmtree(self.folder)
            raise
        return datasets

    def _check(self, items: Callable[[], Iterator[Item]]) -> None:
        # The fields of the first record are variables of the graph, even if others lack them.
        self.graph.declared.update(map(str, next(items()).data))
        self.graph.check_prompts(name for item in islice(items(), LOOKED_AT) for name in item.data)

        def holds(variable: str) -> bool:
            """Return whether a state can have it: declared by the graph, or in any record."""
            return variable in self.graph.declared or any(variable in item.data for item in items())

        self.graph.check_unit_metrics(holds)
        columns = self.graph.output.fields or self.graph.declared
        check_columns(self.processors, columns, partial(self.graph.output.can_have, holds=holds))

    def _rows(self, records: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Any]]:
        for number, (id, record) in enumerate(records, self.options.start_index):
            yield f"record {number}", Item(id=id, data=record, ground_truth=record)

    def _executor_parts(self, datasets: DatasetRepository, stop: Stop | None) -> Shared:
        return {
            "models": {name: bound.model for name, bound in self.models.items()},
            "limits": {name: bound.limits for name, bound in self.models.items()},
            "default_limits": Limits(max_concurrency=self.options.batch_size),
            "seed": self.options.seed,
            "progress": self.progress,
            "stop": stop,
            "datasets": datasets,
        }

    async def _run_graph(self, store: FlatStore, shared: Shared) -> None:
        runner = Runner(store, **shared)
        again = self.options.retry_errors
        try:
            await runner.run_async(
                store.id, [self.graph], id=store.id, name=self.task.name, retry_errors=again
            )
        finally:
            for note in dict.fromkeys(self.graph.notes):
                self.progress.note(note)

    def _note_present(self) -> None:
        present = sum(lane.present for lane in self.progress.of("run"))
        if present and not any(lane.done for lane in self.progress.of("run")):
            self.progress.note(
                f"all {present} records are from an earlier run; --resume False runs them again"
            )

    def _logging(self) -> Any:
        file = self.task.base / LOG_FILE
        if self.options.clear_logs:
            file.unlink(missing_ok=True)
        level = "DEBUG" if self.options.debug else "WARNING"
        return log_to(LoggingConfig(level=level, file=str(file) if self.options.debug else ""))

    async def _write(self, store: RunStore, begun: Begun, shared: Shared) -> Result:
        """Write the output file, then the post-processors' files."""
        records, output = await asyncio.to_thread(self._write_output, store, begun)
        result = Result(
            folder=str(self.folder),
            output=str(output),
            total=len(records),
            failed=records.failed,
            notes=self.progress.notes,
        )
        columns = await asyncio.to_thread(result_columns, records, self.graph.columns)
        scoring = Scoring(store, columns, name=self.task.name, base=self.task.base, **shared)
        paths = self.names.distinct(self.output_dir, begun.stamp)
        result.processed = await run_processors(self.processors, records, output, paths, scoring)
        await scoring.finish()
        result.failures = failures_of(
            store.manifest("run", store.id), store.manifest("evaluation", store.id)
        )
        self.progress.errors = [line for failures in result.failures for line in failures.lines()]
        return result

    def _write_output(self, store: FlatStore, begun: Begun) -> tuple[Records, Path]:
        logs = store.log("dataset", store.id), store.log("run", store.id)
        media = self.output_dir / Path(self.names.of("output", begun.stamp, "json")).stem
        records = Records(*logs, list(self.graph.output.fields), media)
        format: Format = self.options.output_format or (
            "jsonl" if len(records) > LARGEST_JSON else "json"
        )
        output = self.output_dir / self.names.of("output", begun.stamp, format)
        write_records(output, records.lines(), format)
        return records, output

    async def _write_nothing(self) -> None:
        """The report says as well that there was no record."""
        begun = begin(self.folder, self.output_dir, self.names)
        output = self.output_dir / self.names.of(
            "output", begun.stamp, self.options.output_format or "json"
        )
        paths = self.names.distinct(self.output_dir, begun.stamp)
        for done in await run_processors(self.processors, [], output, paths):
            if done.file:
                self.progress.note(f"there was no record: see {done.file}")
        begun.finished = True
        keep(self.folder, begun)


def _notes_of_no_effect(folder: Path, options: Options) -> list[str]:
    """Return what is said about what a task folder defines, or an option asks, without effect."""
    what = "--disable-metadata: there is no metadata file to switch off"
    notes = [what] if options.disable_metadata else []
    file = folder / "task_executor.py"
    text = file.read_text("utf-8", errors="replace") if file.is_file() else ""
    defined = any(line.startswith("class TaskExecutor") for line in text.splitlines())
    if defined:
        notes.append(f"the class TaskExecutor in {file} is not used: Assay's engine runs the graph")
    return notes
