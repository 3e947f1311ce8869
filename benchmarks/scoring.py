"""Scoring against a bare pass over the same rows, and normalised scores against the straightforward way."""

import re
import string
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from assay.records import Evaluation, Item, Response
from benchmarks.measure import Line, child

ROWS, SAMPLES = 100_000, 4
_TEXT = "the river of an old city flows, slowly; by a green hill and its quiet (stone) bridge"
TEMPLATE = "Solve the following problem and answer with only the number: {{question}}"


def write_run(folder: str) -> None:
    """A finished run of four samples an item, as the Runner writes it."""
    import assay

    rows = [
        {
            "id": f"item-{i}",
            "data": {"question": f"{i} + 1"},
            "ground_truth": {"answer": str(i + 1)},
        }
        for i in range(ROWS // SAMPLES)
    ]
    store = assay.FlatStore(Path(folder))
    assay.DatasetRepository(store).create(rows, name="d", id="d")
    facets = {
        "model_id": "mock",
        "prompt_template": TEMPLATE,
        "sampling": {"temperature": 0.7, "max_tokens": 64},
    }

    def answer(data: dict[str, str]) -> str:
        return str(int(data["question"].split()[0]) + 1)

    assay.Runner(store).run("d", [assay.function_task(answer)], samples=SAMPLES, id="r")
    path = Path(folder) / "responses.jsonl"
    encode, decode = msgspec.json.encode, msgspec.json.Decoder(Response).decode
    lines: list[bytes] = []
    for line in path.read_bytes().splitlines():
        row = decode(line)
        row.metadata = {**facets, "finish_reason": "stop", "response_id": f"cmpl-{row.key[:12]}"}
        row.prompt = TEMPLATE
        lines.append(encode(row) + b"\n")
    path.write_bytes(b"".join(lines))


def score_run(folder: str) -> float:
    import assay

    store = assay.FlatStore(Path(folder))
    scorer = assay.bind_scorer(assay.scorer.get("exact_match"))
    began = time.perf_counter()
    done = assay.Evaluator(store).evaluate(["r"], [scorer], id="e", dataset="d")
    seconds = time.perf_counter() - began
    assert done.counts == {"scored": ROWS}
    for path in Path(folder).glob("evaluation*"):
        path.unlink()
    return seconds


def bare_pass(folder: str) -> float:
    """Read every response and write a row for each, with no item, no key and no care for a crash."""
    decode, encode = msgspec.json.Decoder(Response).decode, msgspec.json.Encoder().encode
    began = time.perf_counter()
    with (
        open(Path(folder) / "responses.jsonl", "rb") as source,
        open(Path(folder) / "bare.jsonl", "wb") as target,
    ):
        for line in source:
            row = decode(line)
            passed = row.response == "1"
            made = Evaluation(
                item_id=row.item_id,
                sample_id=row.sample_id,
                sample_index=row.sample_index,
                label="exact_match",
                model_name=row.model_name,
                passed=passed,
                score=float(passed),
                timestamp=time.time(),
                metadata=row.metadata,
                responses=[row.key],
                scorer="exact_match",
            )
            target.write(encode(made) + b"\n")
    return time.perf_counter() - began


def scoring() -> list[Line]:
    """Alternating, best of three each."""
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        write_run(folder)
        for _ in range(3):
            bare.append(child(bare_pass, folder)["result"])
            ours.append(child(score_run, folder)["result"])
    detail = f"{ROWS / min(ours):,.0f} rows/s; bare {ROWS / min(bare):,.0f} rows/s"
    return [
        Line(
            "exact_match over 100,000 responses / bare msgspec pass",
            min(ours) / min(bare),
            "<=",
            4,
            detail,
        )
    ]


def normalising() -> list[Line]:
    """squad exact_match and f1 with three references, against normalising both sides for every pair."""
    import assay

    cases = _cases(20_000)
    exact, f1 = assay.scorer.get("exact_match"), assay.scorer.get("f1")
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(3):
        began = time.process_time()
        straight = [
            _straightforward(response.response, item.ground_truth) for item, response in cases
        ]
        plain.append(time.process_time() - began)
        began = time.process_time()
        scores = [
            (exact(item, response, normalize="squad").score, f1(item, response).score)
            for item, response in cases
        ]
        ours.append(time.process_time() - began)
        assert all(
            abs(a[0] - b[0]) + abs(a[1] - b[1]) < 1e-9
            for a, b in zip(scores, straight, strict=True)
        )
    detail = f"{len(cases) / min(ours):,.0f} responses/s; straightforward {len(cases) / min(plain):,.0f}/s"
    ratio = min(plain) / min(ours)
    return [
        Line("squad exact_match + f1, three references / straightforward", ratio, ">=", 5, detail)
    ]


def _cases(count: int) -> list[tuple[Item, Response]]:
    """Four different answers to each item."""
    words = _TEXT.split()
    cases: list[tuple[Item, Response]] = []
    for number in range(count):
        i = number // SAMPLES
        truth = [f"{i} {' '.join(words[i % 5 + n : i % 5 + n + 6])}." for n in range(3)]
        answer = f"It is {i} {' '.join(words[i % 7 : i % 7 + 8])}, {number % SAMPLES}!"
        cases.append(
            (Item(id=str(i), ground_truth=truth), Response(item_id=str(i), response=answer))
        )
    return cases


def _straightforward(answer: str, references: list[str]) -> tuple[float, float]:
    exact = max(float(_normal(answer) == _normal(reference)) for reference in references)
    return exact, max(_f1(answer, reference) for reference in references)


def _f1(answer: str, reference: str) -> float:
    given, wanted = _normal(answer).split(), _normal(reference).split()
    shared = sum((Counter(given) & Counter(wanted)).values())
    if not shared:
        return float(given == wanted)
    precision, recall = shared / len(given), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _normal(text: str) -> str:
    excluded = set(string.punctuation)
    kept = "".join(letter for letter in text.lower() if letter not in excluded)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


BENCHMARKS = [scoring, normalising]
