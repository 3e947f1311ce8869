"""Rows as pages show them: numbers from the index, beginnings of texts from the rows themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from assay.viewer.index.columns import COLUMNS, Column, columns_about, expressions
from assay.viewer.index.index import Index, Part
from assay.viewer.query import View, facets_of, view
from assay.viewer.tags import tagged

LETTERS = 200  # of the beginning of a text
_ASKING = (*DEFAULT_FIELDS, "input", "query")
_MOST_CARRIED = 100  # labels of a row in a report
_AT_ONCE = 500  # rows
Shown = dict[str, Any]


def read_row(index: Index, row: int) -> Shown:
    """The response of a row, or what was judged where there are no responses; empty if it is gone."""
    kind = "evaluation" if index.judged else "run"
    query = "SELECT log, position FROM response WHERE id = ?"
    try:
        whole = decode_row(index.read(kind, *index.select(query, (row,))[0]))
    except (AssayError, IndexError):
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


def _texts(index: Index, item: str, response: Shown) -> tuple[str, str]:
    return question_of(index, item, response), answer_of(response)


def _named(columns: Sequence[Column], values: Sequence[Any]) -> Shown:
    return {column.name: column.json(value) for column, value in zip(columns, values, strict=True)}


def sample_rows(view: View, rows: IntArray) -> list[Shown]:
    """`SampleRow`s."""
    columns = [column for column in COLUMNS if column.shown]
    own = view.by_part(rows)
    items = [hash for part, ids in own for (hash,) in part.values(ids, ["r.hash"]).values()]
    with view.kinds(items) as kind:
        found = {part.id: part.values(ids, expressions(columns), kind) for part, ids in own}
    shown: list[Shown] = []
    for part, id in view.places(rows):
        response, row = read_row(part.index, id), _named(columns, found[part.id][id])
        question, answer = map(beginning, _texts(part.index, row["item"], response))
        row |= {"key": str(response.get("key") or ""), "question": question, "answer": answer}
        shown.append({"experiment": part.id, **row})
    return shown


def carried(
    experiments: Experiments, ids: Sequence[str], most: int | None = None
) -> Iterator[Shown]:
    """At most `most` `CarriedRow`s of these experiments, or of all: whole items, those that failed most often under
    any label first."""
    everything, _ = view(experiments, ids, "", wait=True)
    labelled = {label: everything.under(label) for label in everything.labels[:_MOST_CARRIED]}
    tags = {part.id: tagged(experiments, part.id, part.index) for part in everything.parts}
    facets = list(facets_of(everything))
    rows = _hardest(everything, labelled.values(), most)
    for start in range(0, len(rows), _AT_ONCE):
        chunk = rows[start : start + _AT_ONCE]
        found = {part.id: _carried(part, own, facets) for part, own in everything.by_part(chunk)}
        for label, own in labelled.items():
            _add_verdicts(own, chunk, label, found)
        for part, id in everything.places(chunk):
            response, row = read_row(part.index, id), found[part.id][id]
            question, answer = _texts(part.index, row["item"], response)
            yield {
                "experiment": part.id,
                **row,
                "key": str(response.get("key") or ""),
                "question": beginning(question),
                "answer": beginning(answer),
                "tags": tags[part.id].get(id, []),
                "text": f"{question}\n{answer}",
            }


def _carried(part: Part, ids: Sequence[int], facets: Sequence[str]) -> dict[int, Shown]:
    """Return what the index has of rows whatever the label is."""
    columns = columns_about("response")
    bound: list[Any] = []
    places = [part.find_facet(name, bound) or "NULL" for name in facets]
    rows: dict[int, Shown] = {}
    for id, values in part.values(ids, [*expressions(columns), *places], bound=bound).items():
        texts = zip(facets, values[len(columns) :], strict=True)
        rows[id] = _named(columns, values[: len(columns)]) | {
            "labels": {},
            "facets": {name: text for name, text in texts if text is not None},
        }
    return rows


def _add_verdicts(
    labelled: View, rows: IntArray, label: str, found: Mapping[str, dict[int, Shown]]
) -> None:
    columns = columns_about("label")
    for part, ids in labelled.by_part(rows):
        verdicts = part.values(ids, ["v.outcome", *expressions(columns)])
        for id, (outcome, *values) in verdicts.items():
            if outcome is not None:
                found[part.id][id]["labels"][label] = _named(columns, values)


def _hardest(view: View, labelled: Iterable[View], most: int | None) -> IntArray:
    """Return all rows of the items with the largest shares of failed rows, an item's failed rows first."""
    rows = view.numbers("r.outcome NOT IN ('ok', '')")
    failed = rows["v0"] > 0
    for own in labelled:
        failed |= np.isin(
            rows["row"], own.numbers(where="v.outcome <> 'scored' OR v.passed = 0")["row"]
        )
    _, first, item = np.unique(rows["hash"], return_index=True, return_inverse=True)
    share = np.bincount(item, weights=failed) / np.bincount(item)
    order = np.lexsort((~failed, first[item], -share[item]))
    ends = np.flatnonzero(np.diff(first[item][order], append=-1)) + 1
    whole = int(ends[ends <= most].max(initial=0)) if most is not None else len(order)
    return rows["row"][order[: whole or most]]
