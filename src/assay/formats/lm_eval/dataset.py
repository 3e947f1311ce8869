"""The dataset of a benchmark: its documents with the requests about them, as the harness would send them."""

from collections.abc import Iterator, Sequence

from assay.formats.lm_eval.asking.data import source_stamp
from assay.formats.lm_eval.asking.documents import BoundTask, Generators, asked_documents
from assay.formats.lm_eval.asking.rows import question_of
from assay.formats.lm_eval.chosen import ChosenTask, chosen_tasks, identity
from assay.formats.lm_eval.tasks.definition import TaskDocument, TaskRequest
from assay.sdk import JsonObject, dataset

Entries = Sequence[JsonObject]
_SEED = 1234  # what the harness sends with every request
_OPTIONS = ("limit", "samples", "seed", "system_instruction", "chat")
_NOT_SENT = ("until", "max_gen_toks", "do_sample")


def _stamp(name: str, *, benchmarks: Entries, task_folders: Sequence[str] = ()) -> JsonObject:
    tasks = list(chosen_tasks(benchmarks))
    return {
        "benchmarks": {
            task.name: [identity(task.definition), source_stamp(task.definition)] for task in tasks
        }
    }


@dataset(name="lm_eval.documents", stamp=_stamp)
def documents(
    name: str, *, benchmarks: Entries, task_folders: Sequence[str] = ()
) -> Iterator[tuple[str, JsonObject]]:
    """The documents of the tasks that `benchmarks` names, one task after another.

    Parameters:
    benchmarks: the config's entries
    task_folders: what of them is code, for those who decide whom to trust
    """
    generators = Generators()
    bound = [
        (task, BoundTask(task.definition, generators, sound=task.entry.get("sound", False)))
        for task in chosen_tasks(benchmarks)
    ]
    for task, source in bound:
        entry = task.entry
        options = {key: entry[key] for key in _OPTIONS if entry.get(key) is not None}
        for document in asked_documents(source, **options):
            yield f"{task.definition.task}[{document.id}]", _row(task, document)


def _row(task: ChosenTask, document: TaskDocument) -> JsonObject:
    definition = task.definition
    data: JsonObject = {
        "question": question_of(document.doc),
        "doc": document.doc,
        "requests": _requests(task, document),
        "choices": document.choices,
    }
    if document.error:
        data["error"] = document.error
    metadata = {**task.metadata, "document": document.id}
    if document.multiple_target:
        metadata["multiple_target"] = True
    return {
        "id": f"{definition.task}/{document.id}",
        "data": data,
        "ground_truth": document.target,
        "metadata": metadata,
    }


def _requests(task: ChosenTask, document: TaskDocument) -> list[JsonObject]:
    entry, repeats = task.entry, task.definition.repeats
    rows: list[JsonObject] = []
    for request in document.requests:
        if request.continuation is not None:
            chat = bool(entry.get("chat")) and not request.rolling
            add_continuation(rows, request.messages, request.continuation, request.rolling, chat)
            continue
        generation: JsonObject = {"messages": request.messages, "params": params_of(request)}
        if repeats > 1:
            generation["repeats"] = repeats
        if not entry.get("multiturn", True):
            generation["multiturn"] = False
        rows.append(generation)
    return rows


def add_continuation(
    rows: list[JsonObject],
    messages: Sequence[JsonObject],
    continuation: str,
    rolling: bool = False,
    chat: bool = False,
) -> None:
    """Add a request to those of an item: continuations of the same messages are one request."""
    last = rows[-1] if rows else {}
    if "continuations" in last and last["messages"] == messages and not rolling:
        last["continuations"].append(continuation)
        return
    row: JsonObject = {"messages": messages, "continuations": [continuation]}
    if rolling:
        row["rolling"] = True
    if chat:
        row["chat"] = True
    rows.append(row)


def params_of(request: TaskRequest) -> JsonObject:
    """Return the harness's generation_kwargs as a server is sent them."""
    source = request.params
    until = source.get("until", [])
    limit = source.get("max_tokens", source.get("max_gen_toks", 256))
    rest = {
        key: value
        for key, value in source.items()
        if key not in (*_NOT_SENT, "max_tokens", "temperature")
    }
    if "max_tokens" in source and "max_gen_toks" in source:
        rest["max_gen_toks"] = source["max_gen_toks"]
    stop = [until] if isinstance(until, str) else list(until)
    temperature = source.get("temperature", 0)
    if isinstance(temperature, float) and temperature.is_integer():
        temperature = int(temperature)  # keys of rows are made faster without whole floats
    sent = {"max_tokens": limit, "temperature": temperature, "stop": stop, "seed": _SEED}
    return {**sent, **rest}
