"""The original's module names: a finder that makes the modules of the table, and the reason why a
name is missing.

Importing this file puts the finder into `sys.meta_path`. Only modules by the original's names do:
what reads and writes folders imports none of them.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

_ROOT = "assay.formats.intelligence_layer"
_FOLDERS = {
    "connectors": ("", "limited_concurrency_client"),
    "connectors.argilla": ("", "argilla_client argilla_wrapper_client"),
    "connectors.base": ("types", "json_serializable"),
    "connectors.studio": ("", "studio"),
    "core": ("tasks types", "instruct model task"),
    "core.tracer": (
        "tracer",
        "composite_tracer file_tracer in_memory_tracer open_telemetry_tracer persistent_tracer "
        "tracer",
    ),
    "evaluation.aggregation": (
        "aggregations elo logics domain",
        "accumulator aggregation_repository aggregator domain elo_aggregation "
        "file_aggregation_repository hugging_face_aggregation_repository "
        "in_memory_aggregation_repository",
    ),
    "evaluation.benchmark": ("", "benchmark studio_benchmark trace_information"),
    "evaluation.dataset": (
        "datasets domain",
        "dataset_repository domain file_dataset_repository hugging_face_dataset_repository "
        "in_memory_dataset_repository single_huggingface_dataset_repository "
        "studio_dataset_repository",
    ),
    "evaluation.evaluation": (
        "evaluations domain",
        "domain evaluation_repository file_evaluation_repository graders "
        "in_memory_evaluation_repository",
    ),
    "evaluation.evaluation.evaluator": (
        "evaluator logics elo",
        "argilla_evaluator async_evaluator base_evaluator evaluator incremental_evaluator",
    ),
    "evaluation.infrastructure": (
        "",
        "file_system_based_repository hugging_face_repository repository_navigator",
    ),
    "evaluation.run": (
        "runs domain runner",
        "domain file_run_repository in_memory_run_repository run_repository runner",
    ),
}
"""A folder of the original: our files, in which names of its modules are looked up in this order,
and its modules."""
MODULES = dict.fromkeys(_FOLDERS.keys() - {"connectors", "core"}, "") | {
    f"{folder}.{module}": homes
    for folder, (homes, modules) in _FOLDERS.items()
    for module in modules.split()
}
"""Every module that is not a file, and where its names are; the folders have none."""

_STUDIO = "PhariaStudio is a closed service: use the file repositories"
_INDEX = "the Document Index is a closed service: a Task may ask any other one"
_MODELS = (
    "models are Assay's own: a Task calls any client, or use `models:` of a config (docs/models.md)"
)
_PROMPTS = "prompts are Assay's own: Jinja templates (docs/prompts.md)"
_TASKS = "only the evaluation library is offered: write the task itself as a `Task`"
_PEOPLE = "people label in `assay view`, or in a table for `assay judge calibrate --labels`"
_STEPS = (
    "call Runner, Evaluator and Aggregator one after another, and `assay compare` what they leave"
)
_TRACERS = (
    "use InMemoryTracer; the file repositories keep the trace of each example for `assay trace`"
)
_FILES = "use the file repositories, in a folder that the hub's own tools move"
_LOGICS = "compute it in the logic itself, or use a scorer of Assay's (docs/scorer-reference.md)"
_LINEAGES = "use `Evaluator.evaluation_lineages`, or the repositories themselves"
_FRAMES = "read what `assay export --table samples` writes, or ask with `assay sql`"
_JSON = "records are dataclasses: use `dataclasses.asdict` or `msgspec.json.encode`"
_REASONS = {
    _STUDIO: (
        "connectors.data BenchmarkLineage DataClient DataDataset DataFile DataRepository "
        "GetBenchmarkResponse PostBenchmarkExecution StudioBenchmark StudioBenchmarkRepository "
        "StudioClient StudioDataset StudioDatasetRepository StudioExample"
    ),
    _INDEX: (
        "connectors.document_index AsyncDocumentIndexClient AsyncDocumentIndexRetriever "
        "CollectionPath DocumentContents DocumentIndexClient DocumentIndexRetriever DocumentInfo "
        "DocumentPath SearchQuery"
    ),
    _MODELS: (
        "connectors.kernel AlephAlphaChatModel AlephAlphaClientProtocol AlephAlphaModel ChatModel "
        "CompleteInput CompleteOutput ControlModel ExplainInput ExplainOutput FinetuningMessage "
        "InstructInput KernelTask LanguageModel LimitedConcurrencyClient Llama2InstructModel "
        "Llama3ChatModel Llama3InstructModel LuminousControlModel Message Pharia1ChatModel"
    ),
    _PROMPTS: "core.prompt_template Cursor PromptItemCursor PromptRange PromptTemplate RichPrompt TextCursor",
    _TASKS: (
        "connectors.retrievers core.chunk core.detect_language core.echo core.text_highlight "
        "examples learning AsyncBaseRetriever BaseRetriever Chunk ChunkInput ChunkOutput "
        "ChunkWithIndices DetectLanguage DetectLanguageInput DetectLanguageOutput Document "
        "DocumentChunk Echo EchoInput EchoOutput HybridQdrantInMemoryRetriever Instruct Language "
        "QdrantInMemoryRetriever RetrieverType ScoredTextHighlight SearchResult TextChunk "
        "TextHighlight TextHighlightInput TextHighlightOutput TokenWithLogProb"
    ),
    _PEOPLE: (
        "ArgillaClient ArgillaEvaluation ArgillaEvaluationLogic ArgillaEvaluator "
        "ArgillaWrapperClient AsyncEvaluationRepository AsyncEvaluator "
        "AsyncFileEvaluationRepository AsyncInMemoryEvaluationRepository FileArgillaClient "
        "InstructComparisonArgillaEvaluationLogic PartialEvaluationOverview RatingQuestion Record "
        "RecordData RecordDataSequence TextField"
    ),
    _STEPS: (
        "evaluation.run_evaluation Benchmark BenchmarkRepository FileBenchmark "
        "FileBenchmarkRepository create_aggregation_logic_identifier "
        "create_evaluation_logic_identifier extract_latency_from_trace "
        "extract_token_count_from_trace type_to_schema"
    ),
    _TRACERS: (
        "CompositeSpan CompositeTaskSpan CompositeTracer EndSpan EndTask FileSpan FileTaskSpan "
        "FileTracer LogLine OpenTelemetrySpan OpenTelemetryTaskSpan OpenTelemetryTracer "
        "PersistentSpan PersistentTaskSpan PersistentTracer PlainEntry StartSpan StartTask "
        "TracerLogEntryFailed"
    ),
    _FILES: (
        "FileSystemAggregationRepository FileSystemBasedRepository FileSystemDatasetRepository "
        "HuggingFaceAggregationRepository HuggingFaceDatasetRepository HuggingFaceRepository "
        "MultipleChoiceInput SingleHuggingfaceDatasetRepository"
    ),
    _LOGICS: "BleuGrader FScores HighlightCoverageGrader LanguageMatchesGrader RougeGrader",
    _LINEAGES: "RepositoryNavigator RunLineage",
    _FRAMES: "aggregation_overviews_to_pandas evaluation_lineages_to_pandas run_lineages_to_pandas",
    _JSON: "ExportedSpanList JsonSerializer",
}
NOT_OFFERED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Names and modules of the original without a counterpart, with the reason."""


