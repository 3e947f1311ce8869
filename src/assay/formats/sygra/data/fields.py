"""Transforms that change the fields of one record at a time."""

from collections.abc import Mapping
from typing import Any

from assay.formats.sygra.data.transform import Records, Streamed, mapping


class RenameFieldsTransform(Streamed):
    """`mapping: {old: new}`. A new name that the record has already is kept, both stay, unless `overwrite`."""

    @property
    def name(self) -> str:
        return "rename_fields"

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        names, overwrite = mapping(params, "mapping"), bool(params.get("overwrite"))
        for record in records:
            renamed = dict(record)
            for old, new in names.items():
                if old in renamed and (overwrite or new not in renamed):
                    renamed[new] = renamed.pop(old)
            yield renamed


class AddNewFieldTransform(Streamed):
    """`mapping: {field: constant}`."""

    @property
    def name(self) -> str:
        return "add_new_field"

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        constants = mapping(params, "mapping")
        return ({**record, **constants} for record in records)


class AddRetryFieldsTransform(Streamed):
    """What a loop with retries counts with: `max_retries`, `curr_retries`, `original_current_user_text`."""

    @property
    def name(self) -> str:
        return "add_retry_fields"

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        constants = {
            "max_retries": params.get("max_retries", 3),
            "curr_retries": params.get("initial_retry_count", 0),
            "original_current_user_text": params.get("original_current_user_text", ""),
        }
        return ({**record, **constants} for record in records)
