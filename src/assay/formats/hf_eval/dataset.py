"""The rows of an `eval.yaml`'s task as items: what its solvers make of each is the item's conversation."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.config import DatasetConfig, load
from assay.engine.experiment.dataset import content_stamp, open_dataset
from assay.formats.hf_eval.configs import source_of
from assay.formats.hf_eval.definition import ChoiceArguments, EvalTask, FieldSpec, Step, task_of
from assay.sdk import JsonMapping, JsonObject, UserError, dataset, list_of, nearest, rows_of

Message = JsonObject
LETTERS = [chr(ord("A") + n) for n in range(26)]
_PLACE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
# The words of the default templates are ours; the form of the answer is Inspect's.
_REASON = (
    "{prompt}\n\nThink step by step first. Then end with a line of its own that has the form 'ANSWER: $ANSWER' "
    "(without the quotes), where $ANSWER is what you answer."
)
_ONE = "of the form 'ANSWER: $LETTER' (without the quotes), where $LETTER is one of {letters}."
_SOME = "of the form 'ANSWER: $LETTERS' (without the quotes), where $LETTERS are one or more of {letters}."


def stamp(name: str, *, task: str = "", repository: str = "", revision: str = "") -> JsonObject:
    """Return what tells that the definition and its rows are those that were read."""
    source = source_of(Path(name), task_of(Path(name), task), repository, revision)
    files = [Path(name), *(Path(path) for path in source.get("path", ()))]
    return {"task": task, "source": source, "files": [content_stamp(file) for file in files]}


@dataset(name="hf_eval", stamp=stamp)
def hf_eval(
    name: str, *, task: str = "", repository: str = "", revision: str = ""
) -> Iterator[tuple[str, JsonObject]]:
    """The items of a task of an eval.yaml, with the messages that its solvers make.

    Parameters:
    task: the id of the task, where there are several
    repository: the dataset on the hub that has the rows; by default they are files beside the eval.yaml
    revision: of the repository
    """
    definition = task_of(Path(name), task)
    source = source_of(Path(name), definition, repository, revision)
    for number, (place, row) in enumerate(source_rows(source)):
        yield place, item_of(definition, row, number, place)


def source_rows(source: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    config = load({"dataset": source, "models": ["demo:none"]}, environ={}).dataset
    assert isinstance(config, DatasetConfig)
    return open_dataset(config, Path.cwd())


def item_of(task: EvalTask, row: JsonObject, number: int, place: str) -> JsonObject:
    """A row of the dataset as an item of ours."""
    fields = task.field_spec
    metadata = {name: _field(row, name, place) for name in fields.metadata}
    choices = _choices(fields, row, place)
    target = _target(fields, row, choices is not None, place)
    if task.shuffle_choices and choices:
        choices, target = _shuffle(choices, target, number, place)
    if any(step.name == "choice" for step in task.scorers):
        _check_letters(target, choices or [], place)
    data: JsonObject = {
        "messages": messages_of(task.solvers, _first(fields, row, place), choices or [], metadata)
    }
    if choices is not None:
        data["choices"] = choices
    id = str(_field(row, fields.id, place)) if fields.id else str(number + 1)
    return {"id": id, "data": data, "ground_truth": target, "metadata": metadata}


def _field(row: JsonObject, name: str, place: str) -> Any:
    if name not in row:
        raise UserError(f"the row has no field {name!r}", where=place, fix=nearest(name, row))
    return row[name]


def _first(fields: FieldSpec, row: JsonObject, place: str) -> list[Message]:
    """The conversation before any solver: the input as a user's message, or the messages that it is."""
    asked = _field(row, fields.input, place)
    if isinstance(asked, list) and rows_of(asked) == asked:
        return [{**message} for message in rows_of(asked)]
    image = _field(row, fields.input_image, place) if fields.input_image else None
    if image in (None, ""):
        return [{"role": "user", "content": str(asked)}]
    if not isinstance(image, str) or not image.startswith("data:"):
        raise UserError(
            f"{fields.input_image!r} is not a data URL",
            where=place,
            fix="images are `data:image/…;base64,…`",
        )
    parts = [
        {"type": "text", "text": str(asked)},
        {"type": "image_url", "image_url": {"url": image}},
    ]
    return [{"role": "user", "content": parts}]


def _choices(fields: FieldSpec, row: JsonObject, place: str) -> list[str] | None:
    if fields.choices is None:
        return None
    if isinstance(fields.choices, list):
        return [str(_field(row, name, place)) for name in fields.choices]
    listed = _field(row, fields.choices, place)
    if not isinstance(listed, list):
        raise UserError(
            f"{fields.choices!r} is not a list",
            where=place,
            fix="name the fields of the choices in a list",
        )
    return [*map(str, list_of(listed))]


def _target(fields: FieldSpec, row: JsonObject, lettered: bool, place: str) -> str | list[str]:
    """Return what is right, as text; the number of a choice becomes its letter. A list holds several right answers."""
    if fields.target.startswith("literal:"):
        return fields.target.removeprefix("literal:")
    target = _field(row, fields.target, place)
    if isinstance(target, int) and not isinstance(target, bool) and lettered:
        if not 0 <= target < len(LETTERS):
            raise UserError(
                f"the choice {target} has no letter", where=place, fix="choices are counted from 0"
            )
        return LETTERS[target]
    if isinstance(target, list):
        return [*map(str, list_of(target))]
    return str(target)


