"""What a reader of a comparison must know: data, scorers and models that differ between the sides, and the items whose
value changed."""

from collections.abc import Iterable, Sequence
from itertools import chain, starmap
from operator import methodcaller
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.measured import Matched, MeasuredSide
from assay.analysis.compare.paired import (
    Hashes,
    Side,
    SideRows,
    once,
    planned_scorers,
    sources_of,
)
from assay.engine.aggregate.join import cluster_hint
from assay.engine.aggregate.measure import cluster_lines
from assay.engine.experiment.sources import Source
from assay.sdk import JsonMapping, JsonObject, Mask
from assay.store.table.columns import ResponseRows
from assay.store.table.decode import read_rows
from assay.store.table.join import PLACE, Lookup, first_key


class _Served(msgspec.Struct):
    model_name: str = ""
    served_model: str | None = None
    served_fingerprint: str | None = None


def notes(sides: Sequence[Side], scorer: str, values: Sequence[MeasuredSide]) -> list[str]:
    """Return a line for each thing that differs and should not, and on items that belong
    together."""
    sources = sources_of(sides)
    first = values[0]
    clusters = cluster_lines([measure.row for measure in values])
    if not first.bound.cluster_by:
        columns = first.side.columns
        each = np.arange(len(columns.ids), dtype=np.int32)  # a row for each item is enough
        columns = msgspec.structs.replace(columns, item=each)
        clusters = cluster_hint(first.side.whole.sources, columns, first.items, first.own)
    return [*_datasets(sources), *_scorers(sources, scorer), *_served_notes(sources), *clusters]


def _datasets(sources: Sequence[Source]) -> Iterable[str]:
    digests = {source.name: once(source, _digest) for source in sources}
    if len(set(filter(None, digests.values()))) > 1:
        shown = ", ".join(f"{name} {digest[:12]}" for name, digest in digests.items() if digest)
        yield f"the datasets differ ({shown})"


def _digest(source: Source) -> str:
    manifest = source.manifest("dataset")
    return manifest.digest if manifest else ""


def _scorers(sources: Sequence[Source], scorer: str) -> Iterable[str]:
    planned = {source.name: once(source, planned_scorers).get(scorer) for source in sources}
    named = {
        name: (entry.get("identity", ""), msgspec.json.encode(entry.get("params")))
        for name, entry in planned.items()
        if entry is not None
    }
    if len(set(named.values())) > 1:
        yield f"the scorer {scorer!r} differs in code or parameters between {', '.join(named)}"


def _served_notes(sources: Sequence[Source]) -> Iterable[str]:
    """A model that is called the same must have been served the same, in all sources and within
    each."""
    by_model: dict[str, dict[str, None]] = {}
    for source in sources:
        for model, served in once(source, _served_in):
            by_model.setdefault(model, {})[served] = None
    for model, served in by_model.items():
        if len(served) > 1:
            yield f"the model {model!r} was served as {', '.join(served)}"


def _served_in(source: Source) -> list[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    for _, row in chain.from_iterable(read_rows(log, _Served) for log in source.logs("run")):
        if named := " ".join(filter(None, (row.served_model, row.served_fingerprint))):
            pairs.add((row.model_name, named))
    return sorted(pairs)


def unmatched_notes(pairs: Iterable[Any]) -> Iterable[str]:
    """Items that only one side of a pair has, or has a value of."""
    differing = [pair for pair in pairs if pair.failed or pair.only_candidate or pair.only_baseline]
    for pair in differing:
        yield (
            f"{pair.candidate} and {pair.baseline} share {pair.items:,} items; "
            f"{pair.failed:,} failed or were skipped on one side; "
            f"{pair.only_candidate:,} are only in {pair.candidate}, "
            f"{pair.only_baseline:,} only in {pair.baseline}"
        )
    if differing:
        yield "the standings are over the items that all sides share, if there are any"


class Flip(msgspec.Struct):
    """An item; a side's answer is one of its samples that shows the change, None where no response is stored."""

    item_id: str
    candidate: float
    baseline: float
    candidate_answer: str | None = None
    baseline_answer: str | None = None


def find_flips(match: Matched, count: int) -> list[Flip]:
    """The largest changes, losses before gains."""
    changed = np.flatnonzero(match.changes)
    gained = match.gains[changed] > 0
    size = np.abs(match.changes[changed])
    largest = changed[np.lexsort((match.items[changed], gained, -size))[:count]]
    rose = match.changes[largest] > 0
    names: list[str] = []
    values: list[list[float]] = []
    answers: list[list[str | None]] = []
    for measure, highest in ((match.candidate, rose), (match.baseline, ~rose)):
        rows = telling_rows(measure, match.items[largest], highest)
        names = [str(row["item_id"]) for row in rows]
        values.append(measure.own[largest].tolist())
        answers.append(_answers(measure.side, rows))
    return list(starmap(Flip, zip(names, *values, *answers, strict=True)))


def telling_rows(measure: MeasuredSide, items: Hashes, highest: Mask) -> list[JsonObject]:
    """For each item its sample with the highest or the lowest score; the first of them, if there
    are several."""
    side = measure.side
    columns = side.columns
    at = side.rows(measure.label)
    item = Lookup(items).first(columns.ids[columns.item[at]])
    at, item = at[item >= 0], item[item >= 0]
    outcome, _, score = side.whole.verdicts
    value = np.where(outcome[at] == 0, score[at], min(0.0, float(score.min(initial=0.0))))
    order = np.lexsort((columns.sample[at], np.where(highest[item], -value, value), item))
    first = np.unique(item[order], return_index=True)[1]
    return [side.row(place) for place in at[order][first].tolist()]


def _answers(side: Side, rows: Sequence[JsonObject]) -> list[str | None]:
    """Return the answers behind evaluation rows; None where no response is stored."""
    keys = [first_key(row.get("responses")) for row in rows]
    places = [list(map(methodcaller("get", name), rows)) for name in PLACE]
    responses = once(side.whole, _responses)
    found = responses.find(keys, places)
    return [None if at < 0 else answer_of(responses.table.row(at)) for at in found]


def _responses(whole: SideRows) -> ResponseRows:
    return ResponseRows(whole.source.logs("run"), {})


def answer_of(row: JsonMapping) -> str:
    """Return what a response shows as its answer."""
    if row.get("response"):
        return str(row["response"])
    if row.get("output") is not None:
        return msgspec.json.encode(row["output"]).decode()
    return f"error: {row['error']}" if row.get("error") else ""
