"""Rows as pages show them: numbers from the index, beginnings of texts from the rows themselves."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from assay.analysis.compare.notes import answer_of
from assay.errors import StoreError
from assay.records import OUTCOMES
from assay.store.items import decode_item
from assay.text.messages import messages_text
from assay.text.plain import plain
from assay.text.template import DEFAULT_FIELDS, question, variables
from assay.viewer.experiments import Experiments
from assay.viewer.index.decode import RESPONSE_OUTCOMES, row_of
from assay.viewer.index.index import Index
from assay.viewer.query import Rows, View, facets_of, layers_of, view
from assay.viewer.tags import rows_at, tags_of

LETTERS = 200  # of the beginning of a text
_ASKING = (*DEFAULT_FIELDS, "input", "query")
_MOST_CARRIED = 100  # labels of a row in a report
Shown = dict[str, Any]


def read_row(index: Index, row: int) -> Shown:
    """The response of a row, or what was judged where there are no responses; empty if it is gone."""
    arrays = index.arrays
    kind = "evaluation" if index.judged else "run"
    try:
        line = index.read(
            kind, int(arrays["response.log"][row]), int(arrays["response.position"][row])
        )
    except StoreError:
        return {}
    whole = row_of(line) or {}
    return {"item_id": whole.get("item_id")} if index.judged else whole


def question_of(index: Index, item: int, response: Shown | None = None) -> str:
    """What an item asks by itself; what was sent, where the dataset does not have it."""
    position = int(index.arrays["item.position"][item])
    if position >= 0:
        try:
            line = index.read("dataset", int(index.arrays["item.log"][item]), position)
            fields = variables(decode_item(line))
            asked = next(
                (fields[name] for name in _ASKING if isinstance(fields.get(name), str)), ""
            )
            return asked or question(fields)
        except Exception:  # the file changed meanwhile, or was never ours
            pass
    if response is None:
        return ""
    messages = response.get("messages")
    return str(
        response.get("prompt") or (messages_text(messages) if isinstance(messages, list) else "")
    )


def beginning(text: str) -> str:
    return plain(text[:LETTERS])


def _common(id: str, index: Index, row: int, response: Shown) -> Shown:
    arrays = index.arrays
    number = {name: arrays[f"response.{name}"][row] for name in ("tokens", "cost", "latency")}
    tasks = index.coded.models if index.judged else index.coded.tasks
    return {
        "experiment": id,
        "item": index.item_id(int(arrays["response.item"][row])),
        "task": tasks[int(arrays["response.task"][row])],
        "model": index.coded.models[int(arrays["response.model"][row])],
        "sample": int(arrays["response.sample"][row]),
        "key": str(response.get("key") or ""),
        "outcome": "" if index.judged else RESPONSE_OUTCOMES[int(arrays["response.outcome"][row])],
        "latency": 0.0 if np.isnan(number["latency"]) else float(number["latency"]),
        "tokens": None if np.isnan(number["tokens"]) else int(number["tokens"]),
        "cost": None if np.isnan(number["cost"]) else float(number["cost"]),
        "length": int(arrays["response.length"][row]),
    }


def _verdict(outcome: Any, passed: Any, score: Any) -> Shown:
    return {
        "verdict": OUTCOMES[int(outcome)] if outcome >= 0 else "",
        "passed": None if passed < 0 else bool(passed),
        "score": None if np.isnan(score) else float(score),
    }


def sample_rows(view: View, rows: Rows) -> list[Shown]:
    """`SampleRow`s."""
    outcome, passed, score = view.verdicts
    shown: list[Shown] = []
    for row in rows.tolist():
        id, index, own = view.place(row)
        response = read_row(index, own)
        texts = {
            "question": beginning(
                question_of(index, int(index.arrays["response.item"][own]), response)
            ),
            "answer": beginning(answer_of(response)),
        }
        verdict = _verdict(outcome[row], passed[row], score[row])
        disagreement = {"disagreement": float(view.disagreement[view.item[row]])}
        shown.append({**_common(id, index, own, response), **verdict, **texts, **disagreement})
    return shown


def carried(
    experiments: Experiments, ids: Sequence[str], most: int | None = None
) -> Iterator[Shown]:
    """At most `most` `CarriedRow`s of these experiments, or of all: whole items, those that failed most often under
    any label first."""
    everything, _ = view(experiments, ids, "", wait=True)
    failed = everything.column("outcome") > 0
    labels = everything.labels[:_MOST_CARRIED]
    verdicts = {label: [index.verdicts(label) for _, index in everything.parts] for label in labels}
    for parts in verdicts.values():
        for part, (outcome, passed, _) in enumerate(parts):
            failed[everything.starts[part] : everything.starts[part + 1]] |= (outcome > 0) | (
                passed == 0
            )
    rows = _hardest(everything.item, failed, most)
    names = list(facets_of(everything))
    layers = [{name: layers_of(index, name) for name in names} for _, index in everything.parts]
    tags = [_tags_by_row(experiments, id, index) for id, index in everything.parts]
    for row in rows.tolist():
        part = int(np.searchsorted(everything.starts, row, side="right")) - 1
        id, index, own = everything.place(row)
        response = read_row(index, own)
        asked = question_of(index, int(index.arrays["response.item"][own]), response)
        answer = answer_of(response)
        judged = {
            label: tuple(column[own] for column in parts[part]) for label, parts in verdicts.items()
        }
        yield {
            **_common(id, index, own, response),
            "question": beginning(asked),
            "answer": beginning(answer),
            "labels": {
                label: _verdict(*verdict) for label, verdict in judged.items() if verdict[0] >= 0
            },
            "facets": {
                name: text
                for name in names
                if (text := _facet(layers[part][name], own)) is not None
            },
            "tags": tags[part].get(own, []),
            "text": f"{asked}\n{answer}",
        }


def _hardest(item: Rows, failed: Any, most: int | None) -> Rows:
    """All rows of the items with the largest shares of failed rows, an item's failed rows first."""
    share = np.bincount(item, weights=failed) / np.maximum(1, np.bincount(item))
    order = np.lexsort((~failed, item, -share[item]))
    ends = np.flatnonzero(np.diff(item[order], append=-1)) + 1
    whole = int(ends[ends <= most].max(initial=0)) if most is not None else len(order)
    return order[: whole or most]


def _facet(layers: Sequence[tuple[Any, list[str]]], row: int) -> str | None:
    return next((texts[int(codes[row])] for codes, texts in layers if codes[row] >= 0), None)


def _tags_by_row(experiments: Experiments, id: str, index: Index) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = {}
    for record in tags_of(experiments, id):
        if record.tags:
            for row in np.flatnonzero(rows_at(index, record)).tolist():
                tags[row] = sorted({*tags.get(row, ()), *record.tags})
    return tags
