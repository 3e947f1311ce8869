"""The two flows: models run on MixEval's entries, and response files made elsewhere; both end in the same scores.

Each is an ordinary experiment in a folder of its own, so that the same command goes on, nothing is paid or scored twice,
and every other command can read it. The original's files are written from its rows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config import Config, ModelConfig, load, parse_model
from assay.errors import UserError
from assay.formats.mixeval.entries import benchmark_name
from assay.formats.mixeval.files import Joined, Layout, write_responses, write_scores, write_verdicts
from assay.formats.mixeval.parsers import Choice, Parsers, parsers_of
from assay.formats.mixeval.responses import HARMLESS, Import, ModelFiles, find_responses
from assay.formats.mixeval.scores import Entries, ModelScores, model_scores
from assay.interfaces import Task
from assay.records import Manifest
from assay.registry import nearest
from assay.steps.adopt import adopt
from assay.steps.executor import Shared
from assay.steps.experiment import Experiment
from assay.steps.experiment import Options as RunOptions
from assay.steps.ingest import file_stamp
from assay.steps.progress import Progress
from assay.steps.stop import Stop
from assay.store.index import ItemIndex
from assay.store.names import safe_name

RUN_FOLDER = "mixeval_responses"
SCORE_FOLDER = "mixeval_scores"
_METRICS = [["model_name"], ["model_name", "benchmark_name"], ["model_name", "problem_type"]]
_COMPLETIONS = ("openai", "vllm", "llama.cpp")


class Data(msgspec.Struct, kw_only=True):
    """Which entries: the flags that both flows have."""

    data: str
    version: str = ""
    benchmarks: Sequence[str] = ("mixeval",)
    base: bool = False
    five_shot: str = ""
    corrections: str = ""


class Options(msgspec.Struct, kw_only=True):
    """The further flags of `assay mixeval run` and `assay mixeval score`; judges are models, too."""

    output_dir: str = ""
    choice: Choice = msgspec.field(default_factory=Choice)
    models: Sequence[str] = ()
    limit: int | None = None
    max_concurrency: int | None = None
    retry_errors: bool = False
    layout: Layout = "lines"
    settings: Mapping[str, Any] = {}


class Scored(msgspec.Struct, kw_only=True):
    """The scores of all models on one benchmark, and where their rows and files are."""

    benchmark: str
    version: str
    scores: list[ModelScores]
    folders: list[str]


class Result(msgspec.Struct, kw_only=True):
    """What a command left behind. `problems` are those of the input: what could be scored was."""

    scored: list[Scored] = []
    problems: list[str] = []
    notes: list[str] = []


class MixEvalRun:
    """Models on the entries of one or several benchmarks."""

    def __init__(self, data: Data, options: Options) -> None:
        if not options.models:
            raise UserError("which model runs?", fix="name it with -m, such as -m demo:small or -m NAME@URL")
        self.data, self.options = data, options
        self.progress = Progress()
        self.version = _version(data)
        self.benchmarks = _benchmarks(data)
        self.root = Path(options.output_dir or RUN_FOLDER)

    async def run(self, stop: Stop | None = None) -> Result:
        result = Result(notes=self.progress.notes)
        for benchmark in self.benchmarks:
            result.scored.append(await self._benchmark(benchmark, stop))
        return result

    async def _benchmark(self, benchmark: str, stop: Stop | None) -> Scored:
        folder = self.root / benchmark / safe_name(self.version)
        config, judge, parsers = _config(self.data, self.options, benchmark, self.version, folder, "run")
        chosen = [model.name for model in config.models if not model.helper]
        config = msgspec.structs.replace(config, models=[*config.models, *_earlier(folder, config)])
        experiment = Experiment(config, _run_options(self.options, chosen))
        experiment.progress = _fresh(self.progress)
        await experiment.run(stop)
        return await asyncio.to_thread(self._write, experiment, benchmark, judge, parsers)

    def _write(self, experiment: Experiment, benchmark: str, judge: str, parsers: Parsers) -> Scored:
        entries, joined, scores = _scores(experiment, parsers, file_order=False)
        folders = [str(experiment.folder)]
        for model in joined.models:
            folder = self.root / safe_name(model) / benchmark / safe_name(self.version)
            write_responses(joined, model, folder, benchmark, self.options.layout)
            _write_model(joined, model, folder, parsers, scores, judge, self.options)
            folders.append(str(folder))
        return Scored(benchmark=benchmark, version=self.version, scores=scores, folders=folders)


class MixEvalScore:
    """Response files made elsewhere, of one or several models."""

    def __init__(self, paths: Sequence[str], data: Data, options: Options) -> None:
        self.paths, self.data, self.options = paths, data, options
        self.progress = Progress()
        self.version = _version(data)
        self.benchmarks = _benchmarks(data)
        self.root = Path(options.output_dir or SCORE_FOLDER)

    async def run(self, stop: Stop | None = None) -> Result:
        """A model whose files cannot be scored is a problem of the result, unless it is the only one."""
        result = Result(notes=self.progress.notes)
        for benchmark in self.benchmarks:
            scored = Scored(benchmark=benchmark, version=self.version, scores=[], folders=[])
            found = find_responses(self.paths, benchmark, self.version)
            for files in found:
                try:
                    await self._model(files, benchmark, scored, result.problems, stop)
                except UserError as error:
                    if len(found) == 1:
                        raise
                    result.problems.append(f"{files.model} on {benchmark}: {error}")
            result.scored.append(scored)
        return result

    async def _model(
        self, files: ModelFiles, benchmark: str, scored: Scored, problems: list[str], stop: Stop | None
    ) -> None:
        folder = self.root / safe_name(files.model) / benchmark / safe_name(self.version)
        config, judge, parsers = _config(self.data, self.options, benchmark, self.version, folder, "evaluate")
        experiment = _Files(config, files, _run_options(self.options))
        experiment.progress = _fresh(self.progress)
        await experiment.run(stop)
        for what, said in experiment.odd.items():
            (self.progress.notes if what in HARMLESS else problems).append(f"{files.model} on {benchmark}: {said}")
        entries, joined, scores = await asyncio.to_thread(_scores, experiment, parsers, file_order=True)
        await asyncio.to_thread(_write_model, joined, files.model, folder, parsers, scores, judge, self.options)
        scored.scores += scores
        scored.folders.append(str(folder))


class _Files(Experiment):
    """An experiment whose responses are a model's files. `odd` is what is wrong with them."""

    def __init__(self, config: Config, files: ModelFiles, options: RunOptions) -> None:
        super().__init__(config, options)
        self.files = files
        self.odd: dict[str, str] = {}

    async def _infer(self, around: Shared, tasks: Sequence[Task], samples: int) -> Manifest:
        return await asyncio.to_thread(self._adopt)

    def _adopt(self) -> Manifest:
        self.progress.begin("run")
        dataset = self.store.manifest("dataset", self.id)
        assert dataset is not None  # the experiment has just read it
        imported = Import(self.files, ItemIndex(self.store.log("dataset", self.id)))
        stamps = {kind: file_stamp(path.absolute()) for kind, path in self.files.files.items()}
        manifest = adopt(
            self.store,
            "run",
            self.id,
            imported.responses(),
            source={"model": self.files.model, "files": stamps},
            inputs=[{"kind": "dataset", "id": self.id, "digest": dataset.digest}],
            name=self.config.name,
        )
        if imported.read:
            manifest.metadata = {**manifest.metadata, "odd": imported.problems()}
            self.store.put_manifest(manifest)
        self.odd = manifest.metadata.get("odd", {})
        return manifest


