"""Likelihoods by every way that a server may have, against numbers that are computed here from counts."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.demo import trigrams
from assay.errors import CallError, LaneError, PermanentError
from assay.interfaces import Likelihood, Likelihoods, Model
from assay.models._forced_decoding import ForcedDecoding
from assay.models._likelihood import Asker, Completions, Unfit
from assay.models._prompt_logprobs import Generate, PromptLogprobs
from assay.models._transport import HttpReply
from assay.models.demo import demo
from assay.models.openai import OpenAIModel, openai
from assay.server import Options, running
from assay.text.likelihoods import scored_tokens, split, windows

QUESTION = "The capital of France is"
CHOICES = [" Paris", " London", " a small town", " Tökyö"]


def request(context: str, continuations: Sequence[str], rolling: bool = False) -> Likelihood:
    return Likelihood(
        [{"role": "user", "content": context}], continuations=[*continuations], rolling=rolling
    )


def asked(model: Model, *requests: Likelihood) -> list[Likelihoods]:
    async def go() -> list[Likelihoods]:
        try:
            return [await model.likelihood(one) for one in requests]  # type: ignore[attr-defined]
        finally:
            await model.close()

    return asyncio.run(go())


def by_counting(context: str, continuation: str) -> float:
    """The sum for a continuation, from the sentences themselves."""
    model = trigrams.language_model()
    sentences = [
        [b"", *model.tokens(sentence.format(country.title(), capital))]
        for country, capital in trigrams.CAPITALS.items()
        for sentence in trigrams._SENTENCES
    ]
    tokens = [b"", *model.tokens(context + continuation)]
    first = len(tokens) - len(model.tokens(continuation))
    assert tokens[1:first] == model.tokens(context)

    def probability(at: int, history: int) -> float:
        if history < 0:
            return 1 / (
                len({token for sentence in sentences for token in sentence[1:] if len(token) > 1})
                + 256
            )
        before = tokens[at - history : at]
        lower = probability(at, history - 1)
        followers = Counter(
            sentence[place]
            for sentence in sentences
            for place in range(1, len(sentence))
            if place >= history and sentence[place - history : place] == before
        )
        return (followers[tokens[at]] + lower) / (followers.total() + 1) if followers else lower

    return sum(math.log(probability(at, min(2, at))) for at in range(first, len(tokens)))


EXPECTED = [by_counting(QUESTION, choice) for choice in CHOICES]


def test_the_probabilities_of_all_tokens_add_up_to_one() -> None:
    model = trigrams.language_model()
    vocabulary = model.words | {bytes([byte]) for byte in range(256)}
    for history in [(), (b"",), (b" France", b" is"), (b"x", b" is"), (b"x", b"y")]:
        assert math.fsum(
            model.probability(history, token) for token in vocabulary
        ) == pytest.approx(1)
        assert model.best(history) in vocabulary
        most = max(vocabulary, key=lambda token: model.probability(history, token))
        assert model.probability(history, model.best(history)) == model.probability(history, most)


@pytest.mark.parametrize("way", [Completions, PromptLogprobs])
def test_the_ways_by_text_give_the_model_its_own_numbers(
    way: type[Completions], honest: str
) -> None:
    model = openai("m", endpoint=honest)
    assert isinstance(model, OpenAIModel)
    model._asker = Asker([way(model, {})], "here")
    answer, alone = asked(model, request(QUESTION, CHOICES), request("", [" Tökyö"]))
    assert [sum(value.tokens) for value in answer.values] == pytest.approx(EXPECTED)
    assert [value.greedy for value in answer.values] == [True, False, False, False]
    assert sum(alone.values[0].tokens) == pytest.approx(by_counting("", " Tökyö"))
    assert (answer.way, answer.served_model) == (way.name, "m")
    assert answer.prompt_tokens == sum(
        len(trigrams.language_model().tokens(QUESTION + choice)) + 1 for choice in CHOICES
    )


def test_the_demo_model_has_the_servers_numbers(honest: str) -> None:
    ours, theirs = (
        asked(model, request(QUESTION + " ", CHOICES))[0]
        for model in (demo("d"), openai("m", endpoint=honest))
    )
    assert [value.tokens for value in ours.values] == [value.tokens for value in theirs.values]
    assert [value.greedy for value in ours.values] == [value.greedy for value in theirs.values]


# ---- servers that do not keep their promise

DROPS = """
def answer(request):
    if "prompt_logprobs" in request:
        return {"status": 400, "body": {"error": {"message": "unknown parameter"}}}
    one = {"tokens": ["."], "token_logprobs": [-0.4], "top_logprobs": [{".": -0.4}]}
    prompts = request["prompt"] if isinstance(request["prompt"], list) else [request["prompt"]]
    usage = {"prompt_tokens": 6 * len(prompts), "completion_tokens": len(prompts)}
    return {"choices": [{"index": n, "text": ".", "logprobs": one} for n in range(len(prompts))], "usage": usage}
