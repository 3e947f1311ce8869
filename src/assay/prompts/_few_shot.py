"""Few-shot examples: which ones an item gets, and how they are shown.

The choice depends on the seed and the item's id alone. An item is never its own example: whatever has its id, its
data or its question is left out, even if that leaves too few, which is an error.
"""

from random import Random
from typing import Any, Literal

import msgspec

from assay.sdk import Item, Message, UserError, canonical, digest, nearest
from assay.text.expected import accepted
from assay.text.template import Render, Variables, question, variables


class FewShot(msgspec.Struct, kw_only=True):
    """`items` to choose `n` from, by `seed` or simply the first ones. They are shown as `text`, joined by
    `separator`, where the prompt asks for `examples`, else as `messages` before its last user turn."""

    items: list[Item]
    n: int = 5
    seed: int = 0
    pick: Literal["random", "first"] = "random"
    text: str = ""
    messages: list[Message] | None = None
    separator: str = "\n\n"

    def identity(self) -> str:
        """Equal for settings and examples that could not show an item anything else."""
        shown = [
            (item.id, item.data, item.ground_truth, item.metadata, item.extra)
            for item in self.items
        ]
        rest = [self.n, self.seed, self.pick, self.text, self.messages, self.separator]
        return digest("few-shot", canonical(shown), canonical(rest)).hex()[:16]


class Shots:
    """The chosen examples of each item, as texts or as turns; each example is rendered once."""

    def __init__(
        self, settings: FewShot, turns: list[tuple[str, Render]], text: Render | None
    ) -> None:
        self.settings = settings
        self.as_text = text is not None
        self._turns = turns
        self._text = text
        self._rendered: dict[int, Any] = {}
        self._marked: dict[bytes, set[int]] = {}
        for number, item in enumerate(settings.items):
            for mark in _marks(item):
                self._marked.setdefault(mark, set()).add(number)
        if len(settings.items) < settings.n:
            raise _too_few(settings, f"there are {len(settings.items)}")

    def text(self, item: Item) -> str:
        """Return what `examples` stands for in the template."""
        return self.settings.separator.join(
            self._shown_example(number) for number in self.choice_for(item)
        )

    def turns(self, item: Item) -> list[Message]:
        return [turn for number in self.choice_for(item) for turn in self._shown_example(number)]

    def choice_for(self, item: Item) -> list[int]:
        """Numbers of the item's examples, in the order in which they are shown."""
        settings = self.settings
        excluded = set[int]().union(*(self._marked.get(mark, ()) for mark in _marks(item)))
        remaining = len(settings.items) - len(excluded)
        if remaining < settings.n:
            raise _too_few(settings, f"{remaining} remain without the item itself")
        count = min(len(settings.items), settings.n + len(excluded))
        everything = range(len(settings.items))
        drawn = everything
        if settings.pick == "random":
            drawn = Random(f"{settings.seed}:{item.id}").sample(everything, count)
        return [number for number in drawn if number not in excluded][: settings.n]

    def _shown_example(self, number: int) -> Any:
        if number not in self._rendered:
            item = self.settings.items[number]
            try:
                self._rendered[number] = self._render(_seen(item))
            except KeyError as error:
                hint = nearest(str(error.args[0]), _seen(item))
                raise UserError(
                    f"example {item.id!r}: the template uses {error.args[0]!r}; {hint}"
                ) from None
        return self._rendered[number]

    def _render(self, context: Variables) -> Any:
        if self._text is not None:
            return self._text(context)
        return [{"role": role, "content": render(context)} for role, render in self._turns]


def _too_few(settings: FewShot, why: str) -> UserError:
    what = f"few_shot wants {settings.n} examples, {why}"
    return UserError(what, fix="lower `n`, or add examples")


def question_and_answer(context: Variables) -> str:
    """Return an example as text, as it is shown by default."""
    return f"{question(context)}\n{context['answer']}"


def _seen(item: Item) -> Variables:
    """An example shows what no item may: its ground truth, and the first accepted answer."""
    context = {"ground_truth": item.ground_truth, **variables(item)}
    if "answer" not in context:
        try:
            context["answer"] = accepted(item.ground_truth)[0]
        except LookupError:  # a template that asks for it says so
            pass
    return context


def _marks(item: Item) -> set[bytes]:
    """Return what two items have in common if they are the same: id, data, or the question without its spacing and case."""
    asked = " ".join(question(variables(item)).casefold().split())
    parts = (("id", item.id), ("data", item.data), ("question", asked))
    return {digest(name, canonical(part)) for name, part in parts}
