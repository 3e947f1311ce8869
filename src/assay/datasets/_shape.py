"""What a config does to the rows of any format, in this order: fields, answer, filter, split, sample, shuffle.

Rows are streamed. Sampling and shuffling order items by a hash of seed and id, so that they depend neither on the
order of the files nor on the machine, and a larger sample contains the smaller one.
"""

from collections.abc import Callable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import Any

import msgspec

from assay.config import DatasetConfig, SplitConfig
from assay.sdk import JsonMapping, JsonObject, UserError, digest, nearest
from assay.store.items import normalise
from assay.text.conversation import conversation_in
from assay.text.messages import content_text
from assay.text.template import expression, whole

Rows = Iterator[tuple[str, JsonObject]]
_MISSING = object()
_decode = msgspec.json.Decoder(tuple[str, JsonObject]).decode


def shape_rows(rows: Rows, source: DatasetConfig) -> Rows:
    if source.fields:
        rows = _rename_fields(rows, source.fields)
    if source.answer:
        rows = _take_answers(rows)
    if source.filter:
        rows = _filter_rows(rows, source.filter)
    if source.split is not None and source.split.ratio:
        rows = _part(rows, source.split)
    order = source.seed if source.shuffle is True else source.shuffle
    if order is False:
        order = None
    if source.sample is not None or order is not None:
        rows = _draw_rows(rows, source.sample, source.seed, order)
    return rows


# ---- fields


def _rename_fields(rows: Rows, fields: Mapping[str, str]) -> Rows:
    """Fields under their new names. A dotted source is copied out of its object, which stays."""
    for place, row in rows:
        found = {target: _value(row, source, place) for target, source in fields.items()}
        moved = set(fields.values())
        yield place, {**{name: value for name, value in row.items() if name not in moved}, **found}


def _value(row: JsonMapping, source: str, place: str) -> Any:
    if source in row:
        return row[source]
    value: Any = row
    for part in source.split("."):
        holder = value
        if isinstance(value, Mapping):
            value = value.get(part, _MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = _MISSING
        if value is _MISSING:
            names = [str(name) for name in holder] if isinstance(holder, Mapping) else []
            raise UserError(
                f"a dataset row has no field {source!r}",
                where=place,
                fix=f"correct `fields`: {nearest(part, names)}",
            )
    return value


# ---- answer


def _take_answers(rows: Rows) -> Rows:
    """Conversations whose last message, the assistant's, is the expected answer and no longer part of them."""
    for place, row in rows:
        try:
            yield place, _without_answer(row)
        except UserError as error:
            error.where = place
            raise


def _without_answer(row: JsonObject) -> JsonObject:
    held: Any = row["data"] if isinstance(row.get("data"), dict) else row
    found = conversation_in(held)
    if found is None or found[1][-1].get("role") != "assistant":
        what = "`answer: last` wants a conversation that ends with the assistant"
        raise UserError(what, fix="remove `answer: last`, or these rows from the file")
    if row.get("ground_truth") is not None:
        fix = "remove `answer: last`, or the field `ground_truth`"
        raise UserError(
            "the row has a ground truth beside the conversation's last message", fix=fix
        )
    name, messages = found
    last = messages[-1]
    text = content_text(last.get("content"))
    truth: Any = (
        {"answer": text, "tool_calls": last["tool_calls"]} if last.get("tool_calls") else text
    )
    rest = {**held, name: messages[:-1]}
    return (
        {**row, "data": rest, "ground_truth": truth}
        if held is not row
        else {**rest, "ground_truth": truth}
    )


# ---- filter


def _filter_rows(rows: Rows, source: str) -> Rows:
    keep = _expression(source)
    for place, row in rows:
        item = normalise(row, place)
        known = whole(item)
        if isinstance(item.data, Mapping):
            known |= item.data
        try:
            kept = bool(keep(known))
        except (
            Exception
        ) as error:  # an expression calls filters and operators, which may raise anything
            raise _filter_failed(error, known, place) from None
        if kept:
            yield place, row


def _expression(source: str) -> Callable[[JsonObject], Any]:
    from jinja2 import TemplateError

    try:
        return expression(source, "dataset.filter")
    except TemplateError as error:
        what = f"the filter {source!r} is not an expression: {error}"
        raise UserError(
            what, where="dataset.filter", fix='write it like `level == "hard" and n > 3`'
        ) from None


def _filter_failed(error: Exception, known: JsonMapping, place: str) -> UserError:
    from jinja2 import UndefinedError

    if isinstance(error, UserError):
        return UserError(f"the dataset's filter fails: {error.what}", where=place, fix=error.fix)
    if isinstance(error, UndefinedError):
        fix = (
            f"fields of this row: {', '.join(sorted(map(str, known)))}; `x is defined` asks for one"
        )
    elif isinstance(error, TypeError):
        fix = "make the types equal, such as `n | int > 3` (values of csv and tsv are text)"
    else:
        fix = "correct `filter`"
    return UserError(f"the dataset's filter fails: {error}", where=place, fix=fix)


# ---- split, sample, shuffle


def _part(rows: Rows, split: SplitConfig) -> Rows:
    """The items whose hash falls into the named part; equal rows without ids fall into the same one."""
    low = 0.0
    for name, share in split.ratio.items():
        if name == split.name:
            break
        low += share
    high = low + split.ratio[split.name]
    for place, row in rows:
        if low <= _draw("split", split.seed, row, place) / 2**64 < high:
            yield place, row


def _draw_rows(rows: Rows, count: int | None, seed: int, order: int | None) -> Rows:
    """`count` rows, chosen by `seed`, in the order that the seed `order` gives; None means all, and as they came.
    Rows wait on disk: memory holds a few numbers for each."""
    import numpy as np

    with TemporaryFile(prefix="assay-") as file:

        def draws() -> Iterator[tuple[int, int, int]]:
            for place, row in rows:
                chance = 0 if count is None else _draw("sample", seed, row, place)
                turn = 0 if order is None else _draw("shuffle", order, row, place)
                yield chance, turn, file.tell()
                file.write(_encode_row(place, row))

        found = np.fromiter(draws(), [("chance", "u8"), ("turn", "u8"), ("place", "i8")])
        if count is not None:
            found = found[np.sort(np.argsort(found["chance"], kind="stable")[:count])]
        if order is not None:
            found = found[np.argsort(found["turn"], kind="stable")]
        for place in found["place"].tolist():
            file.seek(place)
            yield _decode(file.readline())


def _draw(purpose: str, seed: int, row: JsonMapping, place: str) -> int:
    id = normalise(row, place).id.encode("utf-8", "surrogatepass")
    return int.from_bytes(digest(purpose, b"%d" % seed, id)[:8], "big")


def _encode_row(place: str, row: JsonObject) -> bytes:
    try:
        return msgspec.json.encode((place, row)) + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"a dataset row cannot be written as JSON: {error}", where=place) from None
