"""`assay export --format every-eval-ever`: for each model and benchmark a record, and its samples beside it.

The folders and names are those of the project's datastore. The id in a file's name follows from the rows, so equal rows
give equal files.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import msgspec

from assay import registry
from assay.analysis.look.export import Export
from assay.engine.experiment.sources import Source
from assay.formats.every_eval_ever.results import MetricResult, measures_of, result_of, texts
from assay.formats.every_eval_ever.samples import InstanceRows, assign, lines
from assay.sdk import (
    JsonMapping,
    JsonObject,
    UserError,
    as_object,
    make_folder,
    rows_of,
    safe_name,
    store_error,
    writer,
)
from assay.store.ledger import check_replaceable, write_named

SCHEMA = "0.3.0"
_ARGUMENTS = ("temperature", "top_p", "top_k", "max_tokens")
Relationship = Literal["first_party", "third_party", "collaborative", "other"]
Pair = tuple[MetricResult, Iterable[int]]  # a result and the labels that it was made of


class About(msgspec.Struct):
    """What the rows do not say: who evaluated, and who made the model."""

    organization: str
    relationship: Relationship
    developer: str
    availability: str


@writer(name="every_eval_ever", whole="every_eval_ever")
def every_eval_ever(
    export: Export,
    *,
    organization: str = "unknown",
    relationship: Relationship = "other",
    developer: str = "",
    availability: Literal["open_weights", "closed_weights", "unknown"] = "unknown",
    samples: bool = True,
) -> list[str]:
    """Records of the Every Eval Ever schema 0.3.0 in a folder: one for each model and benchmark, with its samples.

    Parameters:
    organization: who evaluated
    relationship: what the evaluator is to the maker of the models
    developer: who made the models; by default what stands before the slash of a model's name
    availability: of the models' weights
    samples: write the file with a line for each sample and result, too
    """
    if export.path is None:
        raise UserError("every_eval_ever writes several files", fix="name a folder with -o")
    source = export.tables.source
    results = [
        MetricResult(row=row)
        for row in export.tables.rows("metrics")
        if isinstance(row.get("value"), (int, float))
    ]
    rows = InstanceRows(source, {name for result in results for name in result.facets})
    counted = assign(rows, results)
    about = About(organization, relationship, developer, availability)
    records: dict[tuple[str, str], list[Pair]] = {}
    for number, result in enumerate(results):
        if place := result.place():
            records.setdefault(place, []).append((result, counted.get(number, ())))
    for (model, benchmark), pairs in records.items():
        record = EvaluationRecord(source, about, model, benchmark, [result for result, _ in pairs])
        record.write(export.path, rows, pairs if samples else (), force=export.force)
    notes = [f"{len(records)} records of schema {SCHEMA} written to {export.path / 'data'}"]
    if left := len(results) - sum(map(len, records.values())):
        what = "metric rows are of several models and left out; add the facet model_name to them"
        notes.insert(0, f"{left} {what}")
    return notes


class EvaluationRecord:
    """The results of a model on a benchmark."""

    def __init__(
        self,
        source: Source,
        about: About,
        model: str,
        benchmark: str,
        results: Sequence[MetricResult],
    ) -> None:
        self._source = source
        self._about = about
        self._results = results
        plan = _plan(source, "run")
        self._tasks = {str(task.get("name")): task for task in rows_of(plan.get("tasks"))}
        self._dataset = as_object(_plan(source, "dataset").get("dataset"))
        self._name = benchmark or _dataset_name(self._dataset, source)
        self._model = self._model_info(model)
        made = [manifest for kind in ("run", "aggregation") if (manifest := source.manifest(kind))]
        self._times = [str(int(manifest.ended or manifest.started)) for manifest in made] or ["0"]
        content = msgspec.json.encode([result.row for result in results], order="sorted")
        digest = blake2b(content + model.encode(), digest_size=16).digest()
        self._uuid = str(UUID(bytes=digest, version=4))
        for result in results:
            result.set_name(self._name)

    def write(
        self, folder: Path, rows: InstanceRows, pairs: Iterable[Pair], *, force: bool
    ) -> None:
        """The record and, where there are pairs of a result and what it was made of, the samples."""
        developer, _, model = self._model["id"].partition("/")
        place = Path(
            "data", safe_name(self._name), safe_name(developer), safe_name(model.replace("/", "_"))
        )
        try:
            make_folder(folder / place)
        except OSError as error:
            raise store_error(error, folder / place) from error
        own, beside = place / f"{self._uuid}.json", place / f"{self._uuid}_samples.jsonl"
        check_replaceable(folder / own, force=force)
        record = self._record()
        written = _Hashed(
            line for result, counted in pairs for line in lines(rows, counted, self._link(result))
        )
        if first := next(written, None):
            write_named(folder / beside, chain([first], written), force=force)
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": str(beside),
                "hash_algorithm": "sha256",
                "checksum": written.digest.hexdigest(),
                "total_rows": written.count,
            }
        write_named(
            folder / own, msgspec.json.format(msgspec.json.encode(record)) + b"\n", force=force
        )

    def _link(self, result: MetricResult) -> dict[str, str]:
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id(),
            "model_id": self._model["id"],
            "evaluation_name": result.name,
            "evaluation_result_id": result.id,
        }

    def _id(self) -> str:
        return f"{self._name}/{self._model['id']}/{self._times[-1]}"

    def _record(self) -> JsonObject:
        from assay import __version__

        measures = measures_of(self._source, self._results)
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id(),
            "evaluation_timestamp": self._times[0],
            "retrieved_timestamp": self._times[-1],
            "source_metadata": {
                "source_name": self._source.name,
                "source_type": "evaluation_run",
                "source_organization_name": self._about.organization,
                "evaluator_relationship": self._about.relationship,
            },
            "eval_library": {"name": "assay", "version": __version__},
            "model_info": self._model,
            "evaluation_results": [
                result_of(
                    result, measure, self._source_data(), self._generation(result), self._times[0]
                )
                for result, measure in zip(self._results, measures, strict=True)
            ],
        }

    def _source_data(self) -> JsonObject:
        manifest = self._source.manifest("dataset")
        revision = self._dataset.get("revision") or None
        details = texts({"digest": manifest.digest, "revision": revision}) if manifest else {}
        data: JsonObject = {"dataset_name": self._name, "source_type": "other"}
        data["additional_details"] = details
        params: JsonObject = self._dataset.get("params") or {}
        name = (
            self._dataset.get("name")
            if self._dataset.get("type") == "hf"
            else params.get("repository")
        )
        if name:
            data |= {"source_type": "hf_dataset", "hf_repo": str(name)}
            data["samples_number"] = manifest.counts.get("items", 0) if manifest else 0
        return data

    def _generation(self, result: MetricResult) -> JsonObject:
        """The settings that all tasks behind a result share."""
        settings = [self._settings(self._tasks.get(task, {})) for task in sorted(result.tasks)]
        shared = {
            key: value
            for key, value in (settings or [{}])[0].items()
            if all(s.get(key) == value for s in settings)
        }
        prompt = shared.pop("prompt", None)
        arguments: JsonObject = {
            name: shared.pop(name)
            for name in _ARGUMENTS
            if isinstance(shared.get(name), (int, float))
        }
        if isinstance(prompt, str):
            arguments["prompt_template"] = prompt
        return {"generation_args": arguments, "additional_details": texts(shared)}

    @staticmethod
    def _settings(task: JsonMapping) -> JsonObject:
        identity: JsonObject = task.get("identity") or {}
        sampling: JsonObject = (task.get("facets") or {}).get("sampling") or {}
        return {**sampling, **(identity.get("params") or {}), "prompt": identity.get("prompt")}

    def _model_id(self, name: str) -> str:
        """Return `developer/model`; of a path only its last part is the model."""
        id = name if "/" in name.strip("/") and not name.startswith(("/", ".")) else Path(name).name
        if self._about.developer or "/" not in id:
            id = f"{self._about.developer or 'unknown'}/{id.rpartition('/')[2]}"
        return id

    def _model_info(self, model: str) -> JsonObject:
        models = [
            as_object(task.get("identity")).get("model")
            for task in self._tasks.values()
            if as_object(task.get("facets")).get("model_id") == model
        ]
        identity = next(iter(rows_of(models)), {})
        kind = str(identity.get("type") or "unknown")
        id = self._model_id(str(identity.get("model_name") or identity.get("model") or model))
        is_local = registry.model.marks(kind).get("local")
        details = {
            "deployment_type": "self_deployed" if is_local else "unknown",
            "model_availability": self._about.availability,
            **texts({"revision": identity.get("revision")}),
        }
        own: JsonObject = {
            "name": model,
            "id": id,
            "developer": id.partition("/")[0],
            "additional_details": details,
        }
        if is_local:
            return own | {"inference_engine": {"name": kind}}
        return own | {"inference_platform": kind}


def _plan(source: Source, kind: Any) -> JsonObject:
    manifest = source.manifest(kind)
    return manifest.plan if manifest else {}


def _dataset_name(dataset: JsonObject, source: Source) -> str:
    path = dataset.get("path")
    return (
        str(dataset.get("name") or "")
        or (Path(path).stem if isinstance(path, str) and path else "")
        or source.name
    )


class _Hashed:
    """Lines on their way to a file: how many, and their checksum."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self.count = 0
        self.digest = sha256()

    def __iter__(self) -> "_Hashed":
        return self

    def __next__(self) -> bytes:
        line = next(self._lines)
        self.count += 1
        self.digest.update(line)
        return line
