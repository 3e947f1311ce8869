"""From a task to its documents with everything that is asked about them: the harness's requests, byte for byte."""

import copy
import math
import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from assay.formats.lm_eval.asking import fewshot
from assay.formats.lm_eval.asking.data import Data, load, made_by_functions
from assay.formats.lm_eval.asking.fewshot import ExampleDraws
from assay.formats.lm_eval.asking.rows import jsonable, rows
from assay.formats.lm_eval.asking.templates import Resolver, Value, field, prompt
from assay.formats.lm_eval.tasks.definition import (
    Definition,
    Hook,
    TaskDocument,
    TaskRequest,
    default_generation,
    own_line,
)
from assay.sdk import AssayError, JsonObject, UserError

State = tuple[Any, Any]
_first: dict[
    int, tuple[Any, Any]
] = {}  # a module's own generators, and their states when they were new


def state() -> State:
    return random.getstate(), np.random.get_state()


def set_state(to: State) -> None:
    random.setstate(to[0])
    np.random.set_state(to[1])


def same(first: State, second: State) -> bool:
    return first[0] == second[0] and all(
        np.array_equal(a, b) for a, b in zip(first[1], second[1], strict=True)
    )


class Own:
    """The generators of a function's module."""

    def __init__(self, function: Callable[..., Any] | None) -> None:
        names: JsonObject = getattr(getattr(function, "func", function), "__globals__", {})
        self.generators = [
            value
            for value in names.values()
            if isinstance(value, (random.Random, np.random.Generator))
        ]

    def state(self) -> list[Any]:
        return [
            generator.getstate()
            if isinstance(generator, random.Random)
            else copy.deepcopy(generator.bit_generator.state)
            for generator in self.generators
        ]

    def set_state(self, to: list[Any]) -> None:
        for generator, value in zip(self.generators, to, strict=True):
            if isinstance(generator, random.Random):
                generator.setstate(value)
            else:
                generator.bit_generator.state = value


class Generators:
    """Those of one run. The harness seeds the global ones once, for all tasks; a module's own are new."""

    def __init__(self, python: int = 0, numpy: int = 1234) -> None:
        self.state: State = (
            random.Random(python).getstate(),
            np.random.RandomState(numpy).get_state(),
        )
        self._begun: set[int] = set()

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Within, the global generators are these; nothing else draws from them."""
        before = state()
        set_state(self.state)
        try:
            yield
        finally:
            self.state = state()
            set_state(before)

    def own(self, function: Callable[..., Any] | None) -> Own:
        """A module's own generators; an earlier run in this process has left no trace in them."""
        own = Own(function)
        states = own.state()
        for place, generator in enumerate(own.generators):
            number = id(generator)
            _first.setdefault(number, (generator, states[place]))
            if number not in self._begun:
                self._begun.add(number)
                states[place] = _first[number][1]
        own.set_state(states)
        return own


_LETTERS = 500  # of an error that are shown: some contain a document


def failure(error: Exception, definition: Definition, what: str) -> UserError:
    """The error of a task's function or template, with the line of the task's own code that it comes from."""
    if isinstance(error, AssayError):
        return UserError(
            f"{what}: {error.what}", where=error.where or definition.file, fix=error.fix
        )
    shown = f"{what}: {type(error).__name__}: {str(error)[:_LETTERS]}"
    return UserError(shown, where=own_line(error) or definition.file)


@contextmanager
def as_task_error(definition: Definition, what: str, *passed: type[Exception]) -> Generator[None]:
    """Within, what is raised becomes the error of a task; what is `passed` on is one already."""
    try:
        yield
    except passed:
        raise
    except Exception as error:
        raise failure(error, definition, what) from error