"""


@pytest.fixture(scope="module")
def dropping(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that ignores `echo`, silently."""
    path: Path = tmp_path_factory.mktemp("dropping") / "answers.py"
    path.write_text(DROPS)
    with running(Options(answers=f"{path}:answer")) as url:
        yield url


def test_a_server_that_drops_log_probabilities_is_refused(dropping: str) -> None:
    with pytest.raises(LaneError) as caught:
        asked(openai("m", endpoint=dropping), request(QUESTION, CHOICES))
    assert "echo: 1 log-probabilities for 7 tokens" in caught.value.what
    assert "prompt_logprobs: HTTP 400: unknown parameter" in caught.value.what
    assert "vLLM" in caught.value.fix
    assert "transformers" in caught.value.fix
    assert "letter_likelihood" in caught.value.fix


def test_a_text_that_is_too_long_says_so(honest: str) -> None:
    with pytest.raises(PermanentError, match=r"too long.*4096 tokens"):
        asked(openai("m", endpoint=honest), request("x " * 3000, [" y"]))


# ---- servers that are imitated by their documented bodies


class Fake:
    """A server whose answers are made by a function of path and body."""

    name = model_name = "m"
    base = "http://localhost/v1"

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self.answer = answer
        self.transport: Any = self
        self.seen: list[tuple[str, Any]] = []

    async def post(self, body: bytes, *, url: str, timeout: float) -> HttpReply:
        return self._reply(url, json.loads(body))

    async def get(self, url: str, *, timeout: float) -> HttpReply:
        return self._reply(url, None)

    def _reply(self, url: str, body: Any) -> HttpReply:
        path = url.removeprefix("http://localhost")
        self.seen.append((path, body))
        return HttpReply(200, {}, json.dumps(self.answer(path, body)).encode())

    async def failure(self, reply: HttpReply) -> CallError:
        return PermanentError(f"HTTP {reply.status}")


def no_beginning(path: str, body: Any) -> Any:
    """A tokenizer of letters that puts nothing before a text; each token has -1, the first one none."""

    def choice(index: int, prompt: str) -> Any:
        tokens = [*prompt, "!"]
        values = [None, *[-1.0] * (len(tokens) - 1)]
        return {"index": index, "logprobs": {"tokens": tokens, "token_logprobs": values}}

    if body is None:  # it tells nothing of its tokenizer
        return {}
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    count = sum(map(len, prompts))
    made = [choice(index, prompt) for index, prompt in enumerate(prompts)]
    return {
        "choices": made[::-1],
        "usage": {"prompt_tokens": count, "completion_tokens": len(made)},
    }


def test_where_a_continuation_begins_and_what_has_no_beginning() -> None:
    way = Completions(Fake(no_beginning), {})
    answer = asyncio.run(way.ask(request("ab  ", ["c", "def"])))
    # the spaces are the continuation's
    assert [value.tokens for value in answer.values] == [[-1.0] * 3, [-1.0] * 5]
    assert [value.greedy for value in answer.values] == [None, None]
    with pytest.raises(PermanentError, match="first token of a text no probability") as caught:
        asyncio.run(way.ask(request("", ["abc"])))
    assert "unconditional: <s>" in caught.value.fix


def test_a_server_tells_what_texts_begin_with() -> None:
    def answer(path: str, body: Any) -> Any:
        return {"bos_token": "^"} if path == "/tokenizer_info" else no_beginning(path, body)

    server = Fake(answer)
    way = Completions(server, {})
    for _ in range(2):  # it is asked once
        answers = asyncio.run(way.ask(request("", ["abc", "d"])))
        assert [value.tokens for value in answers.values] == [[-1.0] * 3, [-1.0]]
    assert len(server.seen) == 4


