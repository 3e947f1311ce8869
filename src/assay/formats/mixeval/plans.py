"""MixEval's commands as ordinary configs: their flags, and the experiment that these describe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config import Config, ModelConfig, load, parse_model
from assay.errors import UserError
from assay.formats.mixeval.dataset import benchmark_name, data_files
from assay.formats.mixeval.files import Layout
from assay.formats.mixeval.parsers import Choice, Parsers, parsers_of
from assay.registry import nearest

_FACETS = [["model_name"], ["model_name", "benchmark_name"], ["model_name", "problem_type"]]
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


def config_of(
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
        "metrics": parsers.metrics(from_files=need == "evaluate"),
        "output_dir": str(folder),
    }
    if need == "run":
        source["models"] = list(options.models)
        source["metrics"] += [{"name": "accuracy", "type": "mean", "facets": facets} for facets in _FACETS]
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


def earlier_models(folder: Path, config: Config) -> list[ModelConfig]:
    """The models that an earlier command ran in this folder: their rows stay in the plan, and in the table."""
    file = folder / "config.yaml"
    if not file.is_file():
        return []
    unused = {"dataset": None, "evaluation_methods": [], "metrics": ["mean"]}
    names = {model.name for model in config.models}
    old = load(file, overrides=unused, need="aggregate").models
    return [model for model in old if model.name not in names and not model.helper]


def benchmarks_of(data: Data, version: str) -> list[str]:
    """The benchmarks by their names; each must have its data."""
    names = list(dict.fromkeys(benchmark_name(name) for name in data.benchmarks))
    for name in [] if data.data.startswith("hf:") else names:
        data_files(data.data, version, name)
    return names


def version_of(data: Data) -> str:
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