def _shuffle(
    choices: list[str], target: str | list[str], number: int, place: str
) -> tuple[list[str], str | list[str]]:
    """In an order that depends on the number of the row only, the letters of the target with them."""
    places = list(range(len(choices)))
    random.Random(number).shuffle(places)
    letters = {
        LETTERS[old]: LETTERS[new] for new, old in enumerate(places) if max(old, new) < len(LETTERS)
    }
    targets = [target] if isinstance(target, str) else target
    for letter in targets:
        if letter not in letters:
            raise UserError(
                f"the target {letter!r} is not the letter of a choice",
                where=place,
                fix="or do not shuffle",
            )
    moved = [letters[letter] for letter in targets]
    return [choices[at] for at in places], moved[0] if isinstance(target, str) else moved


def _check_letters(target: str | list[str], choices: Sequence[str], place: str) -> None:
    letters = {letter_of(number) for number in range(len(choices))}
    for letter in letters_in(target):
        if letter not in letters:
            what = f"the target {letter!r} is not the letter of one of {len(choices)} choices"
            raise UserError(
                what, where=place, fix="name a field with the letter, or with the number from 0 on"
            )


def letters_in(target: str | Sequence[str]) -> list[str]:
    """`AB`, `A, B` and `A B` are two; a number is one."""
    letters: list[str] = []
    for text in [target] if isinstance(target, str) else target:
        for token in text.upper().replace(",", " ").split():
            letters += [token] if token.isnumeric() else list(token)
    return letters


# ---- solvers


def messages_of(
    solvers: Sequence[Step],
    messages: list[Message],
    choices: Sequence[str],
    metadata: JsonMapping,
) -> list[Message]:
    """Return what the model is sent after all solvers did their part."""
    for solver in solvers:
        template = str(solver.args.get("template") or "")
        params = {name: value for name, value in solver.args.items() if name != "template"}
        if solver.name in ("system_message", "user_message"):
            text = fill_template(template, {**metadata, **params})
            if solver.name == "user_message":
                messages = [*messages, {"role": "user", "content": text}]
            else:
                at = sum(message.get("role") == "system" for message in messages)
                messages = [*messages[:at], {"role": "system", "content": text}, *messages[at:]]
        elif solver.name != "generate":
            messages = _rewritten(messages, solver, template, {**metadata, **params}, choices)
    return messages


def _rewritten(
    messages: list[Message], solver: Step, template: str, values: JsonObject, choices: Sequence[str]
) -> list[Message]:
    """The text of the user's last message in a template."""
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    if not users:
        raise UserError(f"{solver.name} needs a message of the user", where="tasks.solvers")
    at = users[-1]
    content = messages[at]["content"]
    whole = [{"type": "text", "text": content}]
    parts = list_of(content) if isinstance(content, list) else whole
    texts = [part["text"] for part in parts if part.get("type") == "text"]
    prompt = "\n".join(texts)
    if solver.name == "multiple_choice":
        options = msgspec.convert(solver.args, ChoiceArguments)
        listed = [letter_of(n) for n in range(len(choices))]
        lines = [f"{letter}) {choice}" for letter, choice in zip(listed, choices, strict=True)]
        own = {"question": prompt, "choices": "\n".join(lines), "letters": ",".join(listed)}
        text = fill_template(options.template or _question(options), own)
    elif solver.name == "chain_of_thought":
        text = fill_template(template or _REASON, {"prompt": prompt})
    else:
        text = fill_template(template, {**values, "prompt": prompt})
    others = [part for part in parts if part.get("type") != "text"]
    rewritten = [{"type": "text", "text": text}, *others] if others else text
    return [*messages[:at], {**messages[at], "content": rewritten}, *messages[at + 1 :]]


def _question(options: ChoiceArguments) -> str:
    form = _SOME if options.multiple_correct else _ONE
    kind = "several choices may be right" if options.multiple_correct else "one choice is right"
    ends = "Reply with nothing but a line"
    if options.cot:
        ends = "Think step by step first. Then end with a line"
    asked = f"This is a multiple choice question; {kind}. {ends} {form}"
    return f"{asked}\n\n{{question}}\n\n{{choices}}"


def letter_of(number: int) -> str:
    """The name of a choice: A to Z, then 1, 2, …"""
    return LETTERS[number] if number < len(LETTERS) else str(number - len(LETTERS) + 1)


def fill_template(template: str, values: JsonMapping) -> str:
    """`{name}` becomes the value of this name; one that nobody knows stays. Doubled braces stand for one. No attribute
    or item of a value can be reached: templates are a stranger's."""

    def value_at(place: re.Match[str]) -> str:
        if place[1] is None:
            return place[0][0]
        value = values.get(place[1])
        return place[0] if value is None else str(value)

    return _PLACE.sub(value_at, template)
