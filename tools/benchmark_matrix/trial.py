"""One task on rows of its own: what it needs, whether it binds and runs, and why not."""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow
from jinja2 import UndefinedError

from assay.errors import AssayError
from assay.formats.lm_eval.asking.data import Data, library
from assay.formats.lm_eval.asking.documents import BoundTask, asked_documents
from assay.formats.lm_eval.scoring.aggregations import aggregate, stderr
from assay.formats.lm_eval.scoring.results import results
from assay.formats.lm_eval.tasks.definition import Definition, Hook, TaskDocument
from tools.benchmark_matrix import python_reads
from tools.benchmark_matrix.fields import Field, rows
from tools.benchmark_matrix.jinja_reads import read as read_template, read_choices
from tools.benchmark_matrix.repair import apply, cause, guesses, repair

HINTS: dict[str, list[Any]] = {  # what no reading of the code tells
    "instruction_id_list": [["punctuation:no_comma"], ["startend:quotation"]],
    "kwargs": [[{"num_words": None}]],
}
TRIES = 24
_FORMS = (
    "{}",
    "The answer is {}.",
    "the answer is ({})",
    "#### {}",
    "{}",
    "Answer: {}",
    "\\boxed{{{}}}",
    "{}\nnext",
)


class Outcome(NamedTuple):
    """`stage`: what it does: nothing, "loads", "binds" or "runs"; `problem`: what the next stage says."""

    stage: str
    problem: str = ""
    schema: Field | None = None


def try_task(definition: Definition, siblings: dict[str, Field], tries: int = TRIES) -> Outcome:
    """`siblings`: fields that worked for a task of the same data"""
    fields = fields_of(definition)
    if not set(fields.children) & set(siblings):
        return _tried(definition, fields, tries)
    fields.children |= {name: copy.deepcopy(part) for name, part in siblings.items()}
    outcome = _tried(definition, fields, tries)
    return (
        outcome
        if outcome.stage == "runs"
        else max(outcome, _tried(definition, fields_of(definition), tries), key=_STAGES)
    )


def _STAGES(outcome: Outcome) -> int:
    return ["", "loads", "binds", "runs"].index(outcome.stage)


def _tried(definition: Definition, root: Field, tries: int) -> Outcome:
    tried: set[Any] = set()
    waiting: list[Any] | None = None  # changes to guess, of `root`
    outcome, error = _run(definition, root, tried)
    for _ in range(tries):
        if error is None:
            break
        if waiting is None and repair(root, error, made_of(root, definition), tried):
            outcome, error = _run(definition, root, tried)
            continue
        if waiting is None:
            waiting = list(guesses(root, error))
        if not waiting:
            break
        guess, change = copy.deepcopy(root), waiting.pop(0)
        if not apply(guess, change):
            continue
        after, problem = _run(definition, guess, tried)
        if problem is None or (
            _STAGES(after) >= _STAGES(outcome) and _goes_further(problem, error)
        ):
            root, outcome, error, waiting = guess, after, problem, None
    return outcome


def _goes_further(error: BaseException, before: BaseException) -> bool:
    """Another error than before, and not one of a value's kind, which a wrong guess makes."""
    return not isinstance(cause(error), (TypeError, AttributeError, UndefinedError)) and _place(
        error
    ) != _place(before)


def _place(error: BaseException) -> Any:
    error = cause(error)
    trace, lines = error.__traceback__, []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lasti))
        trace = trace.tb_next
    return lines


def _run(
    definition: Definition, root: Field, tried: set[Any]
) -> tuple[Outcome, BaseException | None]:
    stage = "loads"
    try:
        documents = bind(definition, made_of(root, definition))
        while _better_target(definition, documents, root, tried):
            documents = bind(definition, made_of(root, definition))
        stage = "binds"
        score(definition, documents)
    except (Exception, SystemExit) as error:
        return Outcome(stage, text(error), root), error
    return Outcome("runs", "", root), None


def made_of(root: Field, definition: Definition) -> list[dict[str, Any]]:
    return rows(root, max(row_count(definition), root.length))


def row_count(definition: Definition) -> int:
    return max(2 if definition.unsafe_code else 8, (definition.num_fewshot or 0) + 3)


def text(error: BaseException) -> str:
    if isinstance(error, AssayError):
        return f"{error.what}{f' [{error.where}]' if error.where else ''}{f' ({error.fix})' if error.fix else ''}"
    return f"{type(error).__name__}: {error}"


def splits_of(definition: Definition) -> list[str]:
    shots = definition.fewshot_config
    names = (
        definition.training_split,
        definition.validation_split,
        definition.test_split,
        definition.fewshot_split,
    )
    return list(dict.fromkeys(name for name in (*names, shots.split) if name))


_made: dict[Any, Any] = {}


def dataset(made: list[dict[str, Any]]) -> Any:
    key = hashlib.blake2b(repr(made).encode()).digest()
    if key not in _made:
        if len(_made) > 200:
            _made.clear()
        table = library().table.InMemoryTable(pyarrow.Table.from_pylist(made))
        _made[key] = library().Dataset(table, fingerprint=key.hex()[:16])
    return _made[key]


def bind(definition: Definition, made: list[dict[str, Any]]) -> list[TaskDocument]:
    table = dataset(made)
    bound = BoundTask(
        definition, data=Data(definition, dict.fromkeys(splits_of(definition), table))
    )
    documents = list(asked_documents(bound))
    for document in documents:
        if document.error:
            raise ValueError(document.error)
    return documents


