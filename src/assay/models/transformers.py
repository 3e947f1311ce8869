"""A model of the transformers library in this process, on its CPU or GPU: likelihoods in batches, and answers."""

import asyncio
from functools import partial

from assay.models._causal_lm import CausalLM, RowJob, check_packages
from assay.models._likelihood import no_token, too_long
from assay.sdk import (
    Completion,
    JsonMapping,
    LaneError,
    Likelihood,
    Likelihoods,
    LogProbability,
    Model,
    PermanentError,
    Request,
    model,
)
from assay.text.likelihoods import split, windows
from assay.text.messages import messages_text
from assay.threads import Threads


@model(local=True, free=True)
def transformers(
    name: str,
    *,
    model_name: str | None = None,
    gguf_file: str | None = None,
    revision: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
    max_length: int | None = None,
    truncate: bool = False,
    add_bos: bool = False,
    batch_size: int = 16,
) -> Model:
    """A model's folder, or its name on the Hugging Face hub. Code that comes with a model is never run.

    Parameters:
    model_name: the folder or the name; by default its name here
    gguf_file: the file of weights in the folder, if they are GGUF
    revision: the commit or tag on the hub
    dtype: the type of the numbers; by default that of the weights
    device: such as `cuda:1` or `cpu`; by default the first GPU, if there is one
    max_length: how many tokens a text may have; by default as many as the model was made for
    truncate: leave out the beginning of a context that is too long
    add_bos: put the token for the beginning of a text before every context
    batch_size: how many items go through the model together
    """
    check_packages(f"model {name!r}")
    loading = {"gguf_file": gguf_file, "revision": revision, "dtype": dtype}
    settings = {"max_length": max_length, "truncate": truncate, "add_bos": add_bos}
    return TransformersModel(name, model_name or name, loading, settings, device, batch_size)


class TransformersModel:
    """Requests that wait go through the model together."""

    exclusive = True

    def __init__(
        self,
        name: str,
        model_name: str,
        loading: JsonMapping,
        settings: JsonMapping,
        device: str | None,
        batch_size: int,
    ) -> None:
        self.name = name
        self.identity: JsonMapping = {
            "type": "transformers", "name": name, "model_name": model_name, **loading, **settings
        }  # fmt: skip
        self._load = partial(CausalLM, model_name, loading, device, settings["max_length"])
        self._settings = settings
        self._batch_size = batch_size
        self._loaded: CausalLM | None = None
        self._opening: asyncio.Lock | None = None
        self._threads: Threads | None = None
        self._waiting: list[tuple[list[RowJob], asyncio.Future[list[list[LogProbability]]]]] = []
        self._working: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Load the weights, once."""
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            self._threads = self._threads or Threads(1)
            self._loaded = self._loaded or await self._threads.call(self._load)

    async def _model(self) -> tuple[CausalLM, Threads]:
        if self._loaded is None or self._threads is None:
            await self.open()
        assert self._loaded is not None
        assert self._threads is not None
        return self._loaded, self._threads

    async def complete(self, request: Request) -> Completion:
        loaded, threads = await self._model()
        params = {**request.params, "seed": request.seed % 2**31}
        call = partial(loaded.answer, request.messages, messages_text(request.messages), params)
        text, prompt_tokens, tokens, ended = await threads.call(call)
        return Completion(
            text=text,
            finish_reason="stop" if ended else "length",
            prompt_tokens=prompt_tokens,
            completion_tokens=tokens,
            total_tokens=prompt_tokens + tokens,
        )

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        loaded, _ = await self._model()
        jobs = self._jobs(loaded, request)
        done: asyncio.Future[list[list[LogProbability]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._waiting.append((jobs, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        found = await done
        values = found[0]
        if request.rolling:
            parts = [value for values in found for value in values]
            known = [value.greedy for value in parts]
            values = [
                LogProbability([number for value in parts for number in value.tokens], all(known))
            ]
        read = sum(job.length() for job in jobs)
        return Likelihoods(
            values=values,
            way="transformers",
            prompt_tokens=read,
            completion_tokens=0,
            total_tokens=read,
        )

    def _jobs(self, loaded: CausalLM, request: Likelihood) -> list[RowJob]:
        """One for the continuations of a context; of a text that is too long, one for each window."""
        context = loaded.chat(request.messages) if request.chat else messages_text(request.messages)
        before = split(context, "")[0]
        start = loaded.tokens(before) if before else []
        continuations = [
            loaded.tokens("".join(split(context, text)))[len(start) :]
            for text in request.continuations
        ]
        for text, tokens in zip(request.continuations, continuations, strict=True):
            if not tokens:
                raise no_token(text)
        if not start or self._settings["add_bos"]:
            if loaded.before is None:
                raise PermanentError(
                    "the model has no token for the beginning of a text", fix="set `unconditional`"
                )
            start = [loaded.before, *start]
        if request.rolling and len(start) == 1:
            pieces = windows(continuations[0], start[0], loaded.longest)
            return [RowJob(tokens[:-count], [tokens[-count:]]) for tokens, count in pieces]
        most = max(map(len, continuations))
        room = loaded.longest + 1 - most  # the last token is only predicted
        if len(start) > room:
            if not self._settings["truncate"] or room < 1:
                raise too_long(len(start) + most - 1, loaded.longest)
            start = start[-room:]
        return [RowJob(start, continuations)]

    async def _work(self) -> None:
        """Whatever has come in the meantime goes through the model together."""
        loaded, threads = await self._model()
        while self._waiting:
            await asyncio.sleep(0)
            taken, self._waiting = self._waiting, []
            jobs = [job for jobs, done in taken if not done.cancelled() for job in jobs]
            try:
                found = iter(
                    await threads.call(partial(loaded.score, jobs, self._batch_size))
                    if jobs
                    else []
                )
            except Exception as error:
                failed = LaneError(
                    f"the model cannot be used: {str(error).splitlines()[0] if str(error) else error!r}"
                )
                for _, done in taken:
                    if not done.done():
                        done.set_exception(failed)
                continue
            for jobs, done in taken:
                if not done.cancelled():
                    done.set_result([next(found) for _ in jobs])

    async def close(self) -> None:
        """Forget the weights."""
        working, self._working = self._working, None
        if working is not None and not working.done():
            working.cancel()
        threads, self._threads, self._loaded, self._opening = self._threads, None, None, None
        if threads is not None:
            threads.close()