class BoundTask:
    """Its keys as functions of a document, and what the first document says of all: `multiple_input` (doc_to_text is
    the number of a choice) and `multiple_target` (doc_to_target is a list)."""

    def __init__(
        self,
        definition: Definition,
        generators: Generators | None = None,
        *,
        data: Data | None = None,
        sound: bool = False,
    ) -> None:
        """`data`: its splits, where they are not those of its source"""
        self.definition = definition
        self.sound = sound
        self.generators = generators or Generators()
        if definition.doc_to_image is not None or definition.doc_to_audio is not None:
            kind = "images" if definition.doc_to_image is not None else "audio"
            raise UserError(
                f"{definition.task} asks about {kind}, which cannot be sent yet",
                where=definition.file,
            )
        self.split = self._evaluated_split()
        self.pool: list[JsonObject] = []
        self.drifts = False
        self._processed: dict[tuple[str, Hook | None], Any] = {}
        with self.generators.in_place():
            what = f"custom_dataset of {definition.task} fails"
            with as_task_error(definition, what, AssayError):
                self.data = data or load(definition)
            self._process()
            self._resolve()

    def _evaluated_split(self) -> str:
        split = self.definition.test_split or self.definition.validation_split
        if split is None:
            raise UserError(
                f"{self.definition.task} has neither test_split nor validation_split",
                where=self.definition.file,
                fix="name the split that is evaluated",
            )
        return split

    def _process(self) -> None:
        """The harness processes the examples first. Without examples that matters only if a function draws."""
        hook = self.definition.process_docs
        own = self.generators.own(hook and hook.value)
        before, before_own = state(), own.state()
        if self.definition.num_fewshot:
            self.pool = self._examples()
        self.docs = self._documents(self.split, hook)
        if not self.definition.num_fewshot and (self.drifts or not same(before, state())):
            self._processed.clear()
            set_state(before)
            own.set_state(before_own)
            self._examples()
            self.docs = self._documents(self.split, hook)

    def again(self) -> Any:
        """The evaluated documents as the harness gets them when it asks once more: others only if the function
        `drifts`, because `datasets` keeps the results of one that does not carry a generator of its own."""
        with self.generators.in_place():
            return self._documents(self.split, self.definition.process_docs)

    def _examples(self) -> list[JsonObject]:
        what = f"the examples of {self.definition.task} cannot be made"
        with as_task_error(self.definition, what, AssayError):
            return fewshot.pool(
                self.definition, lambda split, hook: list(rows(self._documents(split, hook)))
            )

    def _documents(self, split: str, hook: Hook | None) -> Any:
        """A split as the function makes it; made once, unless the harness makes it anew each time."""
        dataset = self.data.split(split)
        if hook is None:
            return dataset
        if (split, hook) in self._processed:
            return self._processed[split, hook]
        what = f"process_docs of {self.definition.task} fails for the split {split}"
        with as_task_error(self.definition, what):
            own = self.generators.own(hook.value)
            before = own.state()
            with made_by_functions():
                processed = hook.value(dataset)
                processed = processed if hasattr(processed, "column_names") else list(processed)
        drifts = own.state() != before and not self.sound
        self.drifts = self.drifts or drifts
        if not drifts:
            self._processed[split, hook] = processed
        return processed

    def _resolve(self) -> None:
        definition = self.definition
        first = next(rows(self.docs), None)
        if first is None:
            raise UserError(
                f"{definition.task} has no documents in the split {self.split}",
                where=definition.file,
            )
        resolver = Resolver(
            getattr(self.docs, "features", None) or first,
            choices=definition.doc_to_choice is not None,
        )
        self.resolver = resolver
        with as_task_error(definition, f"the first document of {definition.task} cannot be asked"):
            self.text, self.target, self.choice = self.values(
                definition.doc_to_text, definition.doc_to_target, definition.doc_to_choice
            )
            self.prefix = resolver.prefix(definition.gen_prefix)
            self.description = field(definition.description)
            text, target = self.text(first), self.target(first)
            choices = self.choice(first) if self.choice else None
        self.multiple_input = isinstance(text, int) and bool(choices)
        self.multiple_target = isinstance(target, list) and bool(target)

    def values(self, text: Any, target: Any, choice: Any) -> tuple[Value, Value, Value | None]:
        """doc_to_text, doc_to_target and doc_to_choice as functions; a prompt of the library stands for all three."""
        if self.definition.use_prompt is not None:
            text = target = prompt(self.definition.use_prompt)
            choice = choice and text
        resolver = self.resolver
        return (
            resolver.text(text),
            resolver.target(target),
            resolver.choice(choice) if choice else None,
        )

    @property
    def has_hooks(self) -> bool:
        """Return whether functions of the task work on single documents."""
        own, shots = self.definition, self.definition.fewshot_config
        keys = (own.doc_to_text, own.doc_to_target, own.doc_to_choice, shots.sampler)
        return any(
            isinstance(key, Hook)
            for key in (*keys, shots.doc_to_text, shots.doc_to_target, shots.doc_to_choice)
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
        raise UserError(f"doc_to_text gives {_short(question)}, which is not a text")
    answered = answer is not None and answer != ""
    delimited = _touching(question, prefix) if prefix else answered
    asked_documents = message("user", question, target_delimiter if delimited else "")
    if answered:
        return [
            asked_documents,
            message("assistant", join(prefix, _answer(answer, choices), " "), end),
        ]
    return [asked_documents, message("assistant", prefix)] if prefix else [asked_documents]


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
            f"doc_to_target of a few-shot example gives {_short(chosen)}, which is not a text",
            fix="write it as a template, `{{column}}`, or give doc_to_choice",
        )
    return chosen


def _short(value: Any) -> str:
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


def documents(
    definition: Definition, *, sound: bool = False, **options: Any
) -> Iterator[TaskDocument]:
    """The documents of a task as a run of this task alone has them, with the options of `asked`.

    sound: what the harness does wrong is done right: the document and its copies are never among its examples, the
        description does not run into the text after it, a choice that begins with a space gets no second one
    """
    return asked_documents(BoundTask(definition, sound=sound), **options)


