"""Experiments of any content, and what a reader gives of the files that a writer made of them."""

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from assay import registry
from assay.api import export
from assay.foreign import Foreign, ForeignCase
from assay.records import Evaluation, Item, Response
from assay.store.items import decode_item, encode_item, normalise

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = texts.filter(lambda text: bool(text.strip()))
numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
FIELDS = [
    "question",
    "prompt",
    "id",
    "answer",
    "response",
    "error",
    "options",
    "context",
    "assay",
    "input",
    "target",
]
objects = st.dictionaries(texts | st.sampled_from(FIELDS), values, max_size=3)
scores = st.none() | st.floats(-1, 2)
choices = st.fixed_dictionaries(
    {"question": texts, "options": st.lists(texts, min_size=2, max_size=4)}
)
Rows = tuple[list[Item], list[Response], list[Evaluation]]


@st.composite
def experiments(draw: st.DrawFn) -> Rows:
    """Items with and without accepted answers, models, tasks and samples, every outcome, metadata at will."""
    plain = names | st.sampled_from(["free-form/1", "multiple-choice/1", "1", "a/b", "x.y"])
    ids = draw(st.lists(plain, min_size=1, max_size=4, unique=True))
    data = values | objects | choices
    truths = values | st.sampled_from([[0], "A", ["Oslo", "Kristiania"]])
    items = [
        normalise(
            {"id": id, "data": draw(data), "ground_truth": draw(truths), "metadata": draw(objects)}
        )
        for id in ids
    ]
    responses: list[Response] = []
    evaluations: list[Evaluation] = []
    addresses = st.tuples(texts, texts, st.integers(0, 2))
    for model, task, sample in draw(st.lists(addresses, min_size=1, max_size=3, unique=True)):
        for id in draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)):
            responses.append(draw(response_of(id, model, task, sample, len(responses))))
            for label in draw(
                st.lists(
                    texts | st.sampled_from(["error_message", "assay"]), max_size=2, unique=True
                )
            ):
                evaluations.append(draw(evaluation_of(responses[-1], label, len(evaluations))))
    return items, responses, evaluations


@st.composite
def response_of(
    draw: st.DrawFn, id: str, model: str, task: str, sample: int, number: int
) -> Response:
    return Response(
        item_id=id,
        sample_id=draw(texts),
        sample_index=sample,
        total_samples=draw(st.integers(1, 4)),
        model_name=model,
        prompt=draw(texts),
        response=draw(texts),
        timestamp=draw(st.floats(0, 2e9)),
        metadata={**draw(objects), "prompt_template": "t"},
        error=draw(st.none() | texts),
        key=f"{number:032x}",
        task=task,
        outcome=draw(st.sampled_from(["ok", "refused", "errored", "skipped"])),
        error_kind=draw(st.sampled_from([None, "transient", "permanent"])),
        output=draw(values),
        cost=draw(scores),
    )


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


def store(folder: Path, rows: Rows) -> Path:
    """The rows as files in the folder."""
    folder.mkdir(parents=True)
    items, responses, evaluations = rows
    (folder / "items.jsonl").write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    for name, several in (
        ("responses.jsonl", responses),
        ("evaluation_results.jsonl", evaluations),
    ):
        if several:
            (folder / name).write_bytes(
                b"".join(msgspec.json.encode(row) + b"\n" for row in several)
            )
    return folder


def exported(folder: Path, format: str, target: Path, **params: Any) -> list[str]:
    return export(folder, format, output=target, params=params)


def read(path: Path, format: str) -> list[Foreign]:
    return registry.reader.get(format)(path)


def rows_of(foreign: Foreign) -> Rows:
    """All that a reader gives, read in one pass."""
    items: dict[str, Item] = {}
    responses: list[Response] = []
    evaluations: list[Evaluation] = []
    for case in foreign.cases():
        assert isinstance(case, ForeignCase)
        if case.item is not None:
            item = decode_item(encode_item(normalise(case.item)))
            assert items.setdefault(item.id, item) == item
        responses += [] if case.response is None else [case.response]
        evaluations += case.evaluations
    return list(items.values()), responses, evaluations


def core(rows: Rows) -> Any:
    """What every dialect has a field for: ids, texts, outcomes, labels and scores."""
    answers = {row.key: row for row in rows[1]}
    said = sorted((row.item_id, row.response, row.outcome) for row in rows[1])
    labels = sorted(
        (
            row.item_id,
            row.label,
            -1.0 if row.score is None else row.score,
            row.outcome,
            answers[row.responses[0]].response,
        )
        for row in rows[2]
    )
    return sorted(item.id for item in rows[0]), said, labels


def told(rows: Rows) -> list[Any]:
    """Rows in an order of their own, as JSON, to be compared."""
    items = sorted((msgspec.to_builtins(item) for item in rows[0]), key=lambda row: row["id"])
    return [
        items,
        *(
            sorted((json.loads(msgspec.json.encode(row)) for row in kind), key=str)
            for kind in rows[1:]
        ),
    ]
