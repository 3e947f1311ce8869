"""Results of lm-evaluation-harness against a bare pass over the same file, which decodes each line and forgets it."""

import json
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from benchmarks.measure import Line, child

LINES = 200_000
FILTERS = ("strict-match", "flexible-extract")
READ, IMPORTED = 4, 4  # times the bare pass
STAMP = "2026-01-01T00-00-00.000000"
SHOTS = "\n\n".join(
    f"Question: Ann has {n} boxes with {n * 3} pencils each and gives away {n + 1}. How many pencils does she keep?\n"
    f"Answer: She has {n * n * 3} pencils, and keeps {n * n * 3 - n - 1}.\n#### {n * n * 3 - n - 1}"
    for n in range(3, 8)
)


def write_samples(folder: str, lines: int) -> None:
    """A task with five examples and two filters, as the harness writes it."""
    place = Path(folder)
    place.mkdir()
    settings = {"until": ["Question:"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 256}
    with (place / f"samples_pencils_{STAMP}.jsonl").open("w") as file:
        for number in range(lines):
            name, doc_id = FILTERS[number >= lines // 2], number % (lines // 2)
            question = f"Ann has {doc_id} boxes with {doc_id % 7} pencils each. How many pencils does she have?"
            prompt = f"{SHOTS}\n\nQuestion: {question}\nAnswer:"
            answer = f"She has {doc_id} times {doc_id % 7} pencils.\n#### {doc_id * (doc_id % 7)}"
            row = {
                "doc_id": doc_id,
                "doc": {"question": question, "answer": answer},
                "target": answer,
                "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": settings}},
                "resps": [[f" {answer}"]],
                "filtered_resps": [str(doc_id) if doc_id % 5 else "[invalid]"],
                "filter": name,
                "metrics": ["exact_match"],
                **{
                    f"{what}_hash": sha256(f"{what}{doc_id}".encode()).hexdigest()
                    for what in ("doc", "prompt", "target")
                },
                "exact_match": float(doc_id % 5 > 0),
            }
            file.write(json.dumps(row) + "\n")


def pass_bare(folder: str) -> float:
    """Seconds of the processor."""
    import msgspec

    began = time.process_time()
    decode = msgspec.json.Decoder().decode
    (path,) = Path(folder).iterdir()
    with path.open("rb") as file:
        for line in file:
            decode(line)
    return time.process_time() - began


def read_samples(folder: str) -> float:
    """Every case, made and forgotten."""
    from assay.formats.lm_eval.reader import lm_eval

    began = time.process_time()
    (results,) = lm_eval(Path(folder))
    count = sum(len(case.evaluations) for case in results.cases())
    assert count == LINES
    return time.process_time() - began


def import_samples(folder: str, target: str) -> float:
    """The whole import: items, answers and labels on disk, sealed."""
    from assay.engine.experiment.imports.results import import_results

    began = time.process_time()
    (result,) = import_results([folder], target)
    assert sum(result.evaluations.values()) == LINES
    return time.process_time() - began


def import_lm_eval() -> list[Line]:
    """Each in processes of its own, the best of three."""
    with tempfile.TemporaryDirectory() as place:
        folder = f"{place}/model"
        write_samples(folder, LINES)
        bare, read, whole = [], [], []
        peak = 0.0
        for number in range(3):
            bare.append(child(pass_bare, folder)["result"])
            read.append(child(read_samples, folder)["result"])
            done = child(import_samples, folder, f"{place}/out-{number}")
            whole.append(done["result"])
            peak = max(peak, done["peak"])
    least = min(bare)
    return [
        Line(
            f"lm-eval: {what} {LINES:,} lines against a bare msgspec pass",
            min(seconds) / least,
            "<=",
            bound,
            f"{min(seconds):.2f} s / {least:.2f} s{more}",
        )
        for what, seconds, bound, more in (
            ("reading", read, READ, ""),
            (
                "importing",
                whole,
                IMPORTED,
                f"; {LINES / min(whole):,.0f} lines/s, peak {peak:.0f} MB",
            ),
        )
    ]


BENCHMARKS = [import_lm_eval]
