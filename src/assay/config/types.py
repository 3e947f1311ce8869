"""What a config means once every short form is written out: the one description of its keys.

Checking, the JSON Schema, the nearest-name hints and the walk that makes paths absolute are derived from these Structs.
A secret is only ever the `${VAR}` that names it.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from assay.config.marks import (
    CodePath,
    Count,
    DataPath,
    GivenPath,
    Level,
    Natural,
    NotNegative,
    ParamsMark,
    PathMark,
    PlacedPath,
    Policy,
    Positive,
    ReadPath,
    Share,
    Text,
    WrittenPath,
    method_paths,
    model_paths,
)
from assay.records import JsonObject

NOT_WRITTEN = ("source", "base", "objects")  # fields of a Config that are not keys of a file


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a config whose keys are all known."""


class PriceConfig(Section, frozen=True):
    """US dollars per million tokens."""

    input: NotNegative
    output: NotNegative


class BudgetConfig(Section, frozen=True):
    """What an experiment may spend: `usd` and `tokens` count all that it ever paid, `seconds` one command's time."""

    usd: NotNegative | None = None
    tokens: Natural | None = None
    seconds: NotNegative | None = None


class ModelConfig(Section, frozen=True):
    """A model. `params` go to the factory of its type; `inference` overrides `sample_params`; a `helper` is only called
    by tasks and scorers, not run by itself; limits that are null are the config's or the lane's own."""

    name: Text
    type: CodePath = "openai"
    params: Annotated[JsonObject, ParamsMark(model_paths)] = {}
    inference: JsonObject = {}
    helper: bool = False
    timeout: Positive | None = None
    max_retries: Natural | None = None
    max_concurrency: Count | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    price: PriceConfig | None = None


class SplitConfig(Section, frozen=True):
    """A split that the source has (`name` alone), or the `ratio` of items whose hash of `seed` and id falls into it."""

    name: Text
    ratio: dict[str, Share] = {}
    seed: Natural = 0


class DatasetConfig(Section, frozen=True):
    """Where the items come from: files (their type follows from the suffix), `name` for types `hf` and `stored`, or a
    function of `path` or `module`; what is done to rows, in this order from `fields` on; where their `media` are."""

    type: Annotated[str, PathMark("given")] = ""
    path: DataPath = ""
    name: str = ""
    subset: str = ""
    revision: str = ""
    repository: PlacedPath = ""
    module: str = ""
    function_name: str = ""
    params: JsonObject = {}
    fields: dict[str, str] = {}
    answer: Literal["", "last"] = ""
    filter: str = ""
    split: SplitConfig | None = None
    sample: Count | None = None
    shuffle: bool | Natural | None = None
    seed: Natural = 0
    media: PlacedPath = ""


class FewShotConfig(Section, frozen=True):
    """Examples that a prompt shows: `text` where it asks for `examples`, else `messages` before its last user turn."""

    dataset: DatasetConfig | None = None
    n: Natural = 5
    seed: Natural = 0
    pick: Literal["random", "first"] = "random"
    text: str = ""
    messages: list[JsonObject] | None = None
    separator: str = "\n\n"


class PromptConfig(Section, frozen=True):
    """A template, by default the item's own conversation or question; rows show its name, else its text."""

    name: str = ""
    text: str = ""
    messages: list[JsonObject] | None = None
    path: str = ""
    few_shot: FewShotConfig | None = None
    system: str = ""
    prefill: str | bool = ""
    turns: Literal["", "last", "each"] = ""
    row_params: list[str] | None = None
    likelihood: JsonObject | None = None
    requests: str = ""


class PlugInConfig(Section, frozen=True):
    """A plug-in by its name in `type`, or, as `custom`, a function of `path` or of `module`."""

    name: Text
    type: GivenPath
    path: ReadPath = ""
    module: str = ""
    function_name: str = ""


class MethodConfig(PlugInConfig, frozen=True):
    """An evaluation method: a plug-in by its name in `type`, or, as `custom`, a function of `path` or
    of `module`. `scale` has the lowest and the highest score, `lower_is_better` says which is the best;
    null: as the function declares."""

    params: Annotated[JsonObject, ParamsMark(method_paths)] = {}
    timeout: Positive | None = None
    scale: list[float | None] | None = None
    lower_is_better: bool | None = None


class LabelFilter(Section, frozen=True):
    """The labels that a metric looks at: only these, or all but these. `together` is the name under which the rows of
    all included labels are one group; without it each label is a group of its own."""

    include: list[str] = []
    exclude: list[str] = []
    together: str = ""


