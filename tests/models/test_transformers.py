"""Models in this process: small ones with random weights, against bare forward passes. Run by `make test-heavy`."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from assay.errors import LaneError, PermanentError, UserError
from assay.interfaces import Likelihood, Likelihoods, Request
from assay.models.transformers import TransformersModel, transformers

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("default"),  # other people's libraries
]

QUESTIONS = [
    ("The capital of France is", [" Paris", " London", " a rather small town", " Tökyö"]),
    ("Yes or no? ", ["yes", "no"]),
    ("", ["Hello world"]),
    ("A long one. " * 15, ["A", "B", "C", "D"]),
]
SIZES: dict[str, Any] = {
    "vocab_size": 258,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "max_position_embeddings": 256,
}
HEADS: dict[str, Any] = {
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "Llama": {**SIZES, **HEADS},
    "GPT2": {"vocab_size": 258, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256},
    "Gemma2": {**SIZES, **HEADS, "head_dim": 8, "final_logit_softcapping": 0.5},
    "Mamba": {**SIZES, "state_size": 4},
}


def made(kind: str, folder: Path) -> str:
    """A model of this kind whose tokens are bytes."""
    import tokenizers
    import torch
    import transformers as library
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    torch.manual_seed(1)
    letters = sorted(ByteLevel.alphabet())
    vocabulary = {"<s>": 0, "<pad>": 1, **{letter: at for at, letter in enumerate(letters, 2)}}
    tokenizer = tokenizers.Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    fast = library.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="<s>"
    )
    config = getattr(library, f"{kind}Config")(
        **CONFIGS[kind], bos_token_id=0, eos_token_id=0, pad_token_id=1
    )
    model = library.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        parameter.data *= 3
    place = folder / kind
    model.save_pretrained(place)
    fast.save_pretrained(place)
    return str(place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def bare(place: str, context: str, continuation: str) -> tuple[list[float], bool]:
    """One sequence at a time, all logits: nothing is packed, padded or left out."""
    import torch
    import transformers as library

    tokenizer = library.AutoTokenizer.from_pretrained(place)
    model = library.AutoModelForCausalLM.from_pretrained(place)
    kept = context.rstrip()
    before = tokenizer.encode(kept, add_special_tokens=False) or [0]
    whole = tokenizer.encode(context + continuation, add_special_tokens=False)
    after = whole[len(before) if kept else 0 :]
    with torch.inference_mode():
        logprobs = torch.log_softmax(model(torch.tensor([[*before, *after]])).logits[0].float(), -1)
    places = range(len(before) - 1, len(before) + len(after) - 1)
    values = [float(logprobs[at, token]) for at, token in zip(places, after, strict=True)]
    return values, all(
        int(logprobs[at].argmax()) == token for at, token in zip(places, after, strict=True)
    )


def opened(place: str, **options: Any) -> TransformersModel:
    model = transformers("m", model_name=place, **options)
    assert isinstance(model, TransformersModel)
    return model


def asked(model: TransformersModel, *requests: Likelihood) -> list[Likelihoods]:
    async def go() -> list[Likelihoods]:
        try:
            return await asyncio.gather(*(model.likelihood(request) for request in requests))
        finally:
            await model.close()

    return asyncio.run(go())


def request(context: str, continuations: list[str], rolling: bool = False) -> Likelihood:
    return Likelihood(
        [{"role": "user", "content": context}], continuations=continuations, rolling=rolling
    )


@pytest.mark.parametrize(
    ("kind", "packs", "by_position"),
    [("Llama", True, True), ("GPT2", True, True), ("Gemma2", None, False), ("Mamba", False, True)],
)
def test_a_packed_batch_has_the_values_of_single_passes(
    kind: str, packs: bool | None, by_position: bool, folder: Path
) -> None:
    place = made(kind, folder)
    model = opened(place, batch_size=3)
    asyncio.run(model.open())
    loaded = model._loaded
    assert loaded is not None
    assert loaded._by_position == by_position
    assert packs is None or loaded.packs == packs
    answers = asked(model, *(request(*question) for question in QUESTIONS))
    for (context, continuations), answer in zip(QUESTIONS, answers, strict=True):
        for continuation, value in zip(continuations, answer.values, strict=True):
            wanted, greedy = bare(place, context, continuation)
            assert value.tokens == pytest.approx(wanted, abs=1e-4)
            assert value.greedy == greedy


def test_windows_and_lengths(folder: Path) -> None:
    place = made("Llama", folder)
    text = "Thequickbrownfoxjumpsoverthelazydog,againandagain,andoncemore"
    (whole,) = asked(opened(place), request("", [text], rolling=True))
    assert whole.values[0].tokens == pytest.approx(bare(place, "", text)[0], abs=1e-4)
    (rolled,) = asked(opened(place, max_length=20), request("", [text], rolling=True))
    # 61 bytes: three windows of 20, and one token with the 20 before it
    assert rolled.values[0].tokens[:20] == pytest.approx(bare(place, "", text[:20])[0], abs=1e-4)
    assert rolled.values[0].tokens[20:40] == pytest.approx(
        bare(place, text[19], text[20:40])[0], abs=1e-4
    )
    assert rolled.values[0].tokens[60:] == pytest.approx(
        bare(place, text[40:60], text[60:])[0], abs=1e-4
    )
    with pytest.raises(PermanentError, match="have 63 tokens, the model takes 20"):
        asked(opened(place, max_length=20), request(text, ["abc"]))
    (cut,) = asked(opened(place, max_length=20, truncate=True), request(text, ["abc"]))
    assert cut.values[0].tokens == pytest.approx(bare(place, text[-18:], "abc")[0], abs=1e-4)
    (begun,) = asked(opened(place, add_bos=True), request("ab", ["c"]))
    assert begun.values[0].tokens != pytest.approx(bare(place, "ab", "c")[0], abs=1e-6)


@pytest.mark.skipif(
    find_spec("lm_eval") is None or find_spec("accelerate") is None,
    reason="lm-evaluation-harness is not installed with its extra hf",
)
def test_the_numbers_of_lm_evaluation_harness(folder: Path) -> None:
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    place = made("Llama", folder)
    theirs = HFLM(pretrained=place, device="cpu", batch_size=3, max_length=100, dtype="float32")
    pairs = [
        (context, continuation)
        for context, continuations in QUESTIONS[:3]
        for continuation in continuations
    ]
    wanted = theirs.loglikelihood([Instance("loglikelihood", {}, pair, 0) for pair in pairs])
    answers = asked(
        opened(place, max_length=100), *(request(*question) for question in QUESTIONS[:3])
    )
    values = [value for answer in answers for value in answer.values]
    assert [sum(value.tokens) for value in values] == pytest.approx(
        [logprob for logprob, _ in wanted], abs=1e-4
    )
    assert [value.greedy for value in values] == [greedy for _, greedy in wanted]
    texts = ["Short.", "A text of more than a hundred bytes. " * 7, "Zwölf Boxkämpfer 日本語"]
    rolled = theirs.loglikelihood_rolling(
        [Instance("loglikelihood_rolling", {}, (text,), 0) for text in texts]
    )
    ours = asked(
        opened(place, max_length=100), *(request("", [text], rolling=True) for text in texts)
    )
    assert [sum(answer.values[0].tokens) for answer in ours] == pytest.approx(rolled, abs=1e-3)


def test_answers(folder: Path) -> None:
    place = made("Llama", folder)
    model = opened(place)

    async def go() -> list[Any]:
        messages = [{"role": "user", "content": "Hi"}]
        calls = [
            ({"max_tokens": 5}, 0),
            ({"max_tokens": 5}, 1),
            *(({"max_tokens": 5, "temperature": 2.0}, n) for n in (1, 2, 1)),
        ]
        return [
            await model.complete(Request(messages, params, seed=seed)) for params, seed in calls
        ]

    first, again, hot, other, same = asyncio.run(go())
    asyncio.run(model.close())
    assert first.text == again.text
    assert hot.text == same.text != other.text
    assert (first.prompt_tokens, first.completion_tokens, first.finish_reason) == (2, 5, "length")


def test_what_cannot_be_loaded() -> None:
    with pytest.raises(LaneError, match="cannot be loaded"):
        asked(opened("/nowhere/at/all"), request("a", ["b"]))


def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.models._causal_lm.find_spec", lambda name: None)
    with pytest.raises(UserError, match="torch") as caught:
        transformers("m")
    assert "assay-eval[neural]" in caught.value.fix
