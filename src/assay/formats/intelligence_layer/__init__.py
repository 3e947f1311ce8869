"""The Intelligence Layer's evaluation library by its own names, over Assay's engine, rows and store.

`intelligence_layer.core` and `intelligence_layer.evaluation` are `assay.formats.intelligence_layer.core` and
`assay.formats.intelligence_layer.evaluation`, and so are the modules below them: existing code moves by changing the
import's root. `evaluation.run.file_run_repository` is a module of the table below, not a file: its names are looked up
in the file that the table gives when they are asked for. A name that is not offered is an ImportError with the reason.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

_FOLDERS = {
    "connectors": ("connectors models", "limited_concurrency_client"),
    "connectors.argilla": ("connectors", "argilla_client argilla_wrapper_client file_client"),
    "connectors.base": ("types", "json_serializable"),
    "connectors.studio": ("", "studio"),
    "core": ("core types models", "instruct model task"),
    "core.tracer": (
        "tracer tracers tracers_files",
        "composite_tracer file_tracer in_memory_tracer open_telemetry_tracer persistent_tracer tracer",
    ),
    "evaluation": ("run_evaluation", "run_evaluation"),
    "evaluation.aggregation": (
        "aggregations elo graders logics domain",
        "accumulator aggregation_repository aggregator domain elo_aggregation file_aggregation_repository "
        "hugging_face_aggregation_repository in_memory_aggregation_repository",
    ),
    "evaluation.benchmark": (
        "benchmarks logics graders",
        "benchmark file_benchmark studio_benchmark trace_information",
    ),
    "evaluation.dataset": (
        "datasets dataset_files domain",
        "dataset_repository domain file_dataset_repository hugging_face_dataset_repository "
        "in_memory_dataset_repository single_huggingface_dataset_repository studio_dataset_repository",
    ),
    "evaluation.evaluation": (
        "evaluations domain graders",
        "domain evaluation_repository file_evaluation_repository graders in_memory_evaluation_repository",
    ),
    "evaluation.evaluation.evaluator": (
        "evaluator logics elo argilla evaluations",
        "argilla_evaluator async_evaluator base_evaluator evaluator incremental_evaluator",
    ),
    "evaluation.infrastructure": (
        "original navigator",
        "file_system_based_repository hugging_face_repository repository_navigator",
    ),
    "evaluation.run": (
        "runs domain runner",
        "domain file_run_repository in_memory_run_repository run_repository runner",
    ),
}
"""A folder of the original: our files, in which names of its modules are looked up in this order, and its modules."""
MODULES = dict.fromkeys(_FOLDERS.keys() - {"connectors", "core", "evaluation"}, "") | {
    f"{folder}.{module}": homes
    for folder, (homes, modules) in _FOLDERS.items()
    for module in modules.split()
}
"""Every module that is not a file, and where its names are; the folders have none."""

_STUDIO = "PhariaStudio is a closed service: use the file repositories, and FileBenchmarkRepository for benchmarks"
_INDEX = "the Document Index is a closed service: a Task may ask any other one"
_MODELS = (
    "models are Assay's own: a Task calls any client, or use `models:` of a config (docs/models.md)"
)
_PROMPTS = "prompts are Assay's own: Jinja templates (docs/prompts.md)"
_TASKS = "only the evaluation library is offered: write the task itself as a `Task`"
_REASONS = {
    _STUDIO: (
        "connectors.data BenchmarkLineage DataClient DataDataset DataFile DataRepository GetBenchmarkResponse "
        "PostBenchmarkExecution StudioBenchmark StudioBenchmarkRepository StudioClient StudioDataset "
        "StudioDatasetRepository StudioExample"
    ),
    _INDEX: (
        "connectors.document_index AsyncDocumentIndexClient AsyncDocumentIndexRetriever CollectionPath "
        "DocumentContents DocumentIndexClient DocumentIndexRetriever DocumentInfo DocumentPath SearchQuery"
    ),
    _MODELS: (
        "connectors.kernel AlephAlphaChatModel AlephAlphaModel ChatModel CompleteInput ExplainInput ExplainOutput "
        "FinetuningMessage KernelTask LanguageModel LimitedConcurrencyClient Llama2InstructModel Llama3ChatModel "
        "Llama3InstructModel LuminousControlModel Message Pharia1ChatModel"
    ),
    _PROMPTS: "core.prompt_template Cursor PromptItemCursor PromptRange PromptTemplate RichPrompt TextCursor",
    "use LanguageMatchesGrader of `evaluation`": (
        "core.detect_language DetectLanguage DetectLanguageInput DetectLanguageOutput Language"
    ),
    _TASKS: (
        "connectors.retrievers core.chunk core.echo core.text_highlight examples learning AsyncBaseRetriever "
        "BaseRetriever Chunk ChunkInput ChunkOutput ChunkWithIndices Document DocumentChunk Echo EchoInput EchoOutput "
        "HybridQdrantInMemoryRetriever Instruct QdrantInMemoryRetriever RetrieverType ScoredTextHighlight SearchResult "
        "TextChunk TextHighlight TextHighlightInput TextHighlightOutput TokenWithLogProb"
    ),
}
NOT_OFFERED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Names and modules of the original without a counterpart, with the reason."""


