"""SyGra's output files, with the report and the metadata beside them, as experiments: one for each file.

A file is known by the results of unit metrics in its records, or by the metadata of its run in `metadata/`. What
another post-processor than the report made of the records is not read again.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    files_below,
    head_of,
    unknown_version,
    whole_json,
    without_secrets,
)
from assay.errors import UserError
from assay.registry import reader
from assay.text.json_stream import file_entries

Row = dict[str, Any]


def fields(value: Any) -> Row:
    """An object as it is; empty for anything else."""
    return cast("Row", value) if isinstance(value, dict) else {}


def records_in(path: Path, broken: Callable[[str], object]) -> Iterator[Row]:
    """Yield the records of a list or of lines; what cannot be read is told to `broken`."""
    for place, value in file_entries(path, broken):
        if isinstance(value, dict):
            yield cast("Row", value)
        else:
            broken(f"{place} is not a record")


_MARKS = (b'"correct"', b'"golden"', b'"predicted"')
_STAMP = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_LOOKED_AT, _TRIED = 200, 20  # records that tell what the fields are, and whether they are SyGra's


@reader
def sygra(path: Path, *, output: str = "") -> list[Foreign]:
    """A folder with SyGra's output files, or one of them.

    Parameters:
    output: only the file of this name
    """
    found = [
        made
        for file in files_below(path, ".json", ".jsonl")
        if output in ("", file.name) and (made := _look(file)) is not None
    ]
    return [Records(each) for each in found if not _is_derived(each, found)]


class _Output(msgspec.Struct):
    path: Path
    about: Row
    report: Path | None


def _look(path: Path) -> _Output | None:
    head = head_of(path).lstrip()
    if head[:1] not in (b"[", b"{"):
        return None
    has_results = all(mark in head for mark in _MARKS)
    about = _metadata(path) if has_results or "output" in path.name else {}
    if not has_results and not about:
        return None
    records = list(islice(records_in(path, str), _TRIED))
    if not records or b'"evaluation_summary"' in head[:4096]:
        return None
    from assay.formats.sygra.exchange import attempts_in

    if not about and not any(attempts_in(value) for record in records for value in record.values()):
        return None
    return _Output(path, about, _report(path))


def _is_derived(one: _Output, found: list[_Output]) -> bool:
    """Whether a file is what a post-processor made of the records of an output file beside it."""
    return any(
        other.path.parent == one.path.parent and _is_sibling(other.path.name, one.path.name)
        for other in found
    )


def _is_sibling(output: str, name: str) -> bool:
    """Whether a name is that of an output file with another word for `output`."""
    if output == name:
        return False
    for match in re.finditer("output", output):
        before, after = output[: match.start()], output[match.end() :]
        word = name[len(before) : len(name) - len(after)]
        if (
            name.startswith(before)
            and name.endswith(after)
            and word.replace("-", "").isidentifier()
        ):
            return True
    return False


def _report(path: Path) -> Path | None:
    for file in sorted(path.parent.glob("*.json")):
        if _is_sibling(
            path.with_suffix(".json").name, file.name
        ) and b'"evaluation_summary"' in head_of(file):
            return file
    return None


def _metadata(path: Path) -> Row:
    """What the run's own file says: that of the same time, or the only one."""
    files = sorted((path.parent / "metadata").glob("*.json"))
    named = [file for file in files if file.stem == f"metadata_{path.stem}"]
    stamp = _STAMP.search(path.name)
    named = named or [file for file in files if stamp and stamp[0] in file.name]
    for file in named or (files if len(files) == 1 and not stamp else []):
        found = fields(whole_json(file))
        if "metadata_version" in found and "execution" in found:
            _check_readable(found, file)
            return found
    return {}


def _check_readable(about: Row, file: Path) -> None:
    if str(about["metadata_version"]).partition(".")[0] not in ("0", "1"):
        raise unknown_version("SyGra's metadata", about["metadata_version"], file)
    if "assay" in about:
        what = "these files are an export of Assay 0.1, whose added fields are not read"
        fix = "import the experiment that was exported, or remove the key to read the rest"
        raise UserError(what, where=f"{file}: assay", fix=fix)


class Records:
    """The records of one output file."""

    def __init__(self, one: _Output) -> None:
        self._one = one
        execution = fields(one.about.get("execution"))
        self.dataset = str(execution.get("task_name") or one.path.stem)
        self.rejected = 0
        self.planned: int | None = None
        self._broken: list[str] = []

    @property
    def source(self) -> Row:
        from assay.engine.experiment.dataset import content_stamp

        files = [file for file in (self._one.path, self._one.report) if file is not None]
        return {"format": "sygra", "files": [content_stamp(file.absolute()) for file in files]}

    @property
    def facts(self) -> Row:
        about = [self._one.about] if self._one.about else []
        return {"agents": [self._author().model_name], "metadata": without_secrets(about)}

    def cases(self) -> Iterator[ForeignCase]:
        from assay.formats.sygra.exchange import cases_of, item_of
        from assay.store.keys import id_hash
        from assay.store.keyset import Seen

        self.rejected, self._broken = 0, []
        roles, author = self._roles(), self._author()
        rows, seen, again = 0, Seen(), dict[str, int]()
        for record in records_in(self._one.path, self._reject):
            item, number = item_of(record, roles), 0
            id = str(item["id"])
            if not seen.add(id_hash(id)):
                number = again[id] = again.get(id, 0) + 1
            for case in cases_of(record, item, roles, author, number):
                rows += 1
                yield case
        self.planned = self._planned(rows)

    def _planned(self, rows: int) -> int | None:
        """SyGra counts records that it then failed to write."""
        counts = fields(fields(self._one.about.get("aggregate_statistics")).get("records"))
        known = counts.get("total_processed")
        return max(known, rows) if isinstance(known, int) else None

    def _plain_records(self) -> Iterator[Row]:
        return records_in(self._one.path, str)

    def _roles(self) -> Any:
        from assay.formats.sygra.exchange import roles_of

        return roles_of(islice(self._plain_records(), _LOOKED_AT))

    def _author(self) -> Any:
        from assay.formats.sygra.exchange import Author

        about = self._one.about
        execution, models = fields(about.get("execution")), list(fields(about.get("models")))
        task = str(execution.get("task_name") or "sygra")
        started = fields(execution.get("timing")).get("start_time")
        return Author(models[0] if len(models) == 1 else task, task, _time(started))

    def _reject(self, what: str) -> None:
        self.rejected += 1
        self._broken.append(what)

    def notes(self) -> list[str]:
        if not self._broken:
            return []
        return [f"{len(self._broken):,} places of the files cannot be read: {self._broken[0]}"]

    def headlines(self) -> list[Headline]:
        from assay.formats.sygra.reported import headlines_of

        if self._one.report is None:
            return []
        report = whole_json(self._one.report)
        return list(headlines_of(report, self._roles(), self._plain_records))


def _time(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return 0.0
