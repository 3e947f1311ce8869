"""The labels of a folder, given once more by its scorers."""

import os
from collections.abc import Mapping, Sequence, Set as AbstractSet
from functools import partial
from pathlib import Path

import msgspec

from assay.analysis.verify.replay import NOT_LOGGED, Bench, Replay, no_network
from assay.analysis.verify.rows import Computed, RowVerdict, StoredRows, compare_rows
from assay.config import Config, environment
from assay.engine.calls.executor import Shared
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.experiment import bind
from assay.engine.experiment.experiment import Options
from assay.engine.experiment.models import StandIn
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import ConfigSource, config_of
from assay.sdk import (
    ROWS_FILE,
    AssayError,
    ConfigError,
    JsonObject,
    Kind,
    Limits,
    Manifest,
    Model,
    TransientError,
)
from assay.store.log import FileLog
from assay.store.repositories import DatasetRepository
from assay.threads import run_blocking

ADOPTED = "adopted"  # in the plan of rows that an import brought
_UNUSED: JsonObject = {"tasks": [], "dataset": None}


class Found(msgspec.Struct):
    """By scorer or metric what came of its rows."""

    verdicts: dict[str, RowVerdict] = {}
    notes: list[str] = []


def bench_of(folder: Path, config: ConfigSource | None) -> Bench:
    source = find_source(folder, foreign=False)
    loaded = config_of(config, source, "evaluate", _UNUSED)
    os.environ.update(environment(loaded, None))  # user code may read `.env` and `env_vars`
    return Bench(loaded, Options(output_dir=str(folder)), [source], names_dataset=False)


def reason_of(error: Exception) -> str:
    """An error in one line, with the way out."""
    first = error.problems[0] if isinstance(error, ConfigError) and error.problems else error
    if not isinstance(first, AssayError):
        return f"{type(first).__name__}: {first}"
    what = first.what.partition("\n")[0]
    return f"{what}: {first.fix}" if first.fix else what


def verify_labels(
    folder: Path,
    manifests: Mapping[Kind, Manifest],
    config: ConfigSource | None,
    bad: AbstractSet[str],
) -> Found:
    """`bad` are the files that are not as they were sealed."""
    manifest = manifests.get("evaluation")
    if manifest is None:
        return Found()
    identities = _planned_identities(manifest)
    names = [*identities]
    if ADOPTED in manifest.plan:
        return _without_verdicts(manifest, "foreign scorers", "labels of another program's scorers")
    try:
        bench = bench_of(folder, config)
        scorers, failed, models = _bind(bench.config, names)
        store = bench.show()
    except Exception as error:  # the config, its code and the rows are anybody's
        return _without_verdicts(manifest, ", ".join(names), reason_of(error))
    changed = [
        scorer.name for scorer in scorers if scorer.identity.hex() != identities[scorer.name]
    ]
    stored = StoredRows(FileLog(bench.sources[0].files["evaluation"]), names, keys=not changed)
    verdicts = {name: RowVerdict(stored=stored.counts[name]) for name in names}
    computed = Computed(stored)
    store.show("evaluation", bench.id, computed, None)
    failed |= _score(bench, store, scorers, models)
    whole = manifest.complete and "matches" not in manifest.plan and not failed
    lost = (
        "its response or item is damaged" if bad & {ROWS_FILE["run"], ROWS_FILE["dataset"]} else ""
    )
    compare_rows(computed, verdicts, failed, whole=whole, lost=lost)
    if repeated := computed.repeats():
        next(iter(verdicts.values())).differ += repeated
    notes = [
        f"{name} is not the scorer that gave the stored labels: its code or parameters changed"
        for name in changed
    ]
    return Found(verdicts, notes)


def _planned_identities(manifest: Manifest) -> JsonObject:
    """Return the scorers of the plan and their identities; a damaged plan may lack either."""
    planned: list[JsonObject] = manifest.plan.get("scorers") or []
    return {str(scorer.get("name")): scorer.get("identity") for scorer in planned}


def _without_verdicts(manifest: Manifest, name: str, reason: str) -> Found:
    rows = sum(count for outcome, count in manifest.counts.items() if outcome != "transient")
    verdict = RowVerdict(stored=rows)
    verdict.excuse(reason, rows)
    return Found({name: verdict} if rows else {})


def _bind(
    config: Config, names: Sequence[str]
) -> tuple[list[BoundScorer], dict[str, str], dict[str, Model]]:
    """The scorers of these names, and why some cannot be had."""
    failure = partial(TransientError, NOT_LOGGED)  # no panel takes it for a member's own
    models: dict[str, Model] = {
        entry.name: StandIn(config, entry, failure) for entry in config.models
    }
    scorers: list[BoundScorer] = []
    failed = dict.fromkeys(
        names, "the config has no scorer of this name: name one that has with -c"
    )
    for method in config.evaluation_methods:
        if method.name in failed:
            only = msgspec.structs.replace(config, evaluation_methods=[method])
            try:
                scorers += bind.bind_scorers(only, models)
                del failed[method.name]
            except AssayError as error:
                failed[method.name] = reason_of(error)
    return scorers, failed, models


def _score(
    bench: Bench, store: Replay, scorers: Sequence[BoundScorer], models: Mapping[str, Model]
) -> dict[str, str]:
    """Have the rows computed; by scorer why there are none. Where all together fail, each tries by itself."""
    if not scorers:
        return {}
    shared: Shared = {
        "models": models,
        "default_limits": Limits(max_retries=0),
        "seed": bench.config.seed,
        "datasets": DatasetRepository(store),
    }
    try:
        with no_network():
            run_blocking(lambda: bench.score(scorers, shared, store))
        return {}
    except Exception as error:  # user code, or a model that is not installed
        if len(scorers) == 1:
            return {scorers[0].name: reason_of(error)}
    failed: dict[str, str] = {}
    for scorer in scorers:
        failed |= _score(bench, store, [scorer], models)
    return failed
