"""Likelihoods by the own parameters of vLLM and SGLang, for servers that do not know `echo`."""

import msgspec

from assay.models._chat_answer import total
from assay.models._likelihood import (
    UNKNOWN,
    ChatUsage,
    Completions,
    PromptTokens,
    ScoredChoice,
    ScoredPrompts,
    TokenEntry,
    Unfit,
    answer_of,
)
from assay.sdk import JsonObject


class PromptLogprobs(Completions):
    """The same with vLLM's own parameter, for servers that do not know `echo`."""

    name = "prompt_logprobs"
    asks: JsonObject = {"prompt_logprobs": 1}
    behind = 0

    def tokens(self, choice: ScoredChoice) -> PromptTokens:
        if choice.prompt_logprobs is None:
            raise Unfit("no prompt_logprobs")
        # beside the prompt's own token there is the best one, if that is another
        entries = [
            min(entry.values(), key=_logprob) if entry else None for entry in choice.prompt_logprobs
        ]

        def greedy(at: int) -> bool | None:
            entry = entries[at]
            return None if entry is None else entry.rank == 1

        texts = [UNKNOWN if entry is None else entry.decoded_token for entry in entries]
        return PromptTokens(
            texts, [None if entry is None else entry.logprob for entry in entries], greedy
        )


def _logprob(entry: TokenEntry) -> float:
    return entry.logprob


Triple = tuple[float | None, int, str | None]  # a log-probability, a token's number, its text


class _Meta(msgspec.Struct):
    input_token_logprobs: list[Triple]
    input_top_logprobs: list[list[Triple] | None] = []
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Generated(msgspec.Struct):
    meta_info: _Meta


class Generate(Completions):
    """SGLang's own `/generate`."""

    name = "sglang"
    behind = 0

    async def _send_prompts(self, prompts: list[str], timeout: float) -> ScoredPrompts:
        body = {
            "text": prompts,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
        }
        body |= {"logprob_start_len": 0, "top_logprobs_num": 1, "return_text_in_logprobs": True}
        url = self._server.base.removesuffix("/v1") + "/generate"
        answers = await answer_of(self._server, url, body, list[_Generated], timeout)
        metas = [answer.meta_info for answer in answers]
        sent = total([meta.prompt_tokens for meta in metas])
        made = total([meta.completion_tokens for meta in metas])
        return ScoredPrompts(
            [_triples(meta) for meta in metas], ChatUsage(sent, made, total([sent, made]))
        )


def _triples(meta: _Meta) -> PromptTokens:
    tops, own = meta.input_top_logprobs, meta.input_token_logprobs

    def greedy(at: int) -> bool | None:
        top = tops[at] if at < len(tops) else None
        return top[0][1] == own[at][1] if top else None

    texts = [UNKNOWN if text is None else text for _, _, text in own]
    return PromptTokens(texts, [value for value, _, _ in own], greedy)