# ---- what both flows share


def _scores(experiment: Experiment, parsers: Parsers, *, file_order: bool) -> tuple[Entries, Joined, list[ModelScores]]:
    store, id = experiment.store, experiment.id
    entries = Entries(store.log("dataset", id))
    joined = Joined(store, id, entries, file_order=file_order)
    order = next(iter(joined.order.values()), None) if file_order else None
    level = experiment.config.ci_level
    log = store.log("evaluation", id)
    return entries, joined, model_scores(entries, [log], level=level, file_order=order, parsers=parsers.shown)


def _write_model(
    joined: Joined,
    model: str,
    folder: Path,
    parsers: Parsers,
    scores: Sequence[ModelScores],
    judge: str,
    options: Options,
) -> None:
    write_verdicts(joined, model, folder, parsers.shown, judge=judge, trim_base=options.choice.trim_base)
    write_scores(folder, [one for one in scores if one.model == model])


def _config(
    data: Data, options: Options, benchmark: str, version: str, folder: Path, need: Literal["run", "evaluate"]
) -> tuple[Config, str, Parsers]:
    """The experiment as a config, the judge's name, and the parsers."""
    judge = _judge(options.choice.judge) if options.choice.judge else None
    choice = msgspec.structs.replace(options.choice, judge=judge.name if judge else "")
    parsers = parsers_of(choice)
    params = {"version": version, "benchmark": benchmark, "base": data.base}
    params |= {key: str(Path(value).absolute()) for key, value in _files_of(data).items()}
    where = "name" if data.data.startswith("hf:") else "path"
    source: dict[str, Any] = {
        "name": f"{benchmark} {version}".strip(),
        "dataset": {"type": "mixeval", where: data.data, "params": params},
        "prompts": [{"name": "mixeval", "text": "{{ formated_input }}"}],
        "evaluation_methods": parsers.methods,
        "metrics": [{"name": "accuracy", "type": "mean", "facets": facets} for facets in _METRICS],
        "output_dir": str(folder),
    }
    if need == "run":
        source["models"] = list(options.models)
    config = load(source, overrides=options.settings, need=need)
    models = [_as_base(model) for model in config.models] if data.base else config.models
    if judge is not None:
        models = _with_judge(models, judge)
    return msgspec.structs.replace(config, models=models), judge.name if judge else "", parsers


