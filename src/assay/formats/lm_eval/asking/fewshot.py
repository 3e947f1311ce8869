"""Which documents are shown as examples: the pool, and the harness's own draws from it.

The samplers have the names and methods of the harness's, because a task may define a sampler by deriving from them.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from assay.formats.lm_eval.tasks.definition import Definition, Hook
from assay.sdk import JsonObject, UserError, nearest


def pool(
    definition: Definition, docs: Callable[[str, Hook | None], list[JsonObject]]
) -> list[JsonObject]:
    """The documents that examples are drawn from; `docs` gives those of a split, processed by a function."""
    settings = definition.fewshot_config
    if settings.split is not None:
        return docs(settings.split, settings.process_docs)
    samples = settings.samples.value if isinstance(settings.samples, Hook) else settings.samples
    if samples is not None:
        samples = samples() if callable(samples) else samples
        if not isinstance(samples, Iterable):
            what = f"fewshot_config.samples of {definition.task} is neither a list nor a function that gives one"
            raise UserError(what, where=definition.file)
        return list(samples)
    for split in (definition.training_split, definition.validation_split, definition.test_split):
        if split is not None:
            return docs(split, definition.process_docs)
    return []


class TooFew(Exception):
    """There are not enough documents: how many can be used, how many are drawn."""

    def __init__(self, available: int, wanted: int) -> None:
        super().__init__(f"{wanted} of {available} documents cannot be drawn")
        self.available = available
        self.wanted = wanted


class ContextSampler:
    """Draws without replacement. It draws one more where the evaluated document may be among the examples, and again
    where copies of it were."""

    def __init__(
        self,
        df: Sequence[JsonObject] | None = None,
        *,
        rnd: int | None = None,
        fewshot_indices: list[int] | None = None,
        **_: Any,
    ) -> None:
        self.df: Sequence[JsonObject] = df or []
        self.fewshot_indices = fewshot_indices
        self.set_rnd(rnd)

    def set_rnd(self, rnd: int | None) -> "ContextSampler":
        self.rnd = Random(rnd)
        return self

    def replace_df(self, df: Sequence[JsonObject]) -> "ContextSampler":
        self.df = df
        return self

    def fewshot_docs(self) -> Sequence[JsonObject]:
        if self.fewshot_indices:
            self.df, self.fewshot_indices = [self.df[place] for place in self.fewshot_indices], None
        return self.df

    @staticmethod
    def rm_eval_doc(
        doc: JsonObject, _iter: Iterable[JsonObject], n: int | None = None
    ) -> Sequence[JsonObject]:
        return [other for other in _iter if other != doc][:n]

    def sample(
        self,
        n: int,
        eval_doc: JsonObject | None = None,
        df: Sequence[JsonObject] | None = None,
        **_: Any,
    ) -> Sequence[JsonObject]:
        self.df = df or self.df
        if not eval_doc:
            return self._draw(self.fewshot_docs(), n) if n else []
        others = self.rm_eval_doc(eval_doc, self._draw(self.fewshot_docs(), n + 1), n) if n else []
        if len(others) < n:
            return self._draw(self.rm_eval_doc(eval_doc, self.fewshot_docs()), n)
        return others

    def _draw(self, docs: Sequence[JsonObject], count: int) -> list[JsonObject]:
        if count > len(docs):
            raise TooFew(len(docs), count)
        return self.rnd.sample(docs, count)


class FirstNSampler(ContextSampler):
    """The first documents, always the same."""

    def sample(
        self,
        n: int,
        eval_doc: JsonObject | None = None,
        df: Sequence[JsonObject] | None = None,
        **_: Any,
    ) -> Sequence[JsonObject]:
        first = list(self.df[:n])
        if eval_doc is not None and eval_doc in first:
            first = self.rm_eval_doc(eval_doc, self.df, n)
        if len(first) < n:
            raise TooFew(len(first), n)
        return first


class SoundSampler(ContextSampler):
    """Never draws the evaluated document or a copy of it, and takes the whole pool if that is just enough."""

    def sample(
        self,
        n: int,
        eval_doc: JsonObject | None = None,
        df: Sequence[JsonObject] | None = None,
        **_: Any,
    ) -> Sequence[JsonObject]:
        others = self.rm_eval_doc(eval_doc or {}, self._draw(self.df, min(n + 1, len(self.df))), n)
        return (
            others if len(others) == n else self._draw(self.rm_eval_doc(eval_doc or {}, self.df), n)
        )


SAMPLERS = {"default": ContextSampler, "first_n": FirstNSampler}


class ExampleDraws:
    """Examples for one document after the other.

    The harness removes the evaluated document if the split of the examples and `test_split` are the same, and takes
    two that are not set for the same. `sound` removes it always.
    """

    def __init__(
        self, definition: Definition, docs: list[JsonObject], seed: int, *, sound: bool
    ) -> None:
        self.definition = definition
        self.docs = docs
        self.count = definition.num_fewshot or 0
        self.removes = sound or definition.fewshot_config.split == definition.test_split
        kind = self._kind(definition.fewshot_config.sampler)
        self.sampler = (SoundSampler if sound and kind is ContextSampler else kind)(docs, rnd=None)
        self.sampler.set_rnd(seed)

    def _kind(self, sampler: str | Hook) -> type[ContextSampler]:
        if isinstance(sampler, Hook):
            return sampler.value
        if sampler not in SAMPLERS:
            raise UserError(
                f"{self.definition.task} names the few-shot sampler {sampler!r}, which does not exist",
                where=self.definition.file,
                fix=nearest(sampler, SAMPLERS),
            )
        return SAMPLERS[sampler]

    def draw(self, doc: JsonObject) -> Sequence[JsonObject]:
        if not self.count:
            return ()
        try:
            return self.sampler.sample(n=self.count, eval_doc=doc if self.removes else None)
        except TooFew as error:
            raise self._too_few(error) from None

    def _too_few(self, error: TooFew) -> UserError:
        because = (
            " (one more than is shown, as the document itself may be drawn)"
            if error.wanted > self.count
            else ""
        )
        return UserError(
            f"{self.definition.task} shows {self.count} examples and draws {error.wanted}{because}, "
            f"but {error.available} of the {len(self.docs)} documents to draw from can be used",
            where=self.definition.file,
            fix=f"--num-fewshot {max(0, self.count - error.wanted + error.available)}, or a split with more documents",
        )
