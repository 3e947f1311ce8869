"""A language model of the transformers library in this process: the log-probabilities of continuations, and answers.

The continuations of a context go through the model in one row with it, each of them hidden from the others, so that the
context is read once; and only the positions that matter are turned into probabilities. A model that cannot be used so
(both are tried out when it is loaded) gets a row for every continuation, or gives probabilities of all positions.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from assay.models._likelihood import of_tokens
from assay.sdk import (
    JsonMapping,
    LaneError,
    LogProbability,
    Message,
    PermanentError,
    UserError,
    install_command,
)

_ALIKE = {"float32": 1e-3, "float64": 1e-3}  # nats by which the two ways may differ in the trial
_ALIKE_HALF = 0.1
_TRIAL = [3, 5, 7, 11], [[13, 17, 19, 2], [23, 29, 31], [37]]
_ROOM = 8192  # tokens of a batch, as long as it has more than one row
_AT_ONCE = 1024  # positions whose probabilities are made together


def check_packages(where: str) -> None:
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            what = f"this needs {package}, which is not installed"
            raise UserError(what, where=where, fix=install_command("neural"))


class RowJob(NamedTuple):
    """The tokens of a context, and those of the texts that may follow it."""

    context: list[int]
    continuations: list[list[int]]

    def length(self) -> int:
        """Tokens of its row: the last one of a continuation is only predicted."""
        return len(self.context) + sum(len(tokens) - 1 for tokens in self.continuations)

    def branches(self) -> bool:
        """Return whether there are tokens in the row that must not see each other."""
        return sum(len(tokens) > 1 for tokens in self.continuations) > 1


class CausalLM:
    """Loaded weights. Nothing here may be called by two threads at once."""

    def __init__(
        self,
        model_name: str,
        loading: JsonMapping,
        device: str | None,
        max_length: int | None,
    ) -> None:
        self.torch: Any = import_module("torch")
        library: Any = import_module("transformers")
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
        place = (
            str(Path(model_name).expanduser())
            if Path(model_name).expanduser().exists()
            else model_name
        )
        shared = {
            name: value for name, value in loading.items() if name != "dtype" and value is not None
        }
        try:
            self.tokenizer: Any = library.AutoTokenizer.from_pretrained(place, **shared)
            model: Any = library.AutoModelForCausalLM.from_pretrained(
                place, dtype=loading["dtype"], **shared
            )
        except (OSError, ValueError, ImportError, KeyError) as error:
            what = f"the model {model_name!r} cannot be loaded: {(str(error).strip() or 'unknown').splitlines()[0]}"
            fix = "name a folder with a model of transformers, or a model of the Hugging Face hub"
            raise LaneError(what, fix=fix) from None
        self.model = model.to(
            device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        ).eval()
        known = min(
            self.tokenizer.model_max_length,
            getattr(model.config, "max_position_embeddings", None) or 2**31,
        )
        self.longest: int = max_length or (known if known < 2**31 else 2048)
        self.before: int | None = self.tokenizer.bos_token_id
        if self.before is None:
            self.before = self.tokenizer.eos_token_id
        self._by_position = self.packs = False
        self._by_position = self._states_suffice()
        self.packs = self._can_pack()

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=special)

    def chat(self, messages: list[Message]) -> str:
        """Messages in the words of the model's template, up to where its answer begins."""
        if self.tokenizer.chat_template is None:
            raise PermanentError("the model has no chat template", fix="remove `chat: true`")
        return self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )

    def score(self, jobs: Sequence[RowJob], batch_size: int) -> list[list[LogProbability]]:
        """For each job the values of its continuations."""
        if self.packs:
            return self._batches(jobs, batch_size)
        apart = [RowJob(job.context, [tokens]) for job in jobs for tokens in job.continuations]
        values = iter([value for values in self._batches(apart, batch_size) for value in values])
        return [[next(values) for _ in job.continuations] for job in jobs]

    def _batches(self, jobs: Sequence[RowJob], size: int) -> list[list[LogProbability]]:
        """In batches of alike length, so that little of a batch is padding."""
        order = sorted(range(len(jobs)), key=lambda at: (jobs[at].branches(), -jobs[at].length()))
        found: dict[int, list[LogProbability]] = {}
        while order:
            count = max(1, min(size, _ROOM // jobs[order[0]].length()))
            batch, order = order[:count], order[count:]
            found.update(zip(batch, self._forward([jobs[at] for at in batch]), strict=True))
        return [found[at] for at in range(len(jobs))]

    def _forward(self, jobs: list[RowJob]) -> list[list[LogProbability]]:
        rows = [
            (row, place)
            for row, job in enumerate(jobs)
            for places in _places(job)
            for place in places
        ]
        targets = [token for job in jobs for tokens in job.continuations for token in tokens]
        with self.torch.inference_mode():
            outputs = self._outputs(jobs)
            scored = iter(
                [pair for at in range(0, len(rows), _AT_ONCE)
                 for pair in self._target_values(outputs, rows[at : at + _AT_ONCE], targets[at : at + _AT_ONCE])]
            )  # fmt: skip
        return [
            [of_tokens(islice(scored, len(tokens))) for tokens in job.continuations] for job in jobs
        ]

    def _outputs(self, jobs: list[RowJob]) -> Any:
        """The last hidden states, or the logits, of every position."""
        torch, device = self.torch, self.model.device
        width = max(job.length() for job in jobs)
        padded = [[*_row(job), *[(0, 0)] * (width - job.length())] for job in jobs]
        inputs = {
            "input_ids": torch.tensor(
                [[token for token, _ in row] for row in padded], device=device
            )
        }
        if any(job.branches() for job in jobs):
            inputs["position_ids"] = torch.tensor(
                [[place for _, place in row] for row in padded], device=device
            )
            inputs["attention_mask"] = torch.stack([self._mask(job, width) for job in jobs])[
                :, None
            ].to(device)
        else:
            seen = [[1] * job.length() + [0] * (width - job.length()) for job in jobs]
            inputs["attention_mask"] = torch.tensor(seen, device=device)
        if self._by_position:
            return self.model.base_model(**inputs, use_cache=False).last_hidden_state
        return self.model(**inputs, use_cache=False).logits

    def _target_values(
        self, outputs: Any, rows: list[tuple[int, int]], targets: list[int]
    ) -> Iterator[tuple[float, bool]]:
        """The log-probability of each target, and whether it was the greatest."""
        torch = self.torch
        wanted = torch.tensor(targets, device=outputs.device)
        logits = outputs[[row for row, _ in rows], [place for _, place in rows]]
        if self._by_position:
            logits = self.model.get_output_embeddings()(logits)
        logprobs = torch.log_softmax(logits.float(), dim=-1)
        values = logprobs.gather(1, wanted[:, None])[:, 0].tolist()
        return zip(values, (logprobs.argmax(dim=-1) == wanted).tolist(), strict=True)

    def _mask(self, job: RowJob, width: int) -> Any:
        """Who sees whom, as attention adds it: the context itself, a continuation the context and itself."""
        torch, start = self.torch, len(job.context)
        sees = torch.zeros(width, width, dtype=torch.bool)
        sees[:start, :start] = torch.ones(start, start, dtype=torch.bool).tril()
        at = start
        for tokens in job.continuations:
            stop = at + len(tokens) - 1
            sees[at:stop, :start] = True
            sees[at:stop, at:stop] = torch.ones(stop - at, stop - at, dtype=torch.bool).tril()
            at = stop
        sees[at:, 0] = True  # padding looks somewhere, or its numbers are none
        dtype = self.model.dtype
        return torch.zeros(width, width, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)

    def _states_suffice(self) -> bool:
        """Try out whether hidden states and the last layer alone are the model: some do more to their logits."""
        ids = self.torch.tensor([_TRIAL[0]], device=self.model.device)
        try:
            with self.torch.inference_mode():
                logits = self.model(input_ids=ids, use_cache=False).logits
                states = self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
                ours = self.model.get_output_embeddings()(states)
        except Exception:  # a model may refuse what most take in any way
            return False
        return bool((logits - ours).abs().max() <= 1e-5 * logits.abs().max())

    def _can_pack(self) -> bool:
        """Try out whether continuations in one row have the values that they have in rows of their own."""
        job = RowJob(*_TRIAL)
        try:
            packed = self._forward([job])[0]
            apart = [
                self._forward([RowJob(job.context, [tokens])])[0][0] for tokens in job.continuations
            ]
        except Exception:  # as above
            return False
        most = _ALIKE.get(str(self.model.dtype).removeprefix("torch."), _ALIKE_HALF)
        pairs = zip(
            (value.tokens for value in packed), (value.tokens for value in apart), strict=True
        )
        return all(
            abs(a - b) < most for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True)
        )

    def answer(
        self, messages: list[Message], text: str, params: JsonMapping
    ) -> tuple[str, int, int, bool]:
        """A generated text, the tokens of the prompt and of the answer, and whether it came to its end."""
        chats = self.tokenizer.chat_template is not None
        ids = self.tokens(self.chat(messages)) if chats else self.tokens(text, special=True)
        temperature = float(params.get("temperature") or 0)
        sampling = {
            "temperature": temperature,
            "top_p": float(params.get("top_p") or 1.0),
            "top_k": 0,
        }
        stop = params.get("stop")
        most = int(params.get("max_tokens") or 256)
        with self.torch.inference_mode():
            self.torch.manual_seed(int(params["seed"]))
            made = self.model.generate(
                self.torch.tensor([ids], device=self.model.device),
                attention_mask=self.torch.ones(
                    1, len(ids), dtype=self.torch.long, device=self.model.device
                ),
                max_new_tokens=most,
                do_sample=temperature > 0,
                stop_strings=[stop] if isinstance(stop, str) else stop,
                tokenizer=self.tokenizer,
                pad_token_id=self.before,
                **(sampling if temperature > 0 else {}),
            )[0, len(ids) :].tolist()
        return (
            self.tokenizer.decode(made, skip_special_tokens=True),
            len(ids),
            len(made),
            len(made) < most,
        )


def _row(job: RowJob) -> Iterator[tuple[int, int]]:
    """The tokens of a row with their positions; the last token of a continuation is only predicted."""
    for at, token in enumerate(job.context):
        yield token, at
    for tokens in job.continuations:
        for at, token in enumerate(tokens[:-1], len(job.context)):
            yield token, at


def _places(job: RowJob) -> Iterator[list[int]]:
    """Yield where in the row each token of a continuation is predicted."""
    at = len(job.context)
    for tokens in job.continuations:
        yield [len(job.context) - 1, *range(at, at + len(tokens) - 1)]
        at += len(tokens) - 1
