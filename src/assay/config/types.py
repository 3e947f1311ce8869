"""What a config means once every short form is written out: the one description of its keys.

Checking, the JSON Schema, the nearest-name hints and the walk that makes paths absolute are derived from these Structs.
A secret is only ever the `${VAR}` that names it.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

NOT_WRITTEN = ("source", "base", "objects")  # fields of a Config that are not keys of a file
Policy = Literal["wrong", "exclude"]
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]
Text = Annotated[str, Meta(min_length=1)]


class PathMark(NamedTuple):
    """That a text is a path; `kind` names the way to make it absolute (see `paths`)."""

    kind: Literal["read", "written", "placed", "code", "template", "data"]


class ParamsMark(NamedTuple):
    """That a mapping holds paths; `fields` gives their types by name, for the entry that the mapping belongs to."""

    fields: Callable[[Mapping[str, Any]], dict[str, Any]]


ReadPath = Annotated[str, PathMark("read")]  # a file that must exist
WrittenPath = Annotated[str, PathMark("written")]  # from the current folder
PlacedPath = Annotated[str, PathMark("placed")]  # it need not exist
CodePath = Annotated[Text, PathMark("code")]  # `file.py:function`, or else a name
TemplatePath = Annotated[str, PathMark("template")]  # a file, or else the text itself
DataPath = Annotated[str | list[str], PathMark("data")]  # files or patterns; what else it is depends on the type


def _model_paths(model: Mapping[str, Any]) -> dict[str, Any]:
    return {"path": WrittenPath if model.get("type") == "record" else ReadPath, "of": {"path": ReadPath}}


def _method_paths(method: Mapping[str, Any]) -> dict[str, Any]:
    """The files that a judge or a decider of matches is made from."""
    kind = str(method.get("type"))
    paths: dict[str, Any] = {"prompt": TemplatePath} if "judge" in kind or kind == "pairwise" else {}
    if kind == "pairwise":
        paths["decide"] = CodePath
        if method["params"].get("decide") == "people":
            paths["labels"] = ReadPath
    return paths


class PriceConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: NotNegative
    output: NotNegative


class BudgetConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an experiment may spend: `usd` and `tokens` count all that it ever paid, `seconds` one command's time."""

    usd: NotNegative | None = None
    tokens: Natural | None = None
    seconds: NotNegative | None = None


class ModelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model. `params` go to the factory of its type; `inference` overrides `sample_params`; a `helper` is only called
    by tasks and scorers, not run by itself; limits that are null are the config's or the lane's own."""

    name: Text
    type: CodePath = "openai"
    params: Annotated[dict[str, Any], ParamsMark(_model_paths)] = {}
    inference: dict[str, Any] = {}
    helper: bool = False
    timeout: Positive | None = None
    max_retries: Natural | None = None
    max_concurrency: Count | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    price: PriceConfig | None = None


class SplitConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A split that the source has (`name` alone), or the `ratio` of items whose hash of `seed` and id falls into it."""

    name: Text
    ratio: dict[str, Share] = {}
    seed: Natural = 0


class DatasetConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the items come from: files (their type follows from the suffix), `name` for types `hf` and `stored`, or a
    function of `path` or `module`; what is done to rows, in this order from `fields` on; where their `media` are."""

    type: str = ""
    path: DataPath = ""
    name: str = ""
    subset: str = ""
    revision: str = ""
    repository: PlacedPath = ""
    module: str = ""
    function_name: str = ""
    params: dict[str, Any] = {}
    fields: dict[str, str] = {}
    answer: Literal["", "last"] = ""
    filter: str = ""
    split: SplitConfig | None = None
    sample: Count | None = None
    shuffle: bool | Natural | None = None
    seed: Natural = 0
    media: PlacedPath = ""


class FewShotConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Examples that a prompt shows: `text` where it asks for `examples`, else `messages` before its last user turn."""

    dataset: DatasetConfig | None = None
    n: Natural = 5
    seed: Natural = 0
    pick: Literal["random", "first"] = "random"
    text: str = ""
    messages: list[dict[str, Any]] | None = None
    separator: str = "\n\n"


class PromptConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template, by default the item's own conversation or question; rows show its name, else its text."""

    name: str = ""
    text: str = ""
    messages: list[dict[str, Any]] | None = None
    path: str = ""
    few_shot: FewShotConfig | None = None
    system: str = ""
    prefill: str | bool = ""
    turns: Literal["", "last", "each"] = ""
    row_params: list[str] | None = None
    likelihood: dict[str, Any] | None = None


class MethodConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An evaluation method: a plug-in by its name in `type`, or, as `custom`, a function of `path` or of `module`."""

    name: Text
    type: Text
    path: ReadPath = ""
    module: str = ""
    function_name: str = ""
    params: Annotated[dict[str, Any], ParamsMark(_method_paths)] = {}
    timeout: Positive | None = None


class LabelFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The labels that a metric looks at: only these, or all but these. `together` is the name under which the rows of
    all included labels are one group; without it each label is a group of its own."""

    include: list[str] = []
    exclude: list[str] = []
    together: str = ""


class MetricConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric, found like an evaluation method; one value for each combination of its facets' values and
    each label. The policies that are null are the config's; `interval` is how the confidence interval is made."""

    name: Text
    type: Text
    path: ReadPath = ""
    module: str = ""
    function_name: str = ""
    params: dict[str, Any] = {}
    facets: list[str] = []
    labels: LabelFilter = LabelFilter()
    on_error: Policy | None = None
    on_unparsed: Policy | None = None
    on_refused: Policy | None = None
    interval: Literal["auto", "bootstrap"] = "auto"


class CalibrationConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The calibration that a gate demands of the judge of `label`: of that very judge, not too old, and with bounds on
    how right the judge is. `path` is the experiment that has it, by default the gated one."""

    label: Text
    max_age_days: Positive | None = None
    min_kappa: Annotated[float, Meta(ge=-1, le=1)] | None = None
    min_sensitivity: Share | None = None
    min_specificity: Share | None = None
    path: WrittenPath = ""


class GateConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition that `assay gate` checks: a metric (the config's, or a plug-in) of the rows with these facet values
    against bounds or a baseline experiment, or a judge's calibration. Null bounds are not checked."""

    metric: Text = "mean"
    label: str = ""
    facets: dict[str, Any] = {}
    min: float | None = None
    max: float | None = None
    max_drop: Annotated[float, Meta(ge=0)] | None = None
    baseline: WrittenPath = ""
    max_error_rate: Share = 0.0
    calibration: CalibrationConfig | None = None


class TaskConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any Python function in place of prompt and model: `function_name` of the file `path`, or `function`, a
    dotted or registered name; or `graph`, the path of a `graph_config.yaml`."""

    name: Text
    path: ReadPath = ""
    function_name: str = ""
    function: str = ""
    graph: ReadPath = ""
    params: dict[str, Any] = {}


class OutputConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written after a run, in a format of `assay export`: `table` to the file or folder `path`, by default
    within the output folder; `params` are the format's own."""

    type: Text
    table: Text = "responses"
    path: WrittenPath = ""
    params: dict[str, Any] = {}


class PolicyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a row without a verdict counts: as wrong, or not at all."""

    on_error: Policy = "exclude"
    on_unparsed: Policy = "wrong"
    on_refused: Policy = "wrong"


class LoggingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is logged, and the file that it goes to as well."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    file: WrittenPath = ""


class RayConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Workers on the Ray cluster at `address`, by default as many as fit; `runtime_env` is Ray's own."""

    address: Text = "auto"
    workers: Count | None = None
    cpus: NotNegative = 1
    gpus: NotNegative = 0
    resources: dict[str, NotNegative] = {}
    runtime_env: dict[str, Any] = {}


class OnConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The engine that places the workers."""

    ray: RayConfig | None = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One experiment."""

    name: Text
    source: str = ""  # the file that it was read from, "" for a dict
    base: str = ""  # the folder of that file
    objects: list[Any] = []  # those of Python that it names
    models: list[ModelConfig] = []
    tasks: list[TaskConfig] = []
    dataset: DatasetConfig | None = None
    prompts: list[PromptConfig] = []
    sample_params: dict[str, Any] = {}
    num_samples: Count = 1
    evaluation_methods: list[MethodConfig] = []
    metrics: list[MetricConfig] = []
    gates: list[GateConfig] = []
    outputs: list[OutputConfig] = []
    output_dir: Annotated[Text, PathMark("written")]
    limit: Natural | None = None
    mode: Literal["full", "inference", "evaluation"] = "full"
    max_concurrency: Count | None = None
    timeout: Positive = 300.0
    max_retries: Natural = 3
    seed: Natural = 0
    resume: bool = True
    max_error_rate: Share | None = None
    budget: BudgetConfig = BudgetConfig()
    prices: dict[str, PriceConfig] = {}
    policy: PolicyConfig = PolicyConfig()
    ci_level: Level = 0.95
    logging: LoggingConfig = LoggingConfig()
    env_vars: dict[str, str] = {}
    on: OnConfig | None = None
