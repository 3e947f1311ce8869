"""Likelihoods: the flow against the mock server, and what the choices of a long context cost a model in process."""

import asyncio
import json
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.server import Options, running
from benchmarks.measure import Line, child

CONCURRENCY = 64
CHOICES = ["Paris", "Rome", "London", "Berlin"]
PLACES = ["France", "Italy", "Germany", "Spain", "Poland"]
LONG = "The capital of France is Paris and so on. " * 60


def question(i: int) -> str:
    return f"Question {i}: The capital of {PLACES[i % len(PLACES)]} is"


def run_flow(folder: str, url: str, items: int) -> float:
    """Seconds for likelihoods, scores and metrics, imports not counted."""
    import assay

    path = Path(folder) / "items.jsonl"
    with path.open("w") as file:
        for i in range(items):
            data = {"question": question(i), "choices": CHOICES}
            file.write(json.dumps({"id": f"item-{i}", "data": data, "ground_truth": i % 4}) + "\n")
    config: dict[str, Any] = {
        "name": "bench",
        "models": [{"name": "mock", "endpoint": url, "max_concurrency": CONCURRENCY}],
        "dataset": str(path),
        "prompts": [{"name": "q", "text": "{{question}}", "likelihood": {"choices": "choices"}}],
        "evaluation_methods": ["likelihood_choice"],
        "metrics": ["pass_rate"],
        "output_dir": str(Path(folder) / "out"),
    }
    began = time.perf_counter()
    result = assay.run(config)
    assert result.run is not None
    assert result.run.complete
    return time.perf_counter() - began


def run_bare_loop(url: str, items: int) -> float:
    """The same requests from a bare aiohttp loop that keeps nothing."""
    import aiohttp

    async def loop() -> float:
        numbers = iter(range(items))
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def work() -> None:
                for i in numbers:
                    prompts = [f"{question(i)} {choice}" for choice in CHOICES]
                    body = {"model": "mock", "prompt": prompts, "max_tokens": 1, "temperature": 0}
                    body |= {"echo": True, "logprobs": 1}
                    async with session.post(f"{url}/v1/completions", json=body) as response:
                        answer = await response.json()
                    assert len(answer["choices"]) == len(CHOICES)

            began = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
            return time.perf_counter() - began

    return asyncio.run(loop())


def likelihood_throughput() -> list[Line]:
    """The full flow against a bare loop, alternating, best of three each."""
    items = 6000
    ours: list[float] = []
    bare: list[float] = []
    with running(Options()) as url:
        for _ in range(3):
            bare.append(child(run_bare_loop, url, items)["result"])
            with tempfile.TemporaryDirectory() as folder:
                ours.append(child(run_flow, folder, url, items)["result"])
    detail = f"{items / min(ours):,.0f} items/s of 4 choices, scored; bare aiohttp {items / min(bare):,.0f}/s"
    return [
        Line(
            "likelihoods / bare aiohttp loop, requests per second",
            min(bare) / min(ours),
            ">=",
            0.8,
            detail,
        )
    ]


def make_model(folder: str) -> None:
    """Random weights; tokens are bytes."""
    import torch
    import transformers as library

    torch.set_num_threads(1)
    sizes = {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
    }
    config = library.LlamaConfig(vocab_size=8192, max_position_embeddings=2048, **sizes)
    library.LlamaForCausalLM(config).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def seconds_of_choices(folder: str) -> tuple[float, float]:
    """For one and for four one-token choices over the same long contexts, the best of three each."""
    from assay.models._causal_lm import CausalLM, RowJob

    make_model(folder)
    model = CausalLM(folder, {"dtype": "float32"}, "cpu", None)
    contexts = [model.tokens(f"{i}{LONG}")[:600] for i in range(4)]
    found: dict[int, list[float]] = {1: [], 4: []}
    for _ in range(3):
        for choices, times in found.items():
            jobs = [RowJob(context, [[7 + at] for at in range(choices)]) for context in contexts]
            began = time.perf_counter()
            model.score(jobs, 4)
            times.append(time.perf_counter() - began)
    return min(found[1]), min(found[4])


def _tokenizer() -> Any:
    import tokenizers
    import transformers as library

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(
        vocab={letter: at for at, letter in enumerate(letters)}, merges=[]
    )
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return library.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=letters[0], eos_token=letters[0]
    )


def prefix_reuse() -> list[Line]:
    """Only where torch is installed."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        one, four = child(seconds_of_choices, folder)["result"]
    detail = f"{four:.2f} s / {one:.2f} s, contexts of 600 tokens, in process"
    return [Line("four one-token choices / one, seconds", four / one, "<=", 1.5, detail)]


def seconds_of_harness(folder: str) -> tuple[float, float]:
    """Seconds of CPU for the same continuations, one of each context: ours and lm-evaluation-harness's."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    from assay.interfaces import Likelihood
    from assay.models.transformers import transformers

    make_model(folder)
    pairs = [
        (LONG[i : i + 100 + 7 * i], f" {CHOICES[i % 4]} and {PLACES[i % 5]}") for i in range(40)
    ]
    theirs = HFLM(pretrained=folder, device="cpu", batch_size=8, dtype="float32")
    model: Any = transformers("m", model_name=folder, batch_size=8, dtype="float32", device="cpu")
    requests = [Likelihood([{"role": "user", "content": a}], continuations=[b]) for a, b in pairs]

    async def ours() -> float:
        await model.open()
        began = time.process_time()
        await asyncio.gather(*map(model.likelihood, requests))
        return time.process_time() - began

    found: list[tuple[float, float]] = []
    for _ in range(3):
        mine = asyncio.run(ours())
        asyncio.run(model.close())
        began = time.process_time()
        theirs.loglikelihood(
            [Instance("loglikelihood", {}, pair, 0) for pair in pairs], disable_tqdm=True
        )
        found.append((mine, time.process_time() - began))
    return min(mine for mine, _ in found), min(other for _, other in found)


def harness() -> list[Line]:
    """Only where torch and lm-evaluation-harness are installed."""
    if find_spec("torch") is None or find_spec("lm_eval") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = child(seconds_of_harness, folder)["result"]
    detail = f"{theirs:.2f} s of CPU / {ours:.2f} s"
    return [
        Line(
            "transformers in process / lm-evaluation-harness, throughput",
            theirs / ours,
            ">=",
            0.9,
            detail,
        )
    ]


BENCHMARKS = [likelihood_throughput, prefix_reuse, harness]
