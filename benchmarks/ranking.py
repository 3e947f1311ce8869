"""A ranking of many matches with its bootstrap, against one fit of the win matrix by scipy."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
from scipy.optimize import minimize

from assay.analysis.rank.rank import rank
from assay.stats.matches import Counted, Matches, counted
from assay.stats.ranking import bradley_terry
from benchmarks.measure import Line, child

MATCHES, PLAYERS, ITEMS, TIE = 1_000_000, 50, 10_000, 0.5


def ranking() -> list[Line]:
    """1,000,000 matches of 50 players, 1,000 rounds over 10,000 items: from columns to intervals and ranks.

    Both sides have one thread: on a busy machine, threads that wait for one another make either many times slower.
    """
    with mock.patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
        ours, scipys = child(fastest)["result"]
    detail = f"{ours * 1000:.0f} ms / {scipys * 1000:.2f} ms"
    line = Line(
        "ranking with 1,000 rounds / scipy's one fit, 1M matches", ours / scipys, "<=", 20, detail
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "evaluation_results.jsonl"
        _save(_matches(), path)
        size = path.stat().st_size / 1e6
        from_rows = child(ranked, str(path))
    detail = f"{from_rows['seconds']:.1f} s with reading {size:,.0f} MB of rows"
    return [line, Line("assay rank, 1M matches, peak MB", from_rows["peak"], "<=", 500, detail)]


def fastest() -> list[float]:
    """Seconds of a ranking and of scipy's fit."""
    matches = _matches()
    table = counted(matches)
    return [
        min(_seconds(lambda: bradley_terry(matches)) for _ in range(15)),
        min(_seconds(lambda: _fit(table)) for _ in range(30)),
    ]


def ranked(path: str) -> int:
    return rank([path]).matches


def _matches() -> Matches:
    random = np.random.default_rng(0)
    strengths = random.normal(0, 0.7, PLAYERS)
    one = random.integers(0, PLAYERS, MATCHES)
    other = (one + random.integers(1, PLAYERS, MATCHES)) % PLAYERS
    first, second = np.minimum(one, other).astype(np.int32), np.maximum(one, other).astype(np.int32)
    rise = np.exp((strengths[first] - strengths[second]) / 2)
    whole, drawn = rise + 1 / rise + TIE, random.random(MATCHES)
    half_points = np.where(
        drawn < rise / whole, 2, np.where(drawn < (rise + TIE) / whole, 1, 0)
    ).astype(np.int8)
    return Matches(
        random.integers(0, ITEMS, MATCHES, dtype=np.int32), first, second, half_points, PLAYERS
    )


def _fit(table: Counted) -> np.ndarray:
    """The same model's maximum, as one writes it down."""
    wins, ties, played = table.wins, table.ties, table.played
    points = wins.sum(axis=1) + ties.sum(axis=1) / 2

    def loss(place: np.ndarray) -> tuple[float, np.ndarray]:
        difference, log_tie = place[:-1, None] - place[None, :-1], place[-1]
        rise, tie = np.exp(difference / 2), np.exp(log_tie)
        whole = rise + 1 / rise + tie
        likelihood = (
            (wins * difference).sum() / 2
            + ties.sum() / 2 * log_tie
            - (played * np.log(whole)).sum() / 2
        )
        slope = points - (played * (rise + tie / 2) / whole).sum(axis=1)
        return -likelihood, -np.append(slope, (ties - played * tie / whole).sum() / 2)

    return minimize(loss, np.zeros(PLAYERS + 1), jac=True, method="L-BFGS-B").x


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _save(matches: Matches, path: Path) -> None:
    with path.open("w") as file:
        for number, (item, first, second, half_points) in enumerate(zip(*matches[:4], strict=True)):
            file.write(
                f'{{"item_id": "q{item}", "sample_id": "", "sample_index": {number}, "label": "better", '
                f'"model_name": "m{first:02} vs m{second:02}", "passed": null, "score": {half_points / 2}, '
                f'"detailed_results": {{"verdict": "first", "reason": "it answers what was asked"}}, '
                f'"evaluation_time": 0.1, "timestamp": 0.0, "metadata": {{}}, "key": "{number:016x}", "part": [0, 1], '
                f'"responses": ["{first:016x}", "{second:016x}"], "scorer": "better", "outcome": "scored", '
                f'"players": ["m{first:02}", "m{second:02}"], "seat": 0}}\n'
            )


BENCHMARKS = [ranking]
