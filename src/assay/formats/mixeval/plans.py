"""MixEval's commands as ordinary configs: their flags, the experiment that these describe, which scorers read the
answers, and under which names their scores are shown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config import Config, ModelConfig, load, parse_model
from assay.engine.experiment.trust import CONFIG, stored_config
from assay.formats.mixeval.compat import NO_RULE
from assay.formats.mixeval.dataset import benchmark_name, data_files, versions_in
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE, original_prompts
from assay.formats.mixeval.metric import SCORE
from assay.sdk import JsonMapping, JsonObject, UserError, nearest

COMPATIBLE = "rule-compat"
RULES = (COMPATIBLE, "rule")
JUDGE = "judge"
JUDGED = ("judged-compat", "judged")
_ALIASES = {"model": JUDGE}  # the original's word
_SCORERS = {FREE_FORM: "freeform", MULTIPLE_CHOICE: "choice"}
_ORIGINAL_LIMIT = 999
_FACETS = [["model_name"], ["model_name", "benchmark_name"], ["model_name", "problem_type"]]
_COMPLETIONS = ("openai", "vllm", "llama.cpp")
_LOCAL = ("vllm", "llama.cpp", "gguf", "local")
_MAX_TOKENS = {"api": 1536, "local": 512, "base": 399}  # of answers, as the original has them
Layout = Literal["lines", "array"]


class MixEvalOptions(msgspec.Struct, kw_only=True):
    """The flags of `assay mixeval run` and `assay mixeval score`: which entries, which parsers, and how the engine
    runs. The judge is named by the model that it is."""

    data: str
    version: str = ""
    benchmarks: Sequence[str] = ("mixeval",)
    base: bool = False
    five_shot: str = ""
    corrections: str = ""
    output_dir: str = ""
    parser: str = ""
    free_form_parser: str = ""
    multi_choice_parser: str = ""
    judge: str = ""
    judge_prompts: str = ""
    trim_base: bool = False
    judged: bool = False
    models: Sequence[str] = ()
    limit: int | None = None
    max_concurrency: int | None = None
    retry_errors: bool = False
    layout: Layout = "lines"
    force: bool = False
    settings: Mapping[str, Any] = {}


def config_of(
    options: MixEvalOptions,
    benchmark: str,
    version: str,
    folder: Path,
    need: Literal["run", "evaluate"],
) -> tuple[Config, "Parsers"]:
    """The experiment as a config, and its parsers."""
    judge = (
        msgspec.structs.replace(parse_model(options.judge), helper=True) if options.judge else None
    )
    parsers = parsers_of(msgspec.structs.replace(options, judge=judge.name if judge else ""))
    source = _source_of(options, benchmark, version) | parsers.sections(need)
    if need == "run":
        source["models"] = list(options.models)
    _check_settings(options.settings)
    source["output_dir"] = str(folder)
    config = load(source, overrides=options.settings, need=need)
    models = [_as_base(model) for model in config.models] if options.base else config.models
    if judge is not None:
        models = _with_judge(models, judge)
    if need == "run":
        old = {model.name: model for model in _earlier(folder)}
        models = [_with_limit(model, config, old.get(model.name), options.base) for model in models]
    return msgspec.structs.replace(config, models=models), parsers


def _check_settings(settings: JsonMapping) -> None:
    for key in settings:
        if key.partition(".")[0] in ("dataset", "evaluation_methods", "metrics", "prompts"):
            fix = "run a config with `assay run` instead"
            raise UserError(f"{key!r} is MixEval's own", where="--set", fix=fix)


def _source_of(options: MixEvalOptions, benchmark: str, version: str) -> JsonObject:
    """Return what a config says of the entries."""
    params: JsonObject = {"version": version, "benchmark": benchmark, "base": options.base}
    files = {"five_shot": options.five_shot, "corrections": options.corrections}
    params |= {key: str(Path(file).absolute()) for key, file in files.items() if file}
    where = "name" if options.data.startswith("hf:") else "path"
    return {
        "name": f"{benchmark} {version}".strip(),
        "dataset": {"type": "mixeval", where: options.data, "params": params},
        "prompts": [{"name": "mixeval", "text": "{{ formated_input }}"}],
    }


def _with_judge(models: Sequence[ModelConfig], judge: ModelConfig) -> list[ModelConfig]:
    """A judge that is run as well is one model, not two."""
    for model in models:
        if model.name == judge.name:
            if msgspec.structs.replace(judge, helper=False) != model:
                raise UserError(
                    f"the judge and a model are both called {judge.name!r}",
                    fix="rename one of them",
                )
            return list(models)
    return [*models, judge]


def _as_base(model: ModelConfig) -> ModelConfig:
    """Base models have no chat: their servers are asked to go on with a text."""
    if model.type not in _COMPLETIONS or "api" in model.params:
        return model
    return msgspec.structs.replace(model, params={**model.params, "api": "completions"})


def _with_limit(
    model: ModelConfig, config: Config, old: ModelConfig | None, base: bool
) -> ModelConfig:
    """With the original's limit of an answer's length, unless another is set. A model that an earlier command ran here
    without a limit keeps its answers."""
    unlimited = old is not None and "max_tokens" not in old.inference
    if (
        model.helper
        or model.type == "python"
        or unlimited
        or "max_tokens" in {**config.sample_params, **model.inference}
    ):
        return model
    limit = _MAX_TOKENS["base" if base else "local" if model.type in _LOCAL else "api"]
    return msgspec.structs.replace(model, inference={**model.inference, "max_tokens": limit})


def earlier_models(folder: Path, config: Config) -> list[ModelConfig]:
    """The models that an earlier command ran in this folder: their rows stay in the plan, and in the table."""
    names = {model.name for model in config.models}
    others = [model for model in _earlier(folder) if model.name not in names and not model.helper]
    if others:
        _earlier(folder, used=["models"])
    return others


def _earlier(folder: Path, used: Sequence[str] = ()) -> list[ModelConfig]:
    if not (folder / CONFIG).is_file():
        return []
    unused = {"dataset": None, "evaluation_methods": [], "metrics": ["mean"]}
    return list(stored_config(folder, "aggregate", unused, used=used).models)


def benchmarks_of(options: MixEvalOptions, version: str) -> list[str]:
    """The benchmarks by their names; each must have its data."""
    names = list(dict.fromkeys(benchmark_name(name) for name in options.benchmarks))
    for name in [] if options.data.startswith("hf:") else names:
        data_files(options.data, version, name)
    return names


def version_of(options: MixEvalOptions) -> str:
    """The version that was asked for, or the only one that the data's folder can mean."""
    if options.version or options.data.startswith("hf:"):
        return options.version or "hub"
    own = Path(options.data).expanduser().resolve().name
    if own.startswith("mixeval-2"):
        return own.removeprefix("mixeval-")
    versions = versions_in(options.data)
    if len(versions) == 1:
        return versions[0]
    raise UserError(
        "which version of the data?",
        where=options.data,
        fix=f"add --version; {nearest('', versions)}",
    )


