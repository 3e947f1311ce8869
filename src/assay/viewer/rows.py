"""Rows as pages show them: numbers from the index, beginnings of texts from the rows themselves."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from assay.analysis.compare.notes import answer_of
from assay.errors import AssayError
from assay.interfaces import IntArray
from assay.store.items import decode_item
from assay.store.table.decode import decode_row
from assay.text.messages import messages_text
from assay.text.plain import plain
from assay.text.template import DEFAULT_FIELDS, question, variables
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import COLUMNS, Column, column_of, columns_about
from assay.viewer.index.index import Index
from assay.viewer.query import View, facets_of, texts_at, view
from assay.viewer.tags import tagged

LETTERS = 200  # of the beginning of a text
_ASKING = (*DEFAULT_FIELDS, "input", "query")
_MOST_CARRIED = 100  # labels of a row in a report
_AT_ONCE = 500  # rows
Shown = dict[str, Any]


def read_row(index: Index, row: int) -> Shown:
    """Return the response of a row, or what was judged where there are no responses; empty if it is gone."""
    try:
        whole = decode_row(next(index.read_rows("run", [row] if row >= 0 else [])))
    except (AssayError, StopIteration):
        return {}
    return {"item_id": whole.get("item_id")} if index.judged else whole


def question_of(index: Index, item: str, response: Shown | None = None) -> str:
    """What an item asks by itself; what was sent, where the dataset does not have it."""
    for line in index.lines_of("dataset", item):
        try:
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


def sample_rows(view: View, rows: IntArray) -> list[Shown]:
    """Return `SampleRow`s."""
    columns = [column for column in COLUMNS if column.shown]
    return [
        {**own, "key": key, "question": beginning(asked), "answer": beginning(answer)}
        for own, key, asked, answer in _read(view, rows, columns)
    ]


def _read(
    view: View, rows: IntArray, columns: Sequence[Column]
) -> Iterator[tuple[Shown, str, str, str]]:
    """Yield rows with these columns, each with its key, its question and its answer."""
    for row, own in zip(rows.tolist(), view.values(columns, rows), strict=True):
        part, id = view.place(row)
        response = read_row(part.index, id)
        key, asked = str(response.get("key") or ""), question_of(part.index, own["item"], response)
        yield {"experiment": part.id, **own}, key, asked, answer_of(response)


def carried(
    experiments: Experiments, ids: Sequence[str], most: int | None = None
) -> Iterator[Shown]:
    """Yield at most `most` `CarriedRow`s of these experiments, or of all: whole items, those that failed most often
    under any label first."""
    everything, _ = view(experiments, ids, "", wait=True)
    labelled = {label: everything.under(label) for label in everything.labels[:_MOST_CARRIED]}
    tags = {part.id: tagged(experiments, part.id, part.index) for part in everything.parts}
    facets = {name: everything.facet(name) for name in facets_of(everything)}
    rows = _hardest(everything, labelled.values(), most)
    for start in range(0, len(rows), _AT_ONCE):
        chunk = rows[start : start + _AT_ONCE]
        labels = [_present(label, _verdicts(own, chunk)) for label, own in labelled.items()]
        values = [_present(name, texts_at(*own, chunk)) for name, own in facets.items() if own]
        read = _read(everything, chunk, columns_about("response"))
        for at, (own, key, asked, answer) in enumerate(read):
            part, id = everything.place(int(chunk[at]))
            yield {
                **own,
                "labels": dict(chain.from_iterable(each[at] for each in labels)),
                "facets": dict(chain.from_iterable(each[at] for each in values)),
                "key": key,
                "question": beginning(asked),
                "answer": beginning(answer),
                "tags": tags[part.id].get(id, []),
                "text": f"{asked}\n{answer}",
            }


def _present(name: str, values: Sequence[Any]) -> list[list[tuple[str, Any]]]:
    """Return the values with their name, nothing of those that are not there."""
    return [[] if value is None else [(name, value)] for value in values]


def _verdicts(labelled: View, rows: IntArray) -> list[Shown | None]:
    """Return what a label says of rows."""
    there = (labelled.verdicts.outcome[rows] >= 0).tolist()
    values = labelled.values(columns_about("label"), rows)
    return [own if judged else None for judged, own in zip(there, values, strict=True)]


def _hardest(view: View, labelled: Iterable[View], most: int | None) -> IntArray:
    """Return all rows of the items with the largest shares of failed rows, an item's failed rows first."""
    codes, texts = view.texts(column_of("outcome"))
    failed = np.array([text not in ("ok", "") for text in [*texts, ""]])[codes]
    for own in labelled:
        failed |= (own.verdicts.outcome > 0) | (own.verdicts.passed == 0)
    first, item = view.items
    share = np.bincount(item, weights=failed) / np.bincount(item)
    order = np.lexsort((~failed, first[item], -share[item]))
    ends = np.flatnonzero(np.diff(first[item][order], append=-1)) + 1
    whole = int(ends[ends <= most].max(initial=0)) if most is not None else len(order)
    return order[: whole or most]