def test_a_server_that_takes_one_prompt_at_a_time() -> None:
    def answer(path: str, body: Any) -> Any:
        return no_beginning(path, body) if isinstance(body["prompt"], str) else {"choices": []}

    server = Fake(answer)
    way = Completions(server, {})
    for _ in range(2):
        answers = asyncio.run(way.ask(request("ab", ["c", "de"])))
        assert [value.tokens for value in answers.values] == [[-1.0], [-1.0] * 2]
    assert (answers.prompt_tokens, answers.completion_tokens) == (7, 2)
    assert len(server.seen) == 5


def test_a_server_that_gives_prompts_apart() -> None:
    def answer(path: str, body: Any) -> Any:
        if isinstance(body["prompt"], list):
            return {"choices": []}
        whole = no_beginning(path, body)
        lists = whole["choices"][0].pop("logprobs")
        ours, theirs = (
            {name: values[part] for name, values in lists.items()}
            for part in (slice(0, -1), slice(-1, None))
        )
        whole["choices"][0]["logprobs"] = theirs
        return {
            **whole,
            "prompt": [{"text": body["prompt"], "logprobs": {**ours, "token_ids": [1]}}],
        }

    answers = asyncio.run(Completions(Fake(answer), {}).ask(request("ab", ["c", "de"])))
    assert [value.tokens for value in answers.values] == [[-1.0], [-1.0] * 2]


def test_a_token_that_spans_the_boundary_is_the_contexts() -> None:
    assert scored_tokens(["foot", "ball", "."], "foo", "tball") == (1, 2)
    assert scored_tokens(["<s>", "foot", "ball"], "foo", "tball") == (2, 3)
    assert scored_tokens(["football"], "foo", "tball") == (1, 1)
    way = Completions(Fake(lambda path, body: {"choices": [
        {"logprobs": {"tokens": ["football", "."], "token_logprobs": [-1, -2]}}
    ]}), {})  # fmt: skip
    with pytest.raises(PermanentError, match="no token of its own"):
        asyncio.run(way.ask(request("foo", ["tball"])))


def sglang(path: str, body: Any) -> Any:
    assert path == "/generate"
    assert (body["return_logprob"], body["logprob_start_len"]) == (True, 0)
    made = []
    for text in body["text"]:
        letters = list(text)
        tokens = [[None, 1, "<s>"], *([-0.5, ord(letter), letter] for letter in letters)]
        tops = [
            None,
            *(
                [[-0.5 if letter != "z" else -0.1, ord(letter) if letter != "z" else 0, None]]
                for letter in letters
            ),
        ]
        counts = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        made.append(
            {"meta_info": {"input_token_logprobs": tokens, "input_top_logprobs": tops, **counts}}
        )
    return made


def test_sglang() -> None:
    server = Fake(sglang)
    answer = asyncio.run(Generate(server, {}).ask(request("ab", ["cd", "zzz"])))
    assert [value.tokens for value in answer.values] == [[-0.5] * 2, [-0.5] * 3]
    assert [value.greedy for value in answer.values] == [True, False]
    assert (answer.prompt_tokens, answer.completion_tokens, answer.total_tokens) == (11, 2, 13)


class LlamaCpp:
    """Tokens are letters; a letter's log-probability is minus its place in the prompt; `e` is always the best."""

    def __init__(self, context: int = 100, obeys: bool = True) -> None:
        self.context = context
        self.obeys = obeys

    def __call__(self, path: str, body: Any) -> Any:
        if path == "/props":
            return {
                "default_generation_settings": {"n_ctx": self.context},
                "total_slots": 2,
                "bos_token": "^",
            }
        if path == "/apply-template":
            return {"prompt": "".join(f"[{message['content']}]" for message in body["messages"])}
        if path == "/tokenize":
            return {"tokens": [ord(letter) for letter in body["content"]]}
        assert path == "/completion"
        assert (body["n_predict"], body["n_probs"], body["samplers"]) == (1, 1, ["temperature"])
        ((token, _),) = body["logit_bias"]
        assert len(body["prompt"]) < self.context
        best = {"id": ord("e"), "logprob": 0.0}
        sampled = {
            "id": token if self.obeys else 0,
            "logprob": -float(len(body["prompt"])),
            "top_logprobs": [best],
        }
        return {"completion_probabilities": [sampled], "timings": {"prompt_n": 1}}