# ---- parsers


class Parsers(msgspec.Struct, kw_only=True):
    """`methods` go into a config; `shown` has, for each name in the table, the scorers of the two kinds; `judge` is the
    name of the model that judges, if one does."""

    methods: list[JsonObject]
    shown: dict[str, tuple[str, str]]
    judge: str = ""

    def sections(self, need: Literal["run", "evaluate"]) -> JsonObject:
        """Return what a config says of scorers and metrics."""
        metrics = self.metrics(from_files=need == "evaluate")
        metrics += self.means() if need == "run" else []
        return {"evaluation_methods": self.methods, "metrics": metrics}

    def metrics(self, *, from_files: bool) -> list[JsonObject]:
        """The config's metrics: a score for each name in the table. Responses `from_files` count in their order."""
        types = {method["name"]: str(method["type"]) for method in self.methods}
        made: list[JsonObject] = []
        for name, (first, second) in self.shown.items():
            own = all(types[scorer].startswith("mixeval.") for scorer in (first, second))
            draw = name.endswith(COMPATIBLE)
            params: JsonObject = {"draw": draw}
            if from_files:
                params["order"] = "responses"
            labels: JsonObject = {"include": [name]}
            if not own or first != second:  # a user's scorer may name its labels as it likes
                labels = {"include": [first, second] if own else ["*"], "together": name}
                params |= {"free_form": first, "multiple_choice": second}
            made.append(
                {
                    "name": "score",
                    "type": SCORE,
                    "facets": ["model_name"],
                    "labels": labels,
                    "params": params,
                }
            )
        return made

    def means(self) -> list[JsonObject]:
        """The means by benchmark and by kind, of scorers whose verdicts are complete without a draw."""
        if all(method["name"] == COMPATIBLE for method in self.methods):
            return []
        labels = {"exclude": [COMPATIBLE]}
        return [
            {"name": "accuracy", "type": "mean", "facets": facets, "labels": labels}
            for facets in _FACETS
        ]


