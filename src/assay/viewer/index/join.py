"""The columns of one pass, after those that there were before: items numbered, labels joined to the answers."""

import numpy as np

from assay.interfaces import Codes, Hashes, IntArray, Mask
from assay.viewer.index.build import Arrays, Builder

Ints = IntArray
_TABLES = ("response", "evaluation")


def finished(builder: Builder, before: Arrays) -> Arrays:
    """All columns, by their names: `response.…`, `evaluation.…`, `item.…`, `facet:…` of responses, `item_facet:…`."""
    judged = not len(builder.responses["item"]) and (
        "judged" in before or not len(before.get("response.item", ()))
    )
    arrays = _numbered(builder, before)
    rows = len(builder.responses["item"])
    earlier = 0 if judged else len(before.get("response.item", ()))
    for table, columns in (("response", builder.responses), ("evaluation", builder.evaluations)):
        for name, column in columns.items():
            if name != "item":
                arrays[f"{table}.{name}"] = np.frombuffer(column, column.typecode)
        for name in columns if table == "evaluation" or not judged else ():
            old = before.get(f"{table}.{name}")
            if old is not None:
                arrays[f"{table}.{name}"] = np.concatenate([old, arrays[f"{table}.{name}"]])
    for name, (_, codes) in builder.facets.names.items():
        old = before.get(f"facet:{name}", np.full(earlier, -1, np.int32))
        new = np.frombuffer(codes, np.int32) if len(codes) else np.full(rows, -1, np.int32)
        arrays[f"facet:{name}"] = np.concatenate([old, new])
    if judged:
        matches = np.array([match for *_, match in builder.combinations], np.bool_)
        arrays |= _only_judged(arrays, np.flatnonzero(~matches[arrays["evaluation.combination"]]))
    elif earlier:
        arrays = _without_repeats(arrays, earlier)
    return arrays | _joined(arrays)