def not_offered(name: str, offered: Sequence[str] = ()) -> Any:
    """The reason as an ImportError; for the name of a class that nobody knows, the nearest of those that are offered.
    Anything else that a program may ask of a module is simply not there."""
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
    """`__getattr__` and `__dir__` of a module. A name comes from the first of our files that has it, which is imported
    when it is asked for; `homes` has the names that a file gives, all public ones where that is empty."""

    def lookup(name: str) -> Any:
        if name == "__all__":
            return public()
        for home, names in homes.items():
            if (
                name[0] != "_"
                and (not names or name in names.split())
                and name in vars(_file(home))
            ):
                setattr(sys.modules[module], name, getattr(_file(home), name))
                return getattr(_file(home), name)
        return not_offered(name, public())

    def public() -> list[str]:
        offered = (names.split() or vars(_file(home)) for home, names in homes.items())
        return sorted({name for names in offered for name in names if name[0] != "_"})

    return lookup, public


def _file(home: str) -> ModuleType:
    return import_module(f"{__name__}.{home}")


class _Names(MetaPathFinder, InspectLoader):
    """Makes the modules of the table when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{__name__}.")
        if name == fullname or name not in MODULES:
            if name in NOT_OFFERED and name != fullname:
                not_offered(name)
            return None
        has_modules = any(other.startswith(f"{name}.") for other in MODULES)
        file = next((_spec(home).origin for home in _homes(fullname)), None)
        return ModuleSpec(fullname, self, origin=file, is_package=has_modules)

    def exec_module(self, module: ModuleType) -> None:
        homes = MODULES[module.__name__.removeprefix(f"{__name__}.")].split()
        module.__doc__ = f"See {', '.join(homes) or 'the modules below'}."
        module.__getattr__, module.__dir__ = names_of(module.__name__, dict.fromkeys(homes, ""))  # type: ignore[method-assign]

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> CodeType | None:
        """For `python -m`: the code of the file that serves the module."""
        (home,) = _homes(fullname)
        loader = _spec(home).loader
        return loader.get_code(home) if isinstance(loader, InspectLoader) else None


def _homes(fullname: str) -> list[str]:
    return [f"{__name__}.{home}" for home in MODULES[fullname.removeprefix(f"{__name__}.")].split()]


def _spec(home: str) -> ModuleSpec:
    spec = find_spec(home)
    if spec is None:
        raise ModuleNotFoundError(home)
    return spec


if not any(isinstance(finder, _Names) for finder in sys.meta_path):
    sys.meta_path.append(_Names())  # asked where there is no file
