"""From a task to its documents with everything that is asked about them: the harness's requests, byte for byte."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from assay.errors import UserError
from assay.formats.lm_eval.asking.binding import Bound, as_task_error, failure
from assay.formats.lm_eval.asking.fewshot import Examples
from assay.formats.lm_eval.asking.rows import jsonable, rows
from assay.formats.lm_eval.asking.templates import Doc, field
from assay.formats.lm_eval.tasks.definition import (
    Asked,
    Definition,
    Document,
    Hook,
    default_generation,
)

Message = dict[str, str]


def message(role: str, content: str, delimiter: str = "") -> Message:
    return {"role": role, "content": content, "delimiter": delimiter}


def join(first: str | None, second: str | None, delimiter: str) -> str:
    """Both texts; with the delimiter unless whitespace is there already."""
    if not first or not second:
        return first or second or ""
    return first + (delimiter if _touching(first, second) else "") + second


def _touching(first: str, second: str) -> bool:
    return bool(first) and not (first[-1].isspace() or second[0].isspace())


def turn(
    question: Any,
    answer: Any,
    choices: list[str] | None,
    prefix: str | None,
    target_delimiter: str,
    end: str,
) -> list[Message]:
    """A question with its answer, or, without one, with the beginning of the answer (`prefix`) that the model goes
    on with. `end` follows the answer."""
    if not isinstance(question, str):
        raise UserError(f"doc_to_text gives {_shown(question)}, which is not a text")
    answered = answer is not None and answer != ""
    delimited = _touching(question, prefix) if prefix else answered
    asked = message("user", question, target_delimiter if delimited else "")
    if answered:
        return [asked, message("assistant", join(prefix, _answer(answer, choices), " "), end)]
    return [asked, message("assistant", prefix)] if prefix else [asked]


def _answer(answer: Any, choices: list[str] | None) -> str:
    chosen = answer
    if choices and isinstance(answer, int):
        if not -len(choices) <= answer < len(choices):
            raise UserError(
                f"doc_to_target of a few-shot example is {answer}, but there are {len(choices)} choices"
            )
        chosen = choices[answer]
    elif isinstance(answer, list):
        chosen = answer[0] if answer else answer
    if not isinstance(chosen, str):
        raise UserError(
            f"doc_to_target of a few-shot example gives {_shown(chosen)}, which is not a text",
            fix="write it as a template, `{{column}}`, or give doc_to_choice",
        )
    return chosen


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def plain(messages: list[Message]) -> str:
    """The text for a completion."""
    return "".join([part["content"] + part["delimiter"] for part in messages])


def chat(messages: list[Message], multiturn: bool = True) -> list[Message]:
    """The messages of a chat. `multiturn=False`: examples and question are one user message; the system message and
    the beginning of the answer stay apart."""
    if multiturn:
        return [{"role": part["role"], "content": part["content"]} for part in messages]
    system = [part for part in messages[:1] if part["role"] == "system"]
    rest = messages[len(system) :]
    prefix = [rest.pop()] if rest[-1]["role"] == "assistant" else []
    text = plain(rest[:-1]) + rest[-1]["content"]
    return chat([*system, message("user", text), *prefix])


_TOGETHER = 256  # documents that are made while the random generators are the harness's


def documents(definition: Definition, *, sound: bool = False, **options: Any) -> Iterator[Document]:
    """The documents of a task as a run of this task alone has them, with the options of `asked`.

    sound: what the harness does wrong is done right: the document and its copies are never among its examples, the
        description does not run into the text after it, a choice that begins with a space gets no second one
    """
    return asked(Bound(definition, sound=sound), **options)


def asked(
    bound: Bound,
    *,
    limit: float | None = None,
    samples: Sequence[int] | None = None,
    seed: int = 1234,
    system_instruction: str | None = None,
    chat: bool = False,
) -> Iterator[Document]:
    """The documents of a task in the order of its data. In a run of several tasks all are bound, with the same
    `Generators`, before one is asked.

    limit: how many of them, or below 1 which part
    samples: positions of the documents that are asked; `id` is the position
    chat: the requests are for a chat template, where continuations carry no delimiter
    """
    maker = _Maker(bound, seed, system_instruction or "", chat)
    chosen = _chosen(bound, limit, samples)
    if not bound.hooked:
        yield from maker.made(chosen)
        return
    while True:
        with bound.generators.in_place():
            together = list(maker.made(islice(chosen, _TOGETHER)))
        yield from together
        if len(together) < _TOGETHER:
            return


def _chosen(
    bound: Bound, limit: float | None, samples: Sequence[int] | None
) -> Iterator[tuple[int, Doc, Doc]]:
    """Position, the document that is asked, the document that is scored. They differ where the harness processes the
    documents anew for each of its passes, with a function that draws."""
    count = len(bound.docs)
    share = limit is not None and limit < 1
    if bound.drifts:
        asked_docs = [bound.again() for _ in range(2 if samples or share else 1)][-1]
        pairs = zip(rows(asked_docs), rows(bound.again()), strict=True)
    else:
        pairs = ((doc, doc) for doc in rows(bound.docs))
    numbered = ((place, doc, scored) for place, (doc, scored) in enumerate(pairs))
    if samples:
        outside = [place for place in samples if not 0 <= place < count]
        if outside:
            raise UserError(
                f"{bound.definition.task} has {count} documents, there is none at {outside[0]}",
                where="samples",
                fix=f"name positions from 0 to {count - 1}",
            )
        wanted = set(samples)
        return (entry for entry in numbered if entry[0] in wanted)
    if limit is not None and share:
        limit = math.ceil(count * limit)
    return islice(numbered, int(limit) if limit else None)


class _Turns:
    """Examples as messages. Those of templates are kept: they depend on the example alone."""

    def __init__(self, bound: Bound) -> None:
        settings = bound.definition.fewshot_config
        self.settings = settings
        self.multiple_input = bound.multiple_input
        self.text, self.target, self.choice = bound.values(
            settings.doc_to_text
            if settings.doc_to_text is not None
            else bound.definition.doc_to_text,
            settings.doc_to_target
            if settings.doc_to_target is not None
            else bound.definition.doc_to_target,
            settings.doc_to_choice,
        )
        self.prefix = field(settings.gen_prefix)
        functions = (settings.doc_to_text, settings.doc_to_target, settings.doc_to_choice)
        keeps = not any(isinstance(function, Hook) for function in functions)
        self.kept: dict[int, list[Message]] = {id(doc): [] for doc in bound.pool} if keeps else {}

    def of(self, doc: Doc) -> list[Message]:
        turns = self.kept.get(id(doc))
        if not turns:
            turns = self._made(doc)
            if id(doc) in self.kept:
                self.kept[id(doc)] = turns
        return turns

    def _made(self, doc: Doc) -> list[Message]:
        question = self.text(doc)
        choices = self.choice(doc) if self.choice else None
        answer, prefix = self.target(doc), self.prefix(doc)
        if self.multiple_input:
            question, choices = (choices or [])[question], None
        delimiter, end = self.settings.target_delimiter or "", self.settings.fewshot_delimiter or ""
        return turn(question, answer, choices, prefix, delimiter, end)


class _Maker:
    """Makes documents one after the other, as the examples' random draws need it."""

    def __init__(self, bound: Bound, seed: int, system: str, chat: bool) -> None:
        definition = bound.definition
        self.bound = bound
        self.definition = definition
        self.system = system
        self.examples = Examples(definition, bound.pool, seed, sound=bound.sound)
        self.turns = _Turns(bound)
        self.params = _generation(definition)
        self.delimiter = _continuation_delimiter(definition, chat)
        metrics = [entry.get("metric") for entry in definition.metric_list or ()]
        self.unconditional = "acc_mutual_info" in metrics
        self.begun = False

    def made(self, docs: Iterator[tuple[int, Doc, Doc]]) -> Iterator[Document]:
        for place, doc, scored in docs:
            kept = jsonable(scored)
            # of a sampler of the task's own
            with as_task_error(
                self.definition, f"the sampler of {self.definition.task} fails", UserError
            ):
                examples = self.examples.draw(doc)
            try:
                document = self._document(place, doc, scored, kept, examples)
            except Exception as error:
                problem = failure(
                    error,
                    self.definition,
                    f"document {place} of {self.definition.task} cannot be asked",
                )
                if not self.begun:
                    raise problem from error
                document = Document(
                    id=place, doc=kept, target=None, requests=[], error=str(problem)
                )
            self.begun = True
            yield document

    def _document(
        self, place: int, doc: Doc, scored: Doc, kept: Doc, examples: Sequence[Doc]
    ) -> Document:
        bound = self.bound
        if self.definition.output_type == "loglikelihood_rolling":
            target, choices = bound.target(doc), None
            requests = [Asked(messages=[], continuation=_text(target), rolling=True)]
        else:
            prefix = bound.prefix(doc)
            before = [
                *self._system(doc),
                *(part for example in examples for part in self.turns.of(example)),
            ]
            question = bound.text(doc)
            choices = bound.choice(doc) if bound.choice else None
            target = bound.target(doc)
            if bound.sound:
                before = self._parted(before, question)
            requests = self._requests(before, question, choices, target, prefix)
            if scored is not doc:
                question, choices = (
                    bound.text(scored),
                    bound.choice(scored) if bound.choice else None,
                )
                target = bound.target(scored)
            target = question if bound.multiple_input else target
        return Document(
            id=place,
            doc=kept,
            target=jsonable(target),
            choices=jsonable(choices),
            requests=requests,
            multiple_target=bound.multiple_target,
        )

    def _system(self, doc: Doc) -> list[Message]:
        text = join(
            self.system, self.bound.description(doc) or "", self.definition.fewshot_delimiter
        )
        return [message("system", text)] if text else []

    def _requests(
        self, before: list[Message], question: Any, choices: Any, target: Any, prefix: str | None
    ) -> list[Asked]:
        definition = self.definition
        if self.bound.multiple_input:
            contexts = [[*before, *turn(text, None, None, prefix, "", "")] for text in choices]
        else:
            contexts = [
                [*before, *turn(question, None, None, prefix, definition.target_delimiter, "")]
            ]
        if definition.output_type == "generate_until":
            return [Asked(messages=messages, params={**self.params}) for messages in contexts]
        if definition.output_type == "loglikelihood":
            return [Asked(messages=contexts[0], continuation=_text(target))]
        options = [self._continuation(choice) for choice in choices]
        if self.bound.multiple_input:
            requests = [
                Asked(messages=context, continuation=self._continuation(target))
                for context in contexts
            ]
        else:
            requests = [Asked(messages=contexts[0], continuation=option) for option in options]
        if self.unconditional:
            requests += [Asked(messages=[], continuation=option) for option in options]
        return requests

    def _continuation(self, choice: Any) -> str:
        text = str(choice)
        return text if self.bound.sound and text[:1].isspace() else self.delimiter + text

    def _parted(self, before: list[Message], question: Any) -> list[Message]:
        """The description with the delimiter that keeps it apart from what follows."""
        if not before or before[0]["role"] != "system":
            return before
        text = before[0]["content"]
        following = before[1]["content"] if len(before) > 1 else question
        parted = isinstance(following, str) and join(text, following, "|") != text + following
        delimiter = self.definition.fewshot_delimiter if parted else ""
        return [message("system", text, delimiter), *before[1:]]


def _text(target: Any) -> str:
    if not isinstance(target, str):
        raise UserError(f"doc_to_target gives a {type(target).__name__}, where a text is needed")
    return target


def _generation(definition: Definition) -> dict[str, Any]:
    """generation_kwargs with the harness's defaults."""
    if definition.generation_kwargs is None:
        return default_generation(definition.fewshot_delimiter)
    params = {**definition.generation_kwargs}
    params.setdefault("until", [definition.fewshot_delimiter])
    if "temperature" in params:
        params["temperature"] = float(params["temperature"])
    return params


def _continuation_delimiter(definition: Definition, chat: bool) -> str:
    """In a chat the answer begins anew, unless its beginning is given and does not end in whitespace."""
    prefix = definition.gen_prefix
    return definition.target_delimiter if not chat or (prefix and not prefix[-1].isspace()) else ""
