"""Rows as pages show them: numbers from the index, beginnings of texts from the rows themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assay.analysis.compare.notes import answer_of
from assay.sdk import AssayError, Codes, IntArray, JsonObject
from assay.store.items import decode_item
from assay.store.table.decode import decode_row
from assay.text.messages import messages_text
from assay.text.plain import plain
from assay.text.template import DEFAULT_FIELDS, question, variables
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import COLUMNS, Column, column_of, columns_about
from assay.viewer.index.index import Index
from assay.viewer.index.view import View, texts_at
from assay.viewer.query import facets_of, view
from assay.viewer.tags import tagged

LETTERS = 200  # of the beginning of a text
_ASKING = (*DEFAULT_FIELDS, "input", "query")
_MOST_CARRIED = 100  # labels of a row in a report
_AT_ONCE = 500  # rows


def read_row(index: Index, row: int) -> JsonObject:
    """Return the response of a row, or what was judged where there are no responses; empty if it is gone."""
    try:
        whole = decode_row(next(index.read_rows("run", [row] if row >= 0 else [])))
    except (AssayError, StopIteration):
        return {}
    return {"item_id": whole.get("item_id")} if index.judged else whole


def question_of(index: Index, item: str, response: JsonObject | None = None) -> str:
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


def sample_rows(view: View, rows: IntArray) -> list[JsonObject]:
    """Return `SampleRow`s."""
    columns = [column for column in COLUMNS if column.shown]
    return [{**own, **texts} for own, texts, _ in _read(view, rows, columns)]


def _read(
    view: View, rows: IntArray, columns: Sequence[Column]
) -> Iterator[tuple[JsonObject, JsonObject, str]]:
    """Yield rows with these columns, each with its key and the beginnings of its texts, and its
    whole texts."""
    for row, own in zip(rows.tolist(), view.values(columns, rows), strict=True):
        part, id = view.place(row)
        response = read_row(part.index, id)
        asked, answer = question_of(part.index, own["item"], response), answer_of(response)
        texts = {"question": beginning(asked), "answer": beginning(answer)}
        key = str(response.get("key") or "")
        yield {"experiment": part.id, **own}, {"key": key, **texts}, f"{asked}\n{answer}"


def carried(
    experiments: Experiments, ids: Sequence[str], most: int | None = None
) -> Iterator[JsonObject]:
    """Yield at most `most` `CarriedRow`s of these experiments, or of all: whole items, those that failed most often
    under any label first."""
    everything, _ = view(experiments, ids, "", wait=True)
    labelled = {label: everything.under(label) for label in everything.labels[:_MOST_CARRIED]}
    tags = {part.id: tagged(experiments, part.id, part.index) for part in everything.parts}
    facets = {name: everything.facet(name) for name in facets_of(everything)}
    rows = _hardest(everything, labelled.values(), most)
    for start in range(0, len(rows), _AT_ONCE):
        chunk = rows[start : start + _AT_ONCE]
        read = _read(everything, chunk, columns_about("response"))
        shown = zip(chunk.tolist(), read, _judged(chunk, labelled, facets), strict=True)
        for row, (own, beginnings, text), judged in shown:
            part, id = everything.place(row)
            yield {
                **own,
                **judged,
                **beginnings,
                "tags": tags[part.id].get(id, []),
                "text": text,
            }


def _judged(
    rows: IntArray,
    labelled: Mapping[str, View],
    facets: Mapping[str, tuple[Codes, list[str]] | None],
) -> Iterator[JsonObject]:
    """Yield the verdicts and the facets of rows."""
    verdicts = {label: _verdicts(own, rows) for label, own in labelled.items()}
    coded = {name: texts_at(*own, rows) for name, own in facets.items() if own}
    labels, texts = (_by_row(named, len(rows)) for named in (verdicts, coded))
    return ({"labels": own, "facets": values} for own, values in zip(labels, texts, strict=True))


def _by_row(named: Mapping[str, Sequence[Any]], rows: int) -> list[JsonObject]:
    """Return what each row has of these values, which are by names."""
    found: list[JsonObject] = [{} for _ in range(rows)]
    for name, values in named.items():
        for own, value in zip(found, values, strict=True):
            if value is not None:
                own[name] = value
    return found


def _verdicts(labelled: View, rows: IntArray) -> list[JsonObject | None]:
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
