"""What is exported and imported again is the same: items, responses and evaluations, field by field."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from assay.engine.experiment.imports.results import import_results
from assay.records import Evaluation, Response
from assay.store.items import encode_item, normalise
from tests.formats.ragicamp.test_export import export

texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(
    texts | st.sampled_from(["question", "id", "answer", "metrics"]), values, max_size=3
)
scores = st.none() | st.floats(-1, 1)


@st.composite
def experiments(draw: st.DrawFn) -> tuple[list[Any], list[Response], list[Evaluation]]:
    ids = draw(st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True))
    items = [
        normalise(
            {
                "id": id,
                "data": draw(values | objects),
                "ground_truth": draw(values),
                "metadata": draw(objects),
            }
        )
        for id in ids
    ]
    responses: list[Response] = []
    evaluations: list[Evaluation] = []
    cells = st.tuples(texts, st.none() | texts.filter(bool), texts, st.integers(0, 3))
    for model, template, task, sample in draw(st.lists(cells, min_size=1, max_size=4, unique=True)):
        for id in draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)):
            key = f"{len(responses):032x}"
            metadata = {
                **draw(objects),
                **({} if template is None else {"prompt_template": template}),
            }
            metadata = (
                metadata
                if template is not None
                else {k: v for k, v in metadata.items() if k != "prompt_template"}
            )
            response = Response(
                item_id=id,
                sample_id=draw(texts),
                sample_index=sample,
                total_samples=draw(st.integers(1, 4)),
                model_name=model,
                prompt=draw(texts),
                response=draw(texts | st.just("[ERROR: text]")),
                timestamp=draw(st.floats(0, 2e9)),
                metadata=metadata,
                error=draw(st.none() | texts),
                key=key,
                task=task,
                outcome=draw(st.sampled_from(["ok", "refused", "errored", "skipped"])),
                error_kind=draw(st.sampled_from([None, "transient", "permanent"])),
                output=draw(values),
                cost=draw(scores),
            )
            responses.append(response)
            for label in draw(st.lists(texts, max_size=2, unique=True)):
                evaluations.append(draw(evaluation_of(response, label, len(evaluations))))
    return items, responses, evaluations


@st.composite
def evaluation_of(draw: st.DrawFn, response: Response, label: str, number: int) -> Evaluation:
    return Evaluation(
        item_id=response.item_id,
        sample_id=response.sample_id,
        sample_index=response.sample_index,
        label=label,
        model_name=response.model_name,
        passed=draw(st.none() | st.booleans()),
        score=draw(scores),
        detailed_results=draw(objects),
        metadata=draw(st.just(response.metadata) | objects),
        key=f"{number:032x}",
        part=draw(st.sampled_from([(0, 1), (1, 3)])),
        responses=[response.key],
        scorer=draw(st.sampled_from(["a", "b"])),
        outcome=draw(st.sampled_from(["scored", "unparsed", "refused", "errored", "skipped"])),
        error=draw(st.none() | texts),
        value=draw(values),
    )


def stored(folder: Path, name: str) -> list[Any]:
    path = folder / name
    rows = [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
    return rows if name == "items.jsonl" else sorted(rows, key=lambda row: row["key"])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_export_then_import_is_the_same(
    experiment: tuple[list[Any], list[Response], list[Evaluation]],
) -> None:
    items, responses, evaluations = experiment
    with TemporaryDirectory() as temporary:
        source, files, back = (Path(temporary, name) for name in ("source", "files", "back"))
        source.mkdir()
        (source / "items.jsonl").write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
        for name, rows in (
            ("responses.jsonl", responses),
            ("evaluation_results.jsonl", evaluations),
        ):
            (source / name).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        export(source, files, extras=True)
        (found,) = import_results(files, back)
        assert [note for note in found.notes if "no prediction" not in note] == []
        for name in ("items.jsonl", "responses.jsonl", "evaluation_results.jsonl"):
            assert stored(back, name) == stored(source, name)