def score(
    definition: Definition, documents: list[TaskDocument]
) -> dict[tuple[str, str], tuple[float, float | None]]:
    return {
        key: (aggregate(definition, key[0], column), stderr(definition, key[0], column, 10))
        for key, column in values_of(definition, documents).items()
    }


def values_of(
    definition: Definition, documents: list[TaskDocument]
) -> dict[tuple[str, str], list[Any]]:
    values: dict[tuple[str, str], list[Any]] = {}
    for document in documents:
        for key, value in of_document(definition, document).items():
            values.setdefault(key, []).append(value)
    return values


def of_document(definition: Definition, document: TaskDocument) -> dict[tuple[str, str], Any]:
    return results(
        definition,
        document.doc,
        document.target,
        document.choices,
        answers(definition, document),
        multiple_target=document.multiple_target,
        sandbox="weak",
    )


def answers(definition: Definition, document: TaskDocument) -> list[Any]:
    """What a model says that is a function of the text, and of the target, which it often knows."""
    if definition.output_type == "generate_until":
        text = "".join(
            part["content"] + part["delimiter"] for part in document.requests[0].messages
        )
        return [generated(text, document.target, number) for number in range(definition.repeats)]
    return [
        likelihood(
            "".join(part["content"] for part in request.messages) + (request.continuation or "")
        )
        for request in document.requests
    ]


def generated(text: str, target: Any, number: int = 0) -> str:
    draw = _draw(text, number)
    target = target[0] if isinstance(target, list) and target else target
    return _FORMS[draw % len(_FORMS)].format(target if draw % 3 else f"item {draw % 7}")


def likelihood(text: str) -> tuple[float, bool]:
    draw = _draw(text)
    return -(draw % 4001) / 100 - 0.5, draw % 3 == 0


def _draw(text: str, number: int = 0) -> int:
    return int.from_bytes(
        hashlib.blake2b(f"{number} {text}".encode(), digest_size=6).digest(), "big"
    )


def fields_of(definition: Definition) -> Field:
    """What its templates and functions read."""
    raw, doc = Field(), Field()
    shots = definition.fewshot_config
    for hook in (definition.process_docs, shots.process_docs):
        if hook is not None:
            python_reads.read(hook.value, raw, docs=True)
    for part in (definition, shots):
        for key in ("doc_to_text", "doc_to_target", "doc_to_choice", "gen_prefix", "description"):
            _read(getattr(part, key, None), doc, key == "doc_to_choice")
    if definition.process_results is not None:
        python_reads.read(definition.process_results.value, doc)
    for pipeline in definition.filter_list or ():
        for step in pipeline["filter"]:
            if step.get("function") == "multi_choice_regex":
                doc.child("choices").element()
    _label(definition, doc)
    for name, values in HINTS.items():
        if name in doc.children:
            doc.children[name].values, doc.children[name].forced = values, "values"
    for name in set(raw.children) & set(doc.children):
        raw.children[name].is_text |= doc.children[name].is_text
    made = _columns(definition, raw)
    raw.children |= {
        name: field for name, field in doc.children.items() if name not in {*raw.children, *made}
    }
    return raw


def _columns(definition: Definition, raw: Field) -> set[str]:
    """The columns that process_docs makes."""
    hook = definition.process_docs
    if hook is None or not raw.children:
        return set()
    try:
        return set(getattr(hook.value(dataset(made_of(raw, definition))), "column_names", ()))
    except Exception:  # it needs other rows, or fields that it does not name
        return set()


def _read(value: Any, doc: Field, choices: bool) -> None:
    if isinstance(value, Hook):
        python_reads.read(value.value, doc)
    elif isinstance(value, str):
        if value.isidentifier() and "{" not in value:
            doc.child(value)
        else:
            (read_choices if choices else read_template)(value, doc)


def _label(definition: Definition, doc: Field) -> None:
    """A target that is a column is the number of a choice where the choices are listed."""
    choices, target = definition.doc_to_choice, definition.doc_to_target
    name = target.strip("{} ") if isinstance(target, str) else ""
    if choices is not None and name in doc.children and not doc.children[name].values:
        field = doc.children[name]
        field.is_number, field.range = (
            True,
            len(choices) if isinstance(choices, (list, dict)) else 2,
        )
    if isinstance(choices, str) and choices in doc.children:
        doc.children[choices].element()


def _better_target(
    definition: Definition, documents: Sequence[TaskDocument], root: Field, tried: set[Any]
) -> bool:
    """The target should be one of the choices: another kind of value for the target's column."""
    if definition.output_type != "multiple_choice" or isinstance(definition.doc_to_target, Hook):
        return False
    first = documents[0]
    if all(_is_choice(document) for document in documents):
        return False
    name = (
        definition.doc_to_target.strip("{} ") if isinstance(definition.doc_to_target, str) else ""
    )
    if name not in root.children or not first.choices:
        return False
    options = [("range", len(first.choices)), ("values", tuple(first.choices)), ("kind", "letter")]
    for what, argument in options:
        change = ((name,), what, argument)
        if change not in tried:
            tried.add(change)
            if apply(root, change):
                return True
    return False


def _is_choice(document: TaskDocument) -> bool:
    target, choices = document.target, document.choices or []
    targets = target if isinstance(target, list) else [target]
    return all(
        0 <= one < len(choices) if isinstance(one, int) else one in choices for one in targets
    )
