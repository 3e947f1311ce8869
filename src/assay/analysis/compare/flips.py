"""The items whose value changed between two sides, with an answer of each: the quickest way to see what changed."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.paired import Matched, Side
from assay.engine.aggregate.columns import decode_row
from assay.engine.aggregate.groups import verdicts

Place = tuple[str, str, int]


class Flip(msgspec.Struct, kw_only=True):
    """An item; a side's answer is one of its samples that shows the change, None where no response is stored."""

    item_id: str
    candidate: float
    baseline: float
    candidate_answer: str | None = None
    baseline_answer: str | None = None


def find_flips(candidate: Side, baseline: Side, match: Matched, label: str, count: int) -> list[Flip]:
    """The largest changes, losses before gains."""
    changes = match.changes
    changed = np.flatnonzero(changes)
    ordered = changed[np.lexsort((match.items[changed], changes[changed] > 0, -np.abs(changes[changed])))][:count]
    shown: list[tuple[Flip, dict[str, Any], dict[str, Any]]] = []
    for at in ordered.tolist():
        rose = bool(changes[at] > 0)
        first = _telling_row(candidate, label, match.items[at], highest=rose)
        second = _telling_row(baseline, label, match.items[at], highest=not rose)
        values = float(match.candidate.own[at]), float(match.baseline.own[at])
        shown.append((Flip(item_id=str(first["item_id"]), candidate=values[0], baseline=values[1]), first, second))
    answers = _answers(candidate, (row for _, row, _ in shown)), _answers(baseline, (row for *_, row in shown))
    for flip, first, second in shown:
        flip.candidate_answer, flip.baseline_answer = answers[0].get(_place(first)), answers[1].get(_place(second))
    return [flip for flip, _, _ in shown]


def _telling_row(side: Side, label: str, item: Any, *, highest: bool) -> dict[str, Any]:
    """The sample of an item with its highest or lowest score; the first of them, if there are several."""
    columns = side.columns
    at = side.rows(label)
    at = at[columns.ids[columns.item[at]] == item]
    outcome, _, score = verdicts(columns)
    value = np.where(outcome[at] == 0, score[at], min(0.0, float(score.min(initial=0.0))))
    return side.row(int(at[np.lexsort((columns.sample[at], -value if highest else value))[0]]))


def _place(row: dict[str, Any]) -> Place:
    """What finds the response of an evaluation row: its key; foreign rows have only where they stand."""
    keys = row.get("responses")
    if keys:
        return str(keys[0]), "", 0
    return str(row.get("item_id")), str(row.get("model_name")), int(row.get("sample_index") or 0)


def _answers(side: Side, rows: Iterable[dict[str, Any]]) -> dict[Place, str]:
    """The answers behind evaluation rows, found in one pass over the responses."""
    wanted = {_place(row) for row in rows}
    answers: dict[Place, str] = {}
    for log in side.source.logs("run") if wanted else ():
        for _, line in log.scan():
            if len(answers) == len(wanted):
                return answers
            if not line.strip():
                continue
            row = decode_row(line, str(side.source.path))
            stands: Place = (str(row.get("item_id")), str(row.get("model_name")), int(row.get("sample_index") or 0))
            for place in ((str(row.get("key") or ""), "", 0), stands):
                if place in wanted:
                    answers[place] = _answer(row)
    return answers


def _answer(row: dict[str, Any]) -> str:
    if row.get("response"):
        return str(row["response"])
    if row.get("output") is not None:
        return msgspec.json.encode(row["output"]).decode()
    return f"error: {row['error']}" if row.get("error") else ""
