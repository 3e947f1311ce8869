"""How probable texts are to a model: the choices of an item after its prompt, or the prompt as a whole text.

Nothing is generated. The row's `output` has the log-probabilities; its text is the most probable choice.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from assay.sdk import (
    Answer,
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Likelihood,
    Likelihoods,
    LogProbability,
    Model,
    Prompt,
    UserError,
    Work,
    digest,
    nearest,
    task,
)
from assay.tasks.prompt import PromptTask
from assay.text.messages import messages_text
from assay.text.template import compiled, variables

Choices = Callable[[Item], Sequence[str]]
PROBED = "The capital of France is", [" Paris", " not London"]
_encode = msgspec.json.encode


class LikelihoodTask(PromptTask):
    """`choices` gives the choices of an item; None: the prompt is the text. `probe` is a request that must be
    answered before the first cell: a model that gives no likelihoods is refused before anything is spent."""

    def __init__(
        self,
        source: Prompt,
        model: Model,
        choices: Choices | None,
        settings: JsonMapping,
        timeout: float,
    ) -> None:
        super().__init__(source, model, {"likelihood": settings}, 1, timeout)
        self.choices = choices
        self.delimiter: str = settings["delimiter"]
        self.unconditional: str | None = settings["unconditional"]
        self.per_token: bool = settings["per_token"]
        self.chat: bool = settings["chat"]
        before = PROBED[0] if self.unconditional is None else self.unconditional
        self.probe = self._whole(PROBED[0]) if choices is None else self._request(before, PROBED[1])
        self.probe.chat = self.chat

    def prepare(self, item: Item) -> Work:
        messages = self.prompt.render(item)
        text = messages_text(messages)
        request = (
            self._whole(text)
            if self.choices is None
            else self._request(text, self._continuations(item))
        )
        if self.chat:
            request.messages, request.chat = messages, True
        sent = (request.messages, request.continuations, request.rolling)
        shown = messages if self.chat and len(messages) > 1 else None
        return Work(digest("likelihood", self._settings, _encode(sent)), request, text, shown)

    def _continuations(self, item: Item) -> list[str]:
        texts = self.choices(item) if self.choices is not None else ()
        if not all(texts):
            raise UserError("one of the choices is empty")
        return [self.delimiter + text for text in texts]

    def _request(
        self, context: str, continuations: Sequence[str], rolling: bool = False
    ) -> Likelihood:
        messages = [{"role": "user", "content": context}]
        return Likelihood(
            messages, timeout=self.timeout, continuations=[*continuations], rolling=rolling
        )

    def _whole(self, text: str) -> Likelihood:
        if not text:
            raise UserError("the text is empty")
        return self._request(self.unconditional or "", [text], rolling=True)

    async def run(self, work: Work, context: Context) -> Answer:
        request: Likelihood = work.payload
        answer = await self._likelihoods(request, context)
        choices = [
            self._shown_choice(*pair)
            for pair in zip(request.continuations, answer.values, strict=True)
        ]
        if self.choices is not None and self.unconditional is not None:
            without = await self._likelihoods(
                self._request(self.unconditional, request.continuations), context
            )
            for choice, value in zip(choices, without.values, strict=True):
                choice["unconditional"] = sum(value.tokens)
            answer = with_usage(answer, without)
        best = max(choices, key=lambda choice: choice["logprob"])
        return Answer(
            text=best["text"], output={"choices": choices, "way": answer.way}, completion=answer
        )

    async def _likelihoods(self, request: Likelihood, context: Context) -> Likelihoods:
        answer = await context.send(self.model, request)
        assert isinstance(answer, Likelihoods)
        return answer

    def _shown_choice(self, continuation: str, value: LogProbability) -> JsonObject:
        # it is the row's prompt
        text = continuation.removeprefix(self.delimiter) if self.choices is not None else ""
        shown = shown_value(text, value)
        return {**shown, "token_logprobs": value.tokens} if self.per_token else shown


def shown_value(text: str, value: LogProbability) -> JsonObject:
    """A continuation as the row's output has it."""
    return {
        "text": text,
        "logprob": sum(value.tokens),
        "tokens": len(value.tokens),
        "greedy": value.greedy,
    }


def with_usage(answer: Likelihoods, other: Likelihoods) -> Likelihoods:
    """The answer with what both used; unknown if one of them is."""
    for field in ("prompt_tokens", "completion_tokens", "total_tokens", "cost"):
        parts = getattr(answer, field), getattr(other, field)
        setattr(answer, field, None if None in parts else sum(parts))
    return answer


class ItemChoices:
    """The choices of an item: a field with a list of texts (a dotted path), or a template for each. Like a prompt, it
    is checked against all items before anything is spent."""

    name = ""

    def __init__(self, source: str | list[str]) -> None:
        self.text = _encode(source).decode()
        self._field = source if isinstance(source, str) else ""
        self._templates = (
            [compiled(text, "likelihood.choices") for text in source]
            if isinstance(source, list)
            else []
        )

    def __call__(self, item: Item) -> list[str]:
        if self._field:
            return _field(item, self._field)
        context = variables(item)
        return [render(context) for render in self._templates]

    def check(self, item: Item) -> str | None:
        try:
            self(item)
        except KeyError as error:
            return (
                f"a choice uses {error.args[0]!r}; {nearest(str(error.args[0]), variables(item))}"
            )
        except UserError as error:
            return error.what
        except Exception as error:  # a template calls filters and methods, which may raise anything
            return f"a choice fails: {error}"
        return None


def _field(item: Item, path: str) -> list[str]:
    """Of the item's data, of its other fields, or of its expected answers: what is asked about is not shown."""
    value: Any = {"ground_truth": item.ground_truth, **variables(item)}
    if isinstance(item.ground_truth, dict):
        value = {**item.ground_truth, **value}
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            raise UserError(f"the item has no field {path!r} with choices")
        value = value[name]
    if isinstance(value, dict) and isinstance(value.get("text"), list):  # as in ARC
        value = value["text"]
    if isinstance(value, dict):
        value = list(value.values())
    texts: list[Any] = value if isinstance(value, list) else [value]
    if not texts or any(text in ("", None) or isinstance(text, dict | list) for text in texts):
        raise UserError(f"the item's field {path!r} is not a list of texts")
    return [str(text) for text in texts]


@task(name="likelihood")
def likelihood(
    source: Prompt,
    model: Model,
    *,
    choices: str | list[str] | None = None,
    delimiter: str = " ",
    unconditional: str | None = None,
    per_token: bool = False,
    chat: bool = False,
    timeout: float = 300.0,
) -> LikelihoodTask:
    """The log-probabilities of an item's choices after its prompt, or, without `choices`, of the prompt itself.

    Parameters:
    choices: the field of the item that has them, or a template for each
    delimiter: what stands between the prompt and a choice
    unconditional: ask about the choices after this text too; for whole texts, what stands before them
    per_token: keep the value of each token
    chat: put the messages into the model's chat template; by default their text is the context as it is
    timeout: seconds that one request may take
    """
    if chat and choices is None:
        raise UserError("a whole text is not a chat", fix="remove `chat`, or name `choices`")
    settings = {
        "choices": choices,
        "delimiter": delimiter,
        "unconditional": unconditional,
        "per_token": per_token,
    }
    settings["chat"] = chat
    own = None if choices is None else ItemChoices(choices)
    return LikelihoodTask(source, model, own, settings, timeout)