def test_forced_decoding_asks_for_each_token_once() -> None:
    server = Fake(LlamaCpp())
    answer = asyncio.run(ForcedDecoding(server).ask(request("ab ", ["cd", "ce", "ee"])))
    assert [value.tokens for value in answer.values] == [[-2.0, -3.0, -4.0]] * 3
    assert [value.greedy for value in answer.values] == [False, False, False]
    forced = [body for path, body in server.seen if path == "/completion"]
    assert len(forced) == 6  # " " and "c" are shared
    assert {body["id_slot"] for body in forced} == {0}
    assert [path for path, _ in server.seen].count("/tokenize") == 5
    (alone,) = asyncio.run(ForcedDecoding(Fake(LlamaCpp())).ask(request("", ["ee"]))).values
    assert (alone.tokens, alone.greedy) == ([-1.0, -2.0], True)


def test_chats_in_the_servers_template() -> None:
    server = Fake(LlamaCpp())
    chat = Likelihood([{"role": "user", "content": "ab"}], continuations=["e"], chat=True)
    asyncio.run(ForcedDecoding(server).ask(chat))
    assert server.seen[-1][1]["prompt"] == [ord(letter) for letter in "[ab]"]
    with pytest.raises(PermanentError, match="chats"):
        asyncio.run(Completions(Fake(no_beginning), {}).ask(chat))


def test_forced_decoding_in_windows_and_beyond_the_context() -> None:
    way = ForcedDecoding(Fake(LlamaCpp(context=5)))
    with pytest.raises(PermanentError, match="have 7 tokens, the model takes 5"):
        asyncio.run(way.ask(request("abc", ["defg"])))
    (value,) = asyncio.run(
        ForcedDecoding(Fake(LlamaCpp(context=5))).ask(request("", ["abcdefg"], rolling=True))
    ).values
    assert value.tokens == [-1.0, -2.0, -3.0, -4.0, -2.0, -3.0, -4.0]


def test_a_server_that_does_not_obey_is_refused() -> None:
    with pytest.raises(Unfit, match="told to"):
        asyncio.run(ForcedDecoding(Fake(LlamaCpp(obeys=False))).ask(request("ab", ["c"])))
    with pytest.raises(Unfit, match=r"not a llama\.cpp server"):
        asyncio.run(
            ForcedDecoding(Fake(lambda path, body: {"status": "ok"})).ask(request("ab", ["c"]))
        )


# ---- the rules


@given(
    st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=12),
    st.integers(0, 40),
    st.booleans(),
)
def test_the_tokens_behind_the_boundary_are_those_that_begin_there(
    tokens: list[str], cut: int, special: bool
) -> None:
    text = "".join(tokens)
    context, continuation = text[:cut], text[cut:]
    begins = ["\0<s>\0"] if special else []
    first, stop = scored_tokens([*begins, *tokens, "…"], context, continuation) or (0, 0)
    starts = [sum(map(len, tokens[:at])) for at in range(len(tokens))]
    wanted = [token for token, start in zip(tokens, starts, strict=True) if start >= len(context)]
    assert [*begins, *tokens, "…"][first:stop] == wanted


@given(st.lists(st.integers(0, 9), max_size=50), st.integers(1, 12))
def test_windows_score_every_token_once(tokens: list[int], room: int) -> None:
    pieces = list(windows(tokens, -1, room))
    assert [token for piece, count in pieces for token in piece[len(piece) - count :]] == tokens
    assert all(len(piece) <= room + 1 and len(piece) > count for piece, count in pieces)
    whole = [-1, *tokens]
    for piece, _ in pieces:
        assert any(whole[at : at + len(piece)] == piece for at in range(len(whole)))
    assert all(len(piece) == room + 1 for piece, _ in pieces[:-1])


@given(st.text(), st.text())
def test_whitespace_moves_to_the_continuation(context: str, continuation: str) -> None:
    before, after = split(context, continuation)
    assert before + after == context + continuation
    assert before == before.rstrip()
    assert after.endswith(continuation)