class MetricConfig(PlugInConfig, frozen=True):
    """A metric, found like an evaluation method; one value for each combination of its facets' values and
    each label. The policies that are null are the config's; `interval` is how the confidence
    interval is made; `scale` has the lowest and the highest value there can be."""

    params: JsonObject = {}
    facets: list[str] = []
    labels: LabelFilter = LabelFilter()
    on_error: Policy | None = None
    on_unparsed: Policy | None = None
    on_refused: Policy | None = None
    interval: Literal["auto", "bootstrap"] = "auto"
    scale: list[float | None] | None = None


class CalibrationConfig(Section, frozen=True):
    """The calibration that a gate demands of the judge of `label`: of that very judge, not too old, and with bounds on
    how right the judge is. `path` is the experiment that has it, by default the gated one."""

    label: Text
    max_age_days: Positive | None = None
    min_kappa: Annotated[float, Meta(ge=-1, le=1)] | None = None
    min_sensitivity: Share | None = None
    min_specificity: Share | None = None
    path: WrittenPath = ""


class BenchmarkConfig(Section, frozen=True):
    """A benchmark, or a group of them, and what is changed of it. `limit`: the first documents of each task, or a
    share of them; `samples`: only these; `include_path`: a folder with more tasks, whose code is run; `chat`: also
    likelihoods are asked in the model's chat template; `multiturn`: examples are turns of their own in a chat; `sound`:
    the right number where the collection's own is known to be wrong; `unsafe_code`: models' code may be run, `weak`
    also where it cannot be closed off."""

    task: Text
    limit: Count | Annotated[float, Meta(gt=0, lt=1)] | None = None
    num_fewshot: Natural | None = None
    samples: list[Natural] | None = None
    generation_kwargs: JsonObject = {}
    system_instruction: str = ""
    include_path: ReadPath = ""
    seed: int = 1234
    chat: bool = False
    multiturn: bool = True
    sound: bool = False
    unsafe_code: bool | Literal["weak"] = False


class GateConfig(Section, frozen=True):
    """A condition that `assay gate` checks: a metric (the config's, or a plug-in) of the rows with these facet values
    against bounds or a baseline experiment, or a judge's calibration. Null bounds are not checked."""

    metric: GivenPath = "mean"
    label: str = ""
    facets: JsonObject = {}
    min: float | None = None
    max: float | None = None
    max_drop: Annotated[float, Meta(ge=0)] | None = None
    baseline: WrittenPath = ""
    max_error_rate: Share = 0.0
    calibration: CalibrationConfig | None = None


class TaskConfig(Section, frozen=True):
    """Any Python function in place of prompt and model: `function_name` of the file `path`, or `function`, a
    dotted or registered name; or `graph`, the path of a `graph_config.yaml`."""

    name: Text
    path: ReadPath = ""
    function_name: str = ""
    function: Annotated[str, PathMark("given")] = ""
    graph: ReadPath = ""
    params: JsonObject = {}


class OutputConfig(Section, frozen=True):
    """What is written after a run, in a format of `assay export`: `table` to the file or folder `path`, by default
    within the output folder; `params` are the format's own."""

    type: GivenPath
    table: Text = "responses"
    path: WrittenPath = ""
    params: JsonObject = {}


class PolicyConfig(Section, frozen=True):
    """How a row without a verdict counts: as wrong, or not at all."""

    on_error: Policy = "exclude"
    on_unparsed: Policy = "wrong"
    on_refused: Policy = "wrong"


class LoggingConfig(Section, frozen=True):
    """What is logged, and the file that it goes to as well."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    file: WrittenPath = ""


class RayConfig(Section, frozen=True):
    """Workers on the Ray cluster at `address`, by default as many as fit; `runtime_env` is Ray's own."""

    address: Text = "auto"
    workers: Count | None = None
    cpus: NotNegative = 1
    gpus: NotNegative = 0
    resources: dict[str, NotNegative] = {}
    runtime_env: JsonObject = {}


class OnConfig(Section, frozen=True):
    """The engine that places the workers."""

    ray: RayConfig | None = None


class Config(Section, frozen=True, kw_only=True):
    """One experiment."""

    name: Text
    source: str = ""  # the file that it was read from, "" for a dict
    base: str = ""  # the folder of that file
    objects: list[Any] = []  # those of Python that it names
    models: list[ModelConfig] = []
    tasks: list[TaskConfig] = []
    dataset: DatasetConfig | None = None
    benchmarks: list[BenchmarkConfig] = []
    prompts: list[PromptConfig] = []
    sample_params: JsonObject = {}
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
    cluster_by: str = ""
    logging: LoggingConfig = LoggingConfig()
    env_vars: dict[str, str] = {}
    on: OnConfig | None = None
