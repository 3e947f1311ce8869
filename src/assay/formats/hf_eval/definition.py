"""An `eval.yaml` file: its tasks, checked against the closed list of what the format knows and Assay can run."""

import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config.source import Document, Key, read_file
from assay.sdk import JsonObject, UserError, as_object, list_of, nearest, rows_of

FRAMEWORK = "inspect-ai"
_REFUSED_SOLVERS = {
    "use_tools": "it runs tools",
    "self_critique": "it asks the model again about its answer",
}
_REFUSED_SCORERS = {
    "math": "it compares formulas with SymPy; for numbers write {name: match, args: {numeric: true}}"
}
_PLACE = re.compile(r"\{\w+\}")
_REDUCER = re.compile(r"pass_at_\d+|max|mean")
_TOP = ("name", "description", "evaluation_framework", "tasks")


class FieldSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which fields of a row are what. `choices` is a field with a list, or several fields; a `target` that begins with
    `literal:` is the answer itself."""

    input: str = "input"
    target: str = "target"
    choices: str | list[str] | None = None
    metadata: list[str] = []
    id: str = ""
    input_image: str = ""
    description: str = ""


class Step(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A solver or a scorer, with its arguments."""

    name: str
    args: JsonObject = {}


class EvalTask(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    field_spec: FieldSpec
    solvers: list[Step]
    scorers: list[Step]
    id: str | None = None
    config: str = "default"
    split: str = "test"
    shuffle_choices: bool | None = None
    epochs: int = 1
    epoch_reducer: str | None = None


class _TemplateArguments(msgspec.Struct, kw_only=True):
    """Arguments of solvers with a template; every further one is a parameter of the template."""

    template: str


class _TextArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    template: str = ""


class ChoiceArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `multiple_choice`."""

    template: str = ""
    cot: bool = False
    multiple_correct: bool = False
    max_tokens: int | None = None


class Sampling(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arguments of `generate` that every server knows."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop_seqs: list[str] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None


class _Match(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    location: Literal["begin", "end", "any", "exact"] = "end"
    ignore_case: bool = True
    numeric: bool = False


class _Includes(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ignore_case: bool = True


class _Pattern(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pattern: str
    ignore_case: bool = True
    match_all: bool = False


class _AnswerArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pattern: Literal["letter", "word", "line"]


class _F1(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    stop_words: list[str] | None = None


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class JudgeArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Arguments of scorers that ask a model; its prompt is ours."""

    model: str | list[str] = ""
    partial_credit: bool = False


SOLVERS: dict[str, type] = {
    "prompt_template": _TemplateArguments,
    "system_message": _TemplateArguments,
    "user_message": _TemplateArguments,
    "chain_of_thought": _TextArguments,
    "multiple_choice": ChoiceArguments,
    "generate": Sampling,
}
SCORERS: dict[str, type] = {
    "match": _Match,
    "includes": _Includes,
    "pattern": _Pattern,
    "answer": _AnswerArguments,
    "exact": _Nothing,
    "f1": _F1,
    "choice": _Nothing,
    "model_graded_qa": JudgeArguments,
    "model_graded_fact": JudgeArguments,
}
ASKING = ("generate", "multiple_choice")  # solvers that call the model


def is_eval(data: Any) -> bool:
    """Return whether a mapping is that of an eval.yaml: its tasks have solvers and scorers."""
    first = rows_of(list_of(as_object(data).get("tasks"))[:1])
    return bool(first) and {"solvers", "scorers", "field_spec"} <= first[0].keys()


def task_of(file: Path, id: str = "") -> EvalTask:
    """The task of this id, or the only one; everything that is wrong with it is reported at once."""
    document = read_file(file, str(file))
    data = document.data
    for name in data:
        if name not in _TOP:
            document.report(f"unknown key {name!r}", (name,), nearest(str(name), _TOP))
    framework = str(data.get("evaluation_framework") or FRAMEWORK).replace("_", "-")
    if framework != FRAMEWORK:
        fix = f"files of {FRAMEWORK} can be run"
        document.report(
            f"the evaluation framework {framework!r} is not supported",
            ("evaluation_framework",),
            fix,
        )
    tasks = list_of(data.get("tasks"))
    if not tasks:
        document.report(
            "there is no task", ("tasks",), "a task has field_spec, solvers and scorers"
        )
    document.stop_if_wrong()
    number = _number(tasks, id, document)
    task = _task(tasks[number], ("tasks", number), document)
    document.stop_if_wrong()
    assert task is not None
    return task


def _number(tasks: list[Any], id: str, document: Document) -> int:
    ids = [str(as_object(task).get("id")) for task in tasks]
    if not id and len(tasks) == 1:
        return 0
    if id in ids:
        return ids.index(id)
    what = f"there is no task {id!r}" if id else f"there are {len(tasks)} tasks"
    raise UserError(
        what, where=document.shown, fix=nearest(id, ids) if id else f"name one: {', '.join(ids)}"
    )


def _task(data: Any, key: Key, document: Document) -> EvalTask | None:
    try:
        task = msgspec.convert(data, EvalTask)
    except msgspec.ValidationError as error:
        document.report(str(error), key, f"a task has {', '.join(EvalTask.__struct_fields__)}")
        return None
    for kind, known, refused in (
        ("solvers", SOLVERS, _REFUSED_SOLVERS),
        ("scorers", SCORERS, _REFUSED_SCORERS),
    ):
        steps: list[Step] = getattr(task, kind)
        for at, step in enumerate(steps):
            _check(step, kind[:-1], known, refused, (*key, kind, at), document)
        if not steps:
            document.report(
                f"there are no {kind}", (*key, kind), f"the format knows {', '.join(known)}"
            )
    _check_order(task, key, document)
    reducer = task.epoch_reducer
    if reducer is not None and not _REDUCER.fullmatch(reducer):
        fix = "mean, max and pass_at_K can be computed"
        document.report(f"the reducer {reducer!r} is not supported", (*key, "epoch_reducer"), fix)
    if task.epochs < 1:
        document.report(f"epochs begin at 1, got {task.epochs}", (*key, "epochs"))
    return task


def _check(
    step: Step,
    kind: str,
    known: dict[str, type],
    refused: dict[str, str],
    key: Key,
    document: Document,
) -> None:
    if step.name in refused:
        document.report(f"the {kind} {step.name!r} is not supported: {refused[step.name]}", key)
    elif step.name not in known:
        document.report(
            f"unknown {kind} {step.name!r}", key, nearest(step.name, [*known, *refused])
        )
    else:
        try:
            args = msgspec.convert(step.args, known[step.name])
            if isinstance(args, _Pattern):
                re.compile(args.pattern)
            template = args.template if isinstance(args, ChoiceArguments) else ""
            if template and not {"{question}", "{choices}"} <= set(re.findall(_PLACE, template)):
                what = "multiple_choice: the template lacks {question} or {choices}"
                document.report(what, (*key, "args"))
        except (msgspec.ValidationError, re.error, RecursionError, OverflowError) as error:
            fields = ", ".join(known[step.name].__struct_fields__) or "none"
            document.report(
                f"{step.name}: {error}", (*key, "args"), f"arguments that are supported: {fields}"
            )


def _check_order(task: EvalTask, key: Key, document: Document) -> None:
    """The model is asked once, at the end; letters need choices."""
    names = [step.name for step in task.solvers]
    asking = [at for at, name in enumerate(names) if name in ASKING]
    if names and not asking:
        document.report("no solver asks the model", (*key, "solvers"), "end them with `generate`")
    elif asking and asking != [len(names) - 1]:
        fix = "one call, at the end, can be run"
        document.report(
            "solvers go on after the model was asked", (*key, "solvers", asking[0]), fix
        )
    chooses = "multiple_choice" in names
    if chooses and task.field_spec.choices is None:
        document.report(
            "multiple_choice needs choices", (*key, "field_spec"), "add `choices:` to field_spec"
        )
    if any(step.name == "choice" for step in task.scorers) and not chooses:
        fix = "use the solver `multiple_choice`, or the scorer {name: answer, args: {pattern: letter}}"
        document.report(
            "the scorer choice reads the answers of multiple_choice", (*key, "scorers"), fix
        )