def _files_of(data: Data) -> dict[str, str]:
    given = {"five_shot": data.five_shot, "corrections": data.corrections}
    return {key: value for key, value in given.items() if value}


def _judge(text: str) -> ModelConfig:
    return msgspec.structs.replace(parse_model(text), helper=True)


def _with_judge(models: Sequence[ModelConfig], judge: ModelConfig) -> list[ModelConfig]:
    """A judge that is run as well is one model, not two."""
    for model in models:
        if model.name == judge.name:
            if msgspec.structs.replace(judge, helper=False) != model:
                raise UserError(f"the judge and a model are both called {judge.name!r}", fix="rename one of them")
            return list(models)
    return [*models, judge]


def _as_base(model: ModelConfig) -> ModelConfig:
    """Base models have no chat: their servers are asked to go on with a text."""
    if model.type not in _COMPLETIONS or "api" in model.params:
        return model
    return msgspec.structs.replace(model, params={**model.params, "api": "completions"})


def _earlier(folder: Path, config: Config) -> list[ModelConfig]:
    """The models that an earlier command ran in this folder: their rows stay in the plan, and in the table."""
    file = folder / "config.yaml"
    if not file.is_file():
        return []
    unused = {"dataset": None, "evaluation_methods": [], "metrics": ["mean"]}
    names = {model.name for model in config.models}
    old = load(file, overrides=unused, need="aggregate").models
    return [model for model in old if model.name not in names and not model.helper]


def _run_options(options: Options, models: Sequence[str] = ()) -> RunOptions:
    return RunOptions(
        models=models,
        limit=options.limit,
        max_concurrency=options.max_concurrency,
        retry_errors=options.retry_errors,
    )


def _fresh(progress: Progress) -> Progress:
    """The display shows one experiment at a time."""
    progress.lanes.clear()
    return progress


def _benchmarks(data: Data) -> list[str]:
    return list(dict.fromkeys(benchmark_name(name) for name in data.benchmarks))


def _version(data: Data) -> str:
    """The version that was asked for, or the only one that the data's folder can mean."""
    if data.version or data.data.startswith("hf:"):
        return data.version or "hub"
    folder = Path(data.data).expanduser()
    if folder.resolve().name.startswith("mixeval-2"):
        return folder.resolve().name.removeprefix("mixeval-")
    if not folder.is_dir():
        raise UserError(f"there is no folder {data.data!r}", fix="name the folder that holds mixeval-<version>")
    versions = sorted(path.name.removeprefix("mixeval-") for path in folder.glob("mixeval-2*") if path.is_dir())
    if len(versions) == 1:
        return versions[0]
    raise UserError("which version of the data?", where=data.data, fix=f"add --version; {nearest('', versions)}")
