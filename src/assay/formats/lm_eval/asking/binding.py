"""A task with its data: what its functions make of each split, and what the first document decides for all."""

import copy
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from assay.errors import AssayError, UserError
from assay.formats.lm_eval.asking import fewshot
from assay.formats.lm_eval.asking.data import Data, load, made_by_functions
from assay.formats.lm_eval.asking.rows import rows
from assay.formats.lm_eval.asking.templates import Doc, Resolver, Value, field, prompt
from assay.formats.lm_eval.tasks.definition import Definition, Hook, own_line

State = tuple[Any, Any]
_first: dict[
    int, tuple[Any, Any]
] = {}  # a module's own generators, and their states when they were new


def state() -> State:
    return random.getstate(), np.random.get_state()


def put(to: State) -> None:
    random.setstate(to[0])
    np.random.set_state(to[1])


def same(first: State, second: State) -> bool:
    return first[0] == second[0] and all(
        np.array_equal(a, b) for a, b in zip(first[1], second[1], strict=True)
    )


class Own:
    """The generators of a function's module."""

    def __init__(self, function: Callable[..., Any] | None) -> None:
        names: dict[str, Any] = getattr(getattr(function, "func", function), "__globals__", {})
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

    def put(self, to: list[Any]) -> None:
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
        put(self.state)
        try:
            yield
        finally:
            self.state = state()
            put(before)

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
        own.put(states)
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


class Bound:
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
        self.pool: list[Doc] = []
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
            put(before)
            own.put(before_own)
            self._examples()
            self.docs = self._documents(self.split, hook)

    def again(self) -> Any:
        """The evaluated documents as the harness gets them when it asks once more: others only if the function
        `drifts`, because `datasets` keeps the results of one that does not carry a generator of its own."""
        with self.generators.in_place():
            return self._documents(self.split, self.definition.process_docs)

    def _examples(self) -> list[Doc]:
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
    def hooked(self) -> bool:
        """Whether functions of the task work on single documents."""
        own, shots = self.definition, self.definition.fewshot_config
        keys = (own.doc_to_text, own.doc_to_target, own.doc_to_choice, shots.sampler)
        return any(
            isinstance(key, Hook)
            for key in (*keys, shots.doc_to_text, shots.doc_to_target, shots.doc_to_choice)
        )
