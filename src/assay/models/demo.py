"""The embedded default model: a small deterministic solver that needs no network and no key."""

import asyncio

from assay.demo import trigrams
from assay.demo.solver import VERSION, count_tokens, respond
from assay.sdk import (
    Completion,
    JsonMapping,
    Likelihood,
    Likelihoods,
    LogProbability,
    Model,
    PermanentError,
    Request,
    UserError,
    model,
)
from assay.text.likelihoods import split
from assay.text.messages import messages_text


@model(free=True, reach="")
def demo(name: str, *, skill: float = 0.8, latency_ms: float = 0.0) -> Model:
    """Assay's built-in solver, not a language model: `skill` (0 to 1) is how often it is right."""
    if not 0 <= skill <= 1:
        raise UserError(
            f"skill is {skill!r}", where=f"model {name!r}", fix="give a number from 0 to 1"
        )
    return DemoModel(name, skill, latency_ms / 1000)


class DemoModel:
    """Is given the rendered messages and nothing else; different seeds give independent samples."""

    def __init__(self, name: str, skill: float, latency: float) -> None:
        self.name = name
        self.skill = skill
        self.latency = latency
        self.identity: JsonMapping = {
            "type": "demo",
            "name": name,
            "skill": skill,
            "version": VERSION,
        }

    async def complete(self, request: Request) -> Completion:
        if self.latency:
            await asyncio.sleep(self.latency)
        text, calls = respond(request.messages, request.params, skill=self.skill, seed=request.seed)
        prompt_tokens, tokens = count_tokens(messages_text(request.messages)), count_tokens(text)
        return Completion(
            text=text,
            finish_reason="tool_calls" if calls else "stop",
            prompt_tokens=prompt_tokens,
            completion_tokens=tokens,
            total_tokens=prompt_tokens + tokens,
            served_model="assay-demo",
            tool_calls=calls,
        )

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        """From the trigrams of a few sentences, whatever the skill."""
        if request.chat:
            raise PermanentError("the demo model has no chat template", fix="remove `chat: true`")
        model, context = trigrams.language_model(), messages_text(request.messages)
        values: list[LogProbability] = []
        total = 0
        for continuation in request.continuations:
            before = len(model.tokens(split(context, continuation)[0]))
            tokens = model.tokens(context + continuation)
            scored = trigrams.logprobs(tokens)[before:]
            greedy = all(value == best for value, _, best in scored)
            values.append(LogProbability([value for value, _, _ in scored], greedy))
            total += len(tokens)
        return Likelihoods(
            values=values,
            way="trigrams",
            served_model="assay-demo",
            prompt_tokens=total,
            completion_tokens=0,
            total_tokens=total,
        )

    async def close(self) -> None:
        """Nothing to close."""
