"""The viewer over a million responses with their evaluations, about a gigabyte: pages against the least that they could
take."""

from pathlib import Path

import msgspec

from benchmarks.aggregation import write_rows

ROWS = 1_000_000
SAMPLES = 10
_WORDS = [
    "the",
    "answer",
    "follows",
    "from",
    "what",
    "was",
    "asked",
    "and",
    "from",
    "nothing",
    "else",
    "so",
    "that",
    "one",
    "can",
    "check",
    "each",
    "step",
    "of",
    "it",
]


def write_experiment(folder: str, rows: int) -> None:
    """Responses and evaluations that belong together, items, sealed by a manifest; a few metrics."""
    from assay.records import Manifest, Response
    from assay.store.seal import seal
    from assay.store.stores import FlatStore

    encode = msgspec.json.Encoder().encode
    write_rows(folder, rows)
    path = Path(folder)
    with (path / "items.jsonl").open("wb") as file:
        for number in range(rows // (4 * SAMPLES)):
            item = {"id": f"item-{number}", "data": {"question": f"What is {number} + {number}?"}}
            file.write(encode({**item, "metadata": {"kind": f"kind-{number % 7}"}}) + b"\n")
    with (path / "responses.jsonl").open("wb") as file:
        for number in range(rows):
            cell, sample = divmod(number, SAMPLES)
            item, task = divmod(cell, 4)
            words = " ".join(_WORDS[(number * 31 + at * 7) % len(_WORDS)] for at in range(12 + number % 9))
            row = Response(
                item_id=f"item-{item}",
                sample_id=f"item-{item}_sample_{sample}",
                sample_index=sample,
                total_samples=SAMPLES,
                model_name=f"model-{task % 2}",
                prompt=f"What is {item} + {item}?\nAnswer with only the result.",
                response=f"{words}: {2 * item + number % 3}",
                inference_time=(number * 2654435761 % 1009) / 1009,
                timestamp=1763237000.123456,
                metadata={
                    "model_id": f"model-{task % 2}",
                    "prompt_template": f"prompt-{task // 2}",
                    "sampling": {"temperature": 0.7, "max_tokens": 512},
                    "finish_reason": "stop",
                    "response_id": f"chatcmpl-{number:012d}",
                },
                total_tokens=20 + number % 50,
                key=f"{number:032x}",
                task=f"model-{task % 2}/prompt-{task // 2}",
                cost=1e-6 * (number % 50),
                served_model=f"model-{task % 2}-2026",
            )
            file.write(encode(row) + b"\n")
    store = FlatStore(path)
    for kind in ("run", "evaluation"):
        manifest = Manifest(kind=kind, id=store.id, complete=True, planned=rows, present=rows)
        seal(manifest, store.log(kind, store.id))
        store.put_manifest(manifest)
