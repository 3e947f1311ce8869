"""MixEval: what scoring response files costs against a bare pass, and that a million of them fit into the same room."""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec

from assay.records import Evaluation, Response
from benchmarks.measure import Line, child
from benchmarks.startup import _fastest

ENTRIES = 2_000  # of each kind
VERSION = "2026-01-01"
_BENCHMARKS = {
    "free-form": ("TriviaQA", "DROP", "GSM8k"),
    "multiple-choice": ("MMLU", "PIQA", "ARC", "BoolQ"),
}
_WORDS = [
    "river",
    "stone",
    "harbour",
    "winter",
    "copper",
    "garden",
    "window",
    "market",
    "engine",
    "valley",
]


def write_data(folder: str) -> None:
    """Entries of both kinds in the original's shape, about as long as the original's; every fifth is a repeat."""
    place = Path(folder) / "data" / f"mixeval-{VERSION}" / "mixeval"
    place.mkdir(parents=True)
    for kind in _BENCHMARKS:
        entries = {str(number): _entry(kind, number - number % 5 // 4) for number in range(ENTRIES)}
        (place / f"{kind}.json").write_text(json.dumps(entries))


def _entry(kind: str, number: int) -> dict[str, object]:
    names = _BENCHMARKS[kind]
    words = [_WORDS[(number * 7 + step) % len(_WORDS)] for step in range(4)]
    entry = {
        "problem_type": kind,
        "context": None
        if number % 3
        else f"The {' and the '.join(words * 8)} were seen in {1800 + number % 200}.",
        "prompt": f"In which {words[0]} was the {words[1]} number {number} found?",
        "benchmark_name": names[number % len(names)],
    }
    if kind == "free-form":
        return {**entry, "target": [f"{words[2]} {number}", words[3]]}
    return {**entry, "options": [f"{word} {number}" for word in words], "target": [number % 4]}


def write_responses(folder: str, models: int) -> None:
    """A folder of models in the original's layout."""
    from assay.formats.mixeval.evaluation_prompts import (
        construct_prompt_freeform,
        construct_prompt_multichoice,
    )

    data = Path(folder) / "data" / f"mixeval-{VERSION}" / "mixeval"
    prompts = {
        "free-form": construct_prompt_freeform,
        "multiple-choice": construct_prompt_multichoice,
    }
    for kind, prompt in prompts.items():
        entries = json.loads((data / f"{kind}.json").read_text())
        lines: list[bytes] = []
        for id, entry in entries.items():
            row = {
                **entry,
                "formated_input": prompt(entry),
                "id": id,
                "response": _response(kind, int(id)),
            }
            lines.append(msgspec.json.encode(row) + b"\n")
        name = "freeform" if kind == "free-form" else "multichoice"
        for model in range(models):
            place = Path(folder) / f"responses-{models}" / f"m{model}" / "mixeval" / VERSION
            place.mkdir(parents=True, exist_ok=True)
            (place / f"m{model}_close_{name}.jsonl").write_bytes(b"".join(lines))


def _response(kind: str, number: int) -> str:
    if kind == "free-form":
        return f"It is well known that the answer is {_WORDS[number % 10]} {number}."
    letter = "ABCD"[number * 3 % 4]
    return (
        letter,
        f"**{letter}**",
        f"The answer is ({letter}), because of the rest.",
        f"{letter}. garden",
    )[number % 4]


def score(folder: str, models: int, parser: str) -> float:
    """Seconds for the whole command on new folders: reading, checking, scoring, aggregating, writing all files."""
    from assay.formats.mixeval.experiment import MixEvalScore
    from assay.formats.mixeval.plans import MixEvalOptions
    from assay.threads import run_blocking

    with tempfile.TemporaryDirectory(dir=folder) as output:
        options = MixEvalOptions(
            data=f"{folder}/data",
            version=VERSION,
            output_dir=output,
            multi_choice_parser=parser,
        )
        began = time.perf_counter()
        result = run_blocking(MixEvalScore([f"{folder}/responses-{models}"], options).run)
        seconds = time.perf_counter() - began
    assert len(result.scored[0].scores) == models
    assert not result.problems
    return seconds


def bare_pass(folder: str, models: int, parser: str) -> float:
    """Read and decode every response and write as many rows as the command does: a response and an evaluation, and a
    verdict of the original's form where the compatible parser gives it; no data, no checks, no parser, no care for a crash."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    began = time.perf_counter()
    with ExitStack() as stack:
        files = [
            stack.enter_context((Path(folder) / f"bare-{number}.jsonl").open("wb"))
            for number in range(3)
        ]
        for path in sorted((Path(folder) / f"responses-{models}").rglob("*.jsonl")):
            for line in stack.enter_context(path.open("rb")):
                row = decode(line)
                id, name, now = row["id"], path.stem, time.time()
                prompt, answer = row["formated_input"], row["response"]
                answered = Response(
                    item_id=id, model_name=name, prompt=prompt, response=answer, timestamp=now
                )
                files[0].write(encode(answered) + b"\n")
                scored = Evaluation(
                    item_id=id, label=parser, model_name=name, passed=True, score=1.0, timestamp=now
                )
                files[1].write(encode(scored) + b"\n")
                if parser == "rule-compat" or "options" not in row:
                    files[2].write(
                        encode({**row, "parsed_result": "A", "eval_result": True}) + b"\n"
                    )
    return time.perf_counter() - began


def mixeval_scoring() -> list[Line]:
    """The whole command on five models; alternating, best of three each."""
    rows = 5 * 2 * ENTRIES
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        write_responses(folder, 5)
        for parser in ("rule", "rule-compat"):
            pairs = [
                (child(score, folder, 5, parser), child(bare_pass, folder, 5, parser))
                for _ in range(3)
            ]
            ours, bare = (
                min(one["result"] for one, _ in pairs),
                min(one["result"] for _, one in pairs),
            )
            detail = f"{rows / ours:,.0f} responses/s; bare {rows / bare:,.0f}/s"
            lines.append(
                Line(
                    f"mixeval score --multi-choice-parser {parser}, {rows:,} responses / bare pass",
                    ours / bare,
                    "<=",
                    15,
                    detail,
                )
            )
    return lines


def mixeval_memory(models: int = 30) -> list[Line]:
    """Ten times the responses in the same room."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        peaks: list[float] = []
        for count in (models // 10, models):
            write_responses(folder, count)
            peaks.append(child(score, folder, count, "rule-compat")["peak"])
    rows = models * 2 * ENTRIES
    what = f"mixeval score: peak memory, {rows:,} responses / {rows // 10:,}"
    return [Line(what, peaks[1] / peaks[0], "<=", 1.25, f"{peaks[1]:.0f} MB / {peaks[0]:.0f} MB")]


def mixeval_start() -> list[Line]:
    assay = str(Path(sys.executable).with_name("assay"))
    plain, ours = _fastest([assay, "--help"]), _fastest([assay, "mixeval", "--help"])
    detail = f"{ours * 1000:.0f} ms / {plain * 1000:.0f} ms"
    return [Line("assay mixeval --help / assay --help", ours / plain, "<=", 1.5, detail)]


BENCHMARKS = [mixeval_scoring, mixeval_memory, mixeval_start]
