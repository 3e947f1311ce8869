"""What a reader of a comparison must know about how the sides came about: data, scorers and models that differ."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from assay.analysis.compare.paired import Side
from assay.engine.experiment.sources import Source
from assay.interfaces import Log
from assay.store.repair import open_rows


class _Served(msgspec.Struct):
    model_name: str = ""
    served_model: str | None = None
    served_fingerprint: str | None = None


def notes(sides: Sequence[Side], scorer: str) -> list[str]:
    """One line for each thing that differs and should not."""
    sources = list({id(side.source): side.source for side in sides}.values())
    return [*_datasets(sources), *_scorers(sources, scorer), *_served(sources)]


def _datasets(sources: Sequence[Source]) -> Iterable[str]:
    manifests = [(source.name, source.manifest("dataset")) for source in sources]
    digests = [(name, manifest.digest) for name, manifest in manifests if manifest is not None]
    if len({digest for _, digest in digests}) > 1:
        shown = ", ".join(f"{name} {digest[:12]}" for name, digest in digests)
        yield f"the datasets differ ({shown}); items are matched by id"


def _scorers(sources: Sequence[Source], scorer: str) -> Iterable[str]:
    identities: dict[str, str] = {}
    for source in sources:
        manifest = source.manifest("evaluation")
        plan = manifest.plan if manifest else {}
        for entry in cast("list[dict[str, Any]]", plan.get("scorers") or []):
            if entry.get("name") == scorer:
                identities[source.name] = f"{entry.get('identity', '')}{msgspec.json.encode(entry.get('params'))}"
    if len(set(identities.values())) > 1:
        yield f"the scorer {scorer!r} differs in code or parameters between {', '.join(identities)}"


def _served(sources: Sequence[Source]) -> Iterable[str]:
    """A model that is called the same must have been served the same, in all sources and within each."""
    by_model: dict[str, dict[str, None]] = {}
    for source in sources:
        for model, served in sorted({pair for log in source.logs("run") for pair in _served_in(log)}):
            by_model.setdefault(model, {})[served] = None
    for model, served in by_model.items():
        if len(served) > 1:
            yield f"the model {model!r} was served as {', '.join(served)}"


def _served_in(log: Log) -> Iterable[tuple[str, str]]:
    for _, row in open_rows(log, None, msgspec.json.Decoder(_Served).decode):
        named = [part for part in (row.served_model, row.served_fingerprint) if part]
        if named:
            yield row.model_name, " ".join(named)


def unmatched(pairs: Iterable[Any]) -> Iterable[str]:
    """Items that only one side of a pair has."""
    for pair in pairs:
        if pair.only_candidate or pair.only_baseline:
            yield (
                f"{pair.candidate} and {pair.baseline} share {pair.items:,} items; "
                f"{pair.only_candidate:,} are only in {pair.candidate}, {pair.only_baseline:,} only in {pair.baseline}"
            )
