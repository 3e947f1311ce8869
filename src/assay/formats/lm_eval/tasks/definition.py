"""A task of lm-evaluation-harness as its YAML files define it: every key with the harness's default."""

import traceback
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from assay.formats.lm_eval.facade.sources import install_line
from assay.sdk import AssayError, JsonObject, UserError


class Hook:
    """`!function module.name`, written in a YAML file of `folder`; nothing is imported before its value is needed.

    The value need not be a function: classes, lists and partials are used as well.
    """

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.folder = folder

    def __repr__(self) -> str:
        return f"!function {self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hook) and (self.name, self.folder) == (other.name, other.folder)

    def __hash__(self) -> int:
        return hash((self.name, self.folder))

    def __reduce__(self) -> tuple[type["Hook"], tuple[str, str]]:
        return Hook, (self.name, self.folder)

    @property
    def file(self) -> Path | None:
        """The Python file that has it; None if its module is an installed one."""
        from assay.formats.lm_eval.facade.sources import local_file

        module = self.name.rpartition(".")[0]
        file = Path(self.folder, *module.split(".")).with_suffix(".py")
        return (
            file.resolve() if file.is_file() else local_file(module, Path(self.folder, "task.yaml"))
        )

    @cached_property
    def value(self) -> Any:
        from assay.formats.lm_eval.facade.importing import value_of

        return value_of(self)

    @cached_property
    def identity(self) -> str:
        """Name and a hash of the bytes of its file and of the local modules that this imports."""
        from assay.formats.lm_eval.facade.sources import digest

        return f"{self.name}#{digest(self.file)}" if self.file else self.name


OutputType = Literal["generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"]
Template = str | int | list[Any] | JsonObject | Hook | None


def default_generation(until: str = "\n\n") -> JsonObject:
    """Return how the harness generates where a task does not say it."""
    return {"temperature": 0.0, "do_sample": False, "max_gen_toks": 256, "until": [until]}


class FewShotKeys(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How examples are chosen and shown; what is unset is the task's own."""

    sampler: str | Hook = "default"
    split: str | None = None
    process_docs: Hook | None = None
    fewshot_indices: list[int] | None = None
    samples: list[JsonObject] | Hook | None = None
    doc_to_text: Template = None
    doc_to_choice: Template = None
    doc_to_target: Template = None
    gen_prefix: str | None = None
    fewshot_delimiter: str | None = None
    target_delimiter: str | None = None


class Definition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One task. `file` is where it is written; `changes` has what a caller changed: key → (as defined, as run)."""

    task: str
    file: str = ""
    changes: dict[str, tuple[Any, Any]] = {}
    task_alias: str | None = None
    dataset_path: str | None = None
    dataset_name: str | None = None
    dataset_kwargs: JsonObject | None = None
    custom_dataset: Hook | None = None
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    process_docs: Hook | None = None
    doc_to_text: Template = None
    doc_to_target: Template = None
    doc_to_choice: Template = None
    doc_to_image: Template = None
    doc_to_audio: Template = None
    unsafe_code: bool = False
    process_results: Hook | None = None
    use_prompt: str | None = None
    description: str = ""
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    fewshot_config: FewShotKeys = msgspec.field(default_factory=FewShotKeys)
    num_fewshot: int | None = None
    metric_list: list[JsonObject] | None = None
    output_type: OutputType = "generate_until"
    generation_kwargs: JsonObject | None = None
    repeats: int = 1
    filter_list: list[JsonObject] | None = None
    should_decontaminate: bool = False
    doc_to_decontamination_query: str | None = None
    gen_prefix: str | None = None
    metadata: JsonObject = {}


class TaskDocument(msgspec.Struct, kw_only=True):
    """A document with what is asked about it. `messages` of a request have a `delimiter` each: the plain text is all
    contents and delimiters, a chat has the contents only.

    target: doc_to_target's value; where doc_to_text chooses among the inputs, that number
    multiple_target: whether the target of the task's first document is a list with entries
    error: why it cannot be asked, with file and line; its `requests` are then empty
    """

    id: int
    doc: JsonObject
    target: Any
    choices: list[str] | None = None
    requests: list["TaskRequest"]
    multiple_target: bool = False
    error: str = ""


class TaskRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request: a generation with `params` (the harness's generation_kwargs), or the likelihood of `continuation`
    after the messages; `rolling`: of a whole text."""

    messages: list[dict[str, str]]
    params: JsonObject = {}
    continuation: str | None = None
    rolling: bool = False


class TaskMember(msgspec.Struct, kw_only=True):
    """A task or a group of a group; a group's numbers are made of its tasks' by `aggregate`."""

    name: str
    alias: str | None = None
    definition: Definition | None = None
    members: list["TaskMember"] = []
    aggregate: list[JsonObject] = []
    version: Any = None


def leaves(member: TaskMember) -> list[TaskMember]:
    """The tasks of a group and of the groups inside, in order."""
    if member.definition:
        return [member]
    return [leaf for inner in member.members for leaf in leaves(inner)]


T = TypeVar("T")


def own_line(error: BaseException) -> str:
    """Return the last line of a task's own code that an error comes from; empty if it comes from none."""
    steps = traceback.walk_tb(error.__traceback__)
    own = [
        (frame.f_code.co_filename, line) for frame, line in steps if "__state__" in frame.f_globals
    ]
    return f"{own[-1][0]}:{own[-1][1]}" if own else ""


class HookError(UserError):
    """What a function of a task raised, or the harness's own rule, for one document."""


def call_hook(function: Callable[..., T], what: str, where: str, /, *args: Any, **params: Any) -> T:
    """The function's value; `where` is the task's file, for errors that no line of a hook's module raised."""
    try:
        return function(*args, **params)
    except AssayError:
        raise
    except Exception as error:
        place = own_line(error) or where
        missing = error.name if isinstance(error, ModuleNotFoundError) else ""
        fix = install_line(missing) if missing else ""
        raise HookError(f"{what}: {type(error).__name__}: {error}", where=place, fix=fix) from error


def registered_value(definition: Definition, kind: str, name: str) -> Any:
    """Return what a module of the task's hooks registered as a `filter`, `metric` or `aggregation`; None if none
    did."""
    from assay.formats.lm_eval.facade import importing
    from assay.formats.lm_eval.tasks.task_keys import hooks_in

    for hook in hooks_in(msgspec.structs.asdict(definition)):
        _ = hook.value
    return importing.registered(kind, name)


def once(definition: Definition, make: Callable[[Definition], T]) -> T:
    """Return what `make` makes of a definition, made once: definitions are not changed after they are read."""
    kept: JsonObject = vars(definition)
    if make.__name__ not in kept:
        kept[make.__name__] = make(definition)
    return kept[make.__name__]


def value_of_key(value: Any) -> Any:
    """Return a key's value; of a hook that of its function."""
    return value.value if isinstance(value, Hook) else value