def _pairs_of(options: MixEvalOptions) -> list[tuple[str, str]]:
    """Return what reads free-form and multiple-choice answers, pair by pair."""
    best = (JUDGE if options.judge else COMPATIBLE, "rule")
    chosen = (options.free_form_parser, options.multi_choice_parser)
    if options.parser or any(chosen):
        usual = (options.parser,) * 2 if options.parser else best
        return [(chosen[0] or usual[0], chosen[1] or usual[1])]
    return [*((name, name) for name in dict.fromkeys((best[0], COMPATIBLE))), best]


def parsers_of(options: MixEvalOptions) -> Parsers:
    """Without any choice the judge if there is one, the protocol's rule, and `rule` for multiple choice beside the
    better of these for free-form; a kind without a choice of its own has that of `--parser`, or of this last pair. The
    first is the one whose scores `score.json` has."""
    if options.judged:
        return _judged_parsers(options)
    prompts = original_prompts(options.judge_prompts) if options.judge_prompts else {}
    methods: dict[str, JsonObject] = {}
    shown: dict[str, tuple[str, str]] = {}
    for pair in dict.fromkeys(_pairs_of(options)):
        first, second = (_ALIASES.get(name, name) for name in pair)
        made = [
            _method(first, FREE_FORM, options, prompts, alone=first == second),
            _method(second, MULTIPLE_CHOICE, options, prompts, alone=first == second),
        ]
        for one in made:
            methods.setdefault(one["name"], one)
        names = [_label(name, prompts) for name in (first, second)]
        shown[names[0] if first == second else "+".join(names)] = (made[0]["name"], made[1]["name"])
    return Parsers(methods=list(methods.values()), shown=shown, judge=options.judge)


def _judged_parsers(options: MixEvalOptions) -> Parsers:
    """Verdicts of judge files: those that they hold, and what their texts say when they are read again."""
    given = [
        options.parser,
        options.free_form_parser,
        options.multi_choice_parser,
        options.judge,
        options.judge_prompts,
    ]
    if any(given):
        raise UserError(
            "--judged takes verdicts from files and asks no judge",
            fix="leave out the parsers and the judge",
        )
    methods = [
        {"name": name, "type": "mixeval.judged", "params": {"reading": name}} for name in JUDGED
    ]
    return Parsers(methods=methods, shown={name: (name, name) for name in JUDGED})


def _label(parser: str, prompts: Mapping[str, str]) -> str:
    if parser == JUDGE:
        return f"{JUDGE}-compat" if prompts else JUDGE
    return parser.rpartition(":")[2]


def _method(
    parser: str, kind: str, options: MixEvalOptions, prompts: Mapping[str, str], *, alone: bool
) -> JsonObject:
    """The evaluation method of one kind; `alone` if the other kind has the same parser."""
    if parser == JUDGE:
        return _judge_method(kind, options, prompts)
    if parser == "rule" and kind == FREE_FORM:
        raise UserError(
            NO_RULE,
            where="--free-form-parser" if options.free_form_parser else "--parser",
            fix="use --parser rule-compat or --parser judge --judge MODEL; --multi-choice-parser has `rule`",
        )
    if parser in RULES:
        scorer = "answer" if alone else _SCORERS[kind]
        return {
            "name": parser,
            "type": f"mixeval.{scorer}",
            "params": {"parser": parser, "trim_base": options.trim_base},
        }
    if ":" not in parser and "." not in parser:
        raise UserError(
            f"unknown parser {parser!r}",
            fix=f"{nearest(parser, [*RULES, JUDGE])}; or write file.py:function",
        )
    path, _, function = parser.rpartition(":")
    if path:
        return {"name": function, "type": "custom", "path": path, "function_name": function}
    return {"name": parser, "type": parser}


def _judge_method(kind: str, options: MixEvalOptions, prompts: Mapping[str, str]) -> JsonObject:
    if not options.judge:
        raise UserError("which model judges?", fix="name it with --judge, such as --judge NAME@URL")
    params: JsonObject = {"model": options.judge, "trim_base": options.trim_base}
    if prompts:
        params |= {
            "prompt": prompts[kind],
            "temperature": None,
            "params": {"max_tokens": _ORIGINAL_LIMIT},
        }
    name = f"{_label(JUDGE, prompts)}_{_SCORERS[kind]}"
    return {"name": name, "type": f"mixeval.judge_{_SCORERS[kind]}", "params": params}