def asked_documents(
    bound: BoundTask,
    *,
    limit: float | None = None,
    samples: Sequence[int] | None = None,
    seed: int = 1234,
    system_instruction: str | None = None,
    chat: bool = False,
) -> Iterator[TaskDocument]:
    """The documents of a task in the order of its data. In a run of several tasks all are bound, with the same
    `Generators`, before one is asked.

    limit: how many of them, or below 1 which part
    samples: positions of the documents that are asked; `id` is the position
    chat: the requests are for a chat template, where continuations carry no delimiter
    """
    maker = _Maker(bound, seed, system_instruction or "", chat)
    chosen = _chosen_documents(bound, limit, samples)
    if not bound.has_hooks:
        yield from maker.documents(chosen)
        return
    while True:
        with bound.generators.in_place():
            together = list(maker.documents(islice(chosen, _TOGETHER)))
        yield from together
        if len(together) < _TOGETHER:
            return


def _chosen_documents(
    bound: BoundTask, limit: float | None, samples: Sequence[int] | None
) -> Iterator[tuple[int, JsonObject, JsonObject]]:
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

    def __init__(self, bound: BoundTask) -> None:
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

    def of(self, doc: JsonObject) -> list[Message]:
        turns = self.kept.get(id(doc))
        if not turns:
            turns = self._turns_of(doc)
            if id(doc) in self.kept:
                self.kept[id(doc)] = turns
        return turns

    def _turns_of(self, doc: JsonObject) -> list[Message]:
        question = self.text(doc)
        choices = self.choice(doc) if self.choice else None
        answer, prefix = self.target(doc), self.prefix(doc)
        if self.multiple_input:
            question, choices = (choices or [])[question], None
        delimiter, end = self.settings.target_delimiter or "", self.settings.fewshot_delimiter or ""
        return turn(question, answer, choices, prefix, delimiter, end)


class _Maker:
    """Makes documents one after the other, as the examples' random draws need it."""

    def __init__(self, bound: BoundTask, seed: int, system: str, chat: bool) -> None:
        definition = bound.definition
        self.bound = bound
        self.definition = definition
        self.system = system
        self.examples = ExampleDraws(definition, bound.pool, seed, sound=bound.sound)
        self.turns = _Turns(bound)
        self.params = _generation(definition)
        self.delimiter = _continuation_delimiter(definition, chat)
        metrics = [entry.get("metric") for entry in definition.metric_list or ()]
        self.unconditional = "acc_mutual_info" in metrics
        self.begun = False

    def documents(
        self, docs: Iterator[tuple[int, JsonObject, JsonObject]]
    ) -> Iterator[TaskDocument]:
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
                document = TaskDocument(
                    id=place, doc=kept, target=None, requests=[], error=str(problem)
                )
            self.begun = True
            yield document

    def _document(
        self,
        place: int,
        doc: JsonObject,
        scored: JsonObject,
        kept: JsonObject,
        examples: Sequence[JsonObject],
    ) -> TaskDocument:
        bound = self.bound
        if self.definition.output_type == "loglikelihood_rolling":
            target, choices = bound.target(doc), None
            requests = [TaskRequest(messages=[], continuation=_text(target), rolling=True)]
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
                before = self._part_description(before, question)
            requests = self._requests(before, question, choices, target, prefix)
            if scored is not doc:
                question = bound.text(scored)
                choices = bound.choice(scored) if bound.choice else None
                target = bound.target(scored)
            target = question if bound.multiple_input else target
        return TaskDocument(
            id=place,
            doc=kept,
            target=jsonable(target),
            choices=jsonable(choices),
            requests=requests,
            multiple_target=bound.multiple_target,
        )

    def _system(self, doc: JsonObject) -> list[Message]:
        text = join(
            self.system, self.bound.description(doc) or "", self.definition.fewshot_delimiter
        )
        return [message("system", text)] if text else []

    def _requests(
        self, before: list[Message], question: Any, choices: Any, target: Any, prefix: str | None
    ) -> list[TaskRequest]:
        definition = self.definition
        if self.bound.multiple_input:
            contexts = [[*before, *turn(text, None, None, prefix, "", "")] for text in choices]
        else:
            contexts = [
                [*before, *turn(question, None, None, prefix, definition.target_delimiter, "")]
            ]
        if definition.output_type == "generate_until":
            return [TaskRequest(messages=messages, params={**self.params}) for messages in contexts]
        if definition.output_type == "loglikelihood":
            return [TaskRequest(messages=contexts[0], continuation=_text(target))]
        options = [self._continuation(choice) for choice in choices]
        if self.bound.multiple_input:
            requests = [
                TaskRequest(messages=context, continuation=self._continuation(target))
                for context in contexts
            ]
        else:
            requests = [
                TaskRequest(messages=contexts[0], continuation=option) for option in options
            ]
        if self.unconditional:
            requests += [TaskRequest(messages=[], continuation=option) for option in options]
        return requests

    def _continuation(self, choice: Any) -> str:
        text = str(choice)
        return text if self.bound.sound and text[:1].isspace() else self.delimiter + text

    def _part_description(self, before: list[Message], question: Any) -> list[Message]:
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


def _generation(definition: Definition) -> JsonObject:
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
