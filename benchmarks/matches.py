"""Relative evaluation against absolute evaluation of the same rows: two stored runs of 100,000 items."""

import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from assay.records import Response
from benchmarks.measure import Line, child

ITEMS = 100_000
PLAYERS = ("large", "small")


def write_runs(folder: str) -> None:
    """Two finished runs over one dataset, with the metadata that prompts leave."""
    import assay

    store = assay.FolderStore(folder)
    rows = [
        {
            "id": f"item-{i}",
            "data": {"question": f"{i} + 1"},
            "ground_truth": {"answer": str(i + 1)},
        }
        for i in range(ITEMS)
    ]
    assay.DatasetRepository(store).create(rows, name="d", id="d")

    def answer(data: dict[str, str]) -> str:
        return str(int(data["question"].split()[0]) + 1)

    encode, decode = msgspec.json.encode, msgspec.json.Decoder(Response).decode
    for player in PLAYERS:
        assay.Runner(store).run("d", [assay.function_task(answer, name=player)], id=player)
        path = store.directory("run", player) / "responses.jsonl"
        sampling = {"temperature": 0.7, "max_tokens": 64}
        lines: list[bytes] = []
        for line in path.read_bytes().splitlines():
            row = decode(line)
            row.model_name = player
            row.metadata = {"model_id": player, "prompt_template": "plain", "sampling": sampling}
            lines.append(encode(row) + b"\n")
        path.write_bytes(b"".join(lines))


def absolute(item: Any, response: Any) -> float:
    return 1.0


def relative(item: Any, first: Any, second: Any) -> float:
    return 0.5


def evaluate(folder: str, kind: str) -> float:
    import assay

    store = assay.FolderStore(folder)
    scorer = assay.bind_scorer({"absolute": absolute, "relative": relative}[kind])
    began = time.perf_counter()
    done = assay.Evaluator(store).evaluate(PLAYERS, [scorer], id=kind)
    seconds = time.perf_counter() - began
    assert done.counts == {"scored": 2 * ITEMS}, (
        "a row for each response; a row for each pair and seat"
    )
    store.delete("evaluation", kind)
    return seconds


def matches() -> list[Line]:
    """Alternating, best of two each."""
    seconds: dict[str, list[float]] = {"absolute": [], "relative": []}
    peak = 0.0
    with tempfile.TemporaryDirectory() as root:
        folder = str(Path(root) / "repository")
        child(write_runs, folder)
        for _ in range(2):
            for kind, taken in seconds.items():
                measured = child(evaluate, folder, kind)
                taken.append(measured["result"])
                peak = max(peak, measured["peak"]) if kind == "relative" else peak
    best = {kind: min(taken) for kind, taken in seconds.items()}
    detail = f"{2 * ITEMS / best['relative']:,.0f} matches/s; absolute {2 * ITEMS / best['absolute']:,.0f} rows/s"
    return [
        Line(
            "matches of two runs of 100,000 / absolute",
            best["relative"] / best["absolute"],
            "<=",
            3,
            detail,
        ),
        Line("peak memory of these matches, MB", peak, "<=", 200),
    ]


BENCHMARKS = [matches]