def refuse(name: str, offered: Sequence[str] = ()) -> NoReturn:
    """Raise the reason as an ImportError; for the name of a class that nobody knows, the nearest of
    those that are offered. Anything else that a program may ask of a module is simply not there."""
    if name in NOT_OFFERED:
        raise ImportError(f"{name} of the Intelligence Layer is not offered: {NOT_OFFERED[name]}")
    if name[0].isupper():
        close = get_close_matches(name, offered, n=1)
        raise ImportError(
            f"no name {name} is offered" + (f": did you mean {close[0]}?" if close else "")
        )
    raise AttributeError(name)


def names_of(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module. A name comes from the first of our files that
    has it, which is imported when it is asked for; `homes` has the names that a file gives, all
    public ones where that is empty."""

    def lookup(name: str) -> Any:
        if name == "__all__":
            return public()
        for home, names in homes.items():
            is_given = name[0] != "_" and (not names or name in names.split())
            if is_given and name in (found := vars(_file(home))):
                setattr(sys.modules[module], name, found[name])
                return found[name]
        refuse(name, public())

    def public() -> list[str]:
        offered = (names.split() or vars(_file(home)) for home, names in homes.items())
        return sorted({name for names in offered for name in names if name[0] != "_"})

    return lookup, public


def _file(home: str) -> ModuleType:
    return import_module(f"{_ROOT}.{home}")


class _NameFinder(MetaPathFinder, Loader):
    """Makes the modules of the table when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{_ROOT}.")
        if name == fullname or name not in MODULES:
            if name in NOT_OFFERED and name != fullname:
                refuse(name)
            return None
        has_modules = any(other.startswith(f"{name}.") for other in MODULES)
        return ModuleSpec(fullname, self, is_package=has_modules)

    def exec_module(self, module: ModuleType) -> None:
        homes = MODULES[module.__name__.removeprefix(f"{_ROOT}.")].split()
        module.__doc__ = f"See {', '.join(homes) or 'the modules below'}."
        served = names_of(module.__name__, dict.fromkeys(homes, ""))
        module.__getattr__, module.__dir__ = served  # type: ignore[method-assign]


sys.meta_path.append(_NameFinder())  # asked where there is no file
