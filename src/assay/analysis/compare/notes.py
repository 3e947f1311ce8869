"""What a reader of a comparison must know: data, scorers and models that differ between the sides, and the items whose
value changed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np

from assay.analysis.compare.measured import Matched, Measured
from assay.analysis.compare.paired import Hashes, Side
from assay.engine.aggregate.groups import verdicts
from assay.engine.aggregate.join import cluster_hint
from assay.engine.aggregate.measure import cluster_lines
from assay.engine.experiment.sources import Source
from assay.interfaces import Log, Mask
from assay.store.table.decode import decode_row, read_rows


class _Served(msgspec.Struct):
    model_name: str = ""
    served_model: str | None = None
    served_fingerprint: str | None = None


def notes(sides: Sequence[Side], scorer: str, values: Sequence[Measured]) -> list[str]:
    """Return a line for each thing that differs and should not, and on items that belong together."""
    sources = list({id(side.source): side.source for side in sides}.values())
    first = values[0]
    clusters = cluster_lines([measure.row for measure in values])
    if not first.bound.cluster_by:
        clusters = cluster_hint(
            first.side.whole.sources, first.side.columns, first.items, first.own
        )
    return [*_datasets(sources), *_scorers(sources, scorer), *_served(sources), *clusters]


def _datasets(sources: Sequence[Source]) -> Iterable[str]:
    manifests = [(source.name, source.manifest("dataset")) for source in sources]
    digests = [(name, manifest.digest) for name, manifest in manifests if manifest is not None]
    if len({digest for _, digest in digests}) > 1:
        shown = ", ".join(f"{name} {digest[:12]}" for name, digest in digests)
        yield f"the datasets differ ({shown})"


def _scorers(sources: Sequence[Source], scorer: str) -> Iterable[str]:
    identities: dict[str, str] = {}
    for source in sources:
        manifest = source.manifest("evaluation")
        plan = manifest.plan if manifest else {}
        for entry in cast("list[dict[str, Any]]", plan.get("scorers") or []):
            if entry.get("name") == scorer:
                identities[source.name] = (
                    f"{entry.get('identity', '')}{msgspec.json.encode(entry.get('params'))}"
                )
    if len(set(identities.values())) > 1:
        yield f"the scorer {scorer!r} differs in code or parameters between {', '.join(identities)}"


def _served(sources: Sequence[Source]) -> Iterable[str]:
    """A model that is called the same must have been served the same, in all sources and within each."""
    by_model: dict[str, dict[str, None]] = {}
    for source in sources:
        if "served" not in source.facts:
            source.facts["served"] = sorted(
                {pair for log in source.logs("run") for pair in _served_in(log)}
            )
        for model, served in source.facts["served"]:
            by_model.setdefault(model, {})[served] = None
    for model, served in by_model.items():
        if len(served) > 1:
            yield f"the model {model!r} was served as {', '.join(served)}"


def _served_in(log: Log) -> Iterable[tuple[str, str]]:
    for _, row in read_rows(log, _Served):
        named = [part for part in (row.served_model, row.served_fingerprint) if part]
        if named:
            yield row.model_name, " ".join(named)


def unmatched(pairs: Iterable[Any]) -> Iterable[str]:
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


Place = tuple[str, str, int]


class Flip(msgspec.Struct, kw_only=True):
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
    sides: list[list[tuple[str, float, str | None]]] = []
    for measure, highest in ((match.candidate, rose), (match.baseline, ~rose)):
        rows = telling_rows(measure, match.items[largest], highest)
        answers = _answers(measure.side, rows)
        values = measure.own[largest].tolist()
        sides.append(
            [
                (str(row["item_id"]), value, answers.get(_place(row)))
                for row, value in zip(rows, values, strict=True)
            ]
        )
    return [
        Flip(
            item_id=item,
            candidate=value,
            baseline=before,
            candidate_answer=answer,
            baseline_answer=earlier,
        )
        for (item, value, answer), (_, before, earlier) in zip(*sides, strict=True)
    ]


def telling_rows(measure: Measured, items: Hashes, highest: Mask) -> list[dict[str, Any]]:
    """For each item its sample with the highest or the lowest score; the first of them, if there are several."""
    side = measure.side
    columns = measure.side.columns
    at = side.rows(measure.label)
    at = at[np.isin(columns.ids[columns.item[at]], items)]
    outcome, _, score = verdicts(columns)
    value = np.where(outcome[at] == 0, score[at], min(0.0, float(score.min(initial=0.0))))
    owner = columns.ids[columns.item[at]]
    sample = columns.sample[at]
    rows: list[dict[str, Any]] = []
    for item, sign in zip(items, np.where(highest, -1, 1), strict=True):
        own = np.flatnonzero(owner == item)
        first = own[np.lexsort((sample[own], sign * value[own]))[0]]
        rows.append(side.row(int(at[first])))
    return rows


def _place(row: dict[str, Any]) -> Place:
    """What finds the response of an evaluation row: its key; foreign rows have only where they stand."""
    keys = row.get("responses")
    if keys:
        return str(keys[0]), "", 0
    return _stands(row)


def _stands(row: dict[str, Any]) -> Place:
    """The place of a row without a key; rows of others may not number their samples."""
    sample = row.get("sample_index")
    return (
        str(row.get("item_id")),
        str(row.get("model_name")),
        sample if isinstance(sample, int) else 0,
    )


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
            for place in ((str(row.get("key") or ""), "", 0), _stands(row)):
                if place in wanted:
                    answers[place] = answer_of(row)
    return answers


def answer_of(row: Mapping[str, Any]) -> str:
    """What a response shows as its answer."""
    if row.get("response"):
        return str(row["response"])
    if row.get("output") is not None:
        return msgspec.json.encode(row["output"]).decode()
    return f"error: {row['error']}" if row.get("error") else ""