def _numbered(builder: Builder, before: Arrays) -> Arrays:
    """Items in the order in which they first appear; `ids` holds their texts one after the other."""
    columns = builder.responses["item"], builder.evaluations["item"], builder.items["hash"]
    hashes = [np.frombuffer(column, np.uint64) for column in columns]
    known = before.get("item.hash", np.zeros(0, np.uint64))
    everything = np.concatenate([known, *hashes])
    distinct, first, inverse = np.unique(everything, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    rows = number[inverse[len(known) :]]
    arrays: Arrays = {"item.hash": distinct[order]}
    split = np.cumsum([len(column) for column in hashes])
    arrays["response.item"], arrays["evaluation.item"] = rows[: split[0]], rows[split[0] : split[1]]
    return (
        arrays
        | _texts(builder, before, distinct, number)
        | _dataset(builder, before, rows[split[1] :], len(order))
    )


def _place(sorted_hashes: Hashes, hashes: Hashes) -> tuple[Ints, Mask]:
    if not len(sorted_hashes):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(sorted_hashes, hashes).clip(max=len(sorted_hashes) - 1)
    return at, sorted_hashes[at] == hashes


def _texts(
    builder: Builder,
    before: Arrays,
    distinct: Hashes,
    number: Codes,
) -> Arrays:
    blob = np.frombuffer(bytes(builder.ids.texts), np.uint8)
    ends = np.frombuffer(builder.ids.ends, np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    old = before.get("item.ids", np.zeros(0, np.uint8))
    start, end = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    at, known = _place(distinct, np.frombuffer(builder.ids.hashes, np.uint64))
    start[number[at[known]]], end[number[at[known]]] = (
        starts[known] + len(old),
        ends[known] + len(old),
    )
    count = len(before.get("item.hash", ()))
    if count:
        start[:count], end[:count] = before["item.start"], before["item.end"]
    return {"item.ids": np.concatenate([old, blob]), "item.start": start, "item.end": end}


def _dataset(builder: Builder, before: Arrays, rows: Codes, count: int) -> Arrays:
    """Where the items' own rows are, and their facets; -1 where the dataset lacks them."""
    own = {
        f"item.{name}": np.frombuffer(builder.items[name], np.int64) for name in ("log", "position")
    }
    own |= {
        f"item_facet:{name}": np.frombuffer(codes, np.int32)
        for name, (_, codes) in builder.item_facets.names.items()
    }
    arrays: Arrays = {}
    for name in {**own, **{name: None for name in before if name.startswith("item_facet:")}}:
        old, new = before.get(name), own.get(name)
        kind = np.int32 if name.startswith("item_facet:") else np.int64
        arrays[name] = column = np.full(count, -1, kind)
        if old is not None:
            column[: len(old)] = old
        if new is not None:
            column[rows] = new
    return arrays


def _only_judged(arrays: Arrays, labels: Ints) -> Arrays:
    """A row for each place that there are only labels of: an item, a sample and a model."""
    _, first = np.unique(_places(arrays, "evaluation")[labels], return_index=True)
    rows = labels[np.sort(first)]
    made: Arrays = {
        f"response.{name}": arrays[f"evaluation.{name}"][rows]
        for name in ("position", "log", "key", "item", "sample", "model")
    }
    count = len(rows)
    made["response.task"] = made["response.model"]
    made["response.outcome"] = np.zeros(count, np.int8)
    made["response.latency"], made["response.length"] = np.zeros(count), np.zeros(count, np.int32)
    made["response.tokens"], made["response.cost"] = np.full(count, np.nan), np.full(count, np.nan)
    return made | {"judged": np.ones(1, np.int8)}


def _places(arrays: Arrays, table: str) -> Ints:
    """A number for item, sample and model of each row, the same in both tables."""
    columns = {
        each: [arrays[f"{each}.{name}"].astype(np.int64) for name in ("item", "model", "sample")]
        for each in _TABLES
    }
    models, samples = (
        1 + max(int(column[at].max(initial=0)) for column in columns.values()) for at in (1, 2)
    )
    pairs = {each: item * models + model for each, (item, model, _) in columns.items()}
    numbers = np.searchsorted(np.unique(np.concatenate(list(pairs.values()))), pairs[table])
    return numbers * samples + columns[table][2]


def _without_repeats(arrays: Arrays, earlier: int) -> Arrays:
    """Rows that were appended and have the key of an earlier one do not count."""
    keys = arrays["response.key"]
    repeated = np.zeros(len(keys), np.bool_)
    repeated[earlier:] = np.isin(keys[earlier:], keys[:earlier]) & (keys[earlier:] != 0)
    if not repeated.any():
        return arrays
    own = ("response.", "facet:")
    return {
        name: column[~repeated] if name.startswith(own) else column
        for name, column in arrays.items()
    }


def _joined(arrays: Arrays) -> Arrays:
    """`evaluation.response`: the first row that each label is about, -1 where there is none; `response.same`: the first
    row of the same key, or, without keys, of the same place. Equal 64 bits of two items' keys are not taken for one."""
    item, key, wanted = arrays["response.item"], arrays["response.key"], arrays["evaluation.key"]
    found = np.full(len(wanted), -1, np.int64)
    same = np.arange(len(key))
    judged = "judged" in arrays
    if not judged:
        order = np.argsort(key, kind="stable")
        at, hit = _place(key[order], wanted)
        hit &= wanted != 0
        hit[hit] = item[order[at[hit]]] == arrays["evaluation.item"][hit]
        found[hit] = order[at[hit]]
        at, _ = _place(key[order], key)
        twin = (key != 0) & (item[order[at]] == item) if len(key) else key != 0
        same[twin] = order[at[twin]]
    unkeyed = np.flatnonzero(key == 0) if not judged else np.arange(len(key))
    loose = np.flatnonzero((found < 0) & ((wanted == 0) | bool(len(unkeyed)) | judged))
    if len(loose) or len(unkeyed):
        place, sought = _places(arrays, "response"), _places(arrays, "evaluation")
        for rows, labels in ((np.arange(len(key)), loose[wanted[loose] == 0]), (unkeyed, loose)):
            if len(rows) and len(labels):
                ordered = rows[np.argsort(place[rows], kind="stable")]
                at = np.searchsorted(place[ordered], sought[labels]).clip(max=len(ordered) - 1)
                hit = (place[ordered[at]] == sought[labels]) & (found[labels] < 0)
                found[labels[hit]] = ordered[at[hit]]
        if len(unkeyed):
            _, first, inverse = np.unique(place[unkeyed], return_index=True, return_inverse=True)
            same[unkeyed] = unkeyed[first[inverse]]
    return {"evaluation.response": found.astype(np.int32), "response.same": same.astype(np.int32)}
