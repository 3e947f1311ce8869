"""SyGra's output files, with the report and the metadata beside them, as experiments: one for each file.

A file is known by the results of unit metrics in its records, or by the metadata of its run in `metadata/`. What
another post-processor than the report made of the records is not read again.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    files_below,
    head_of,
    unknown_version,
    without_secrets,
)
from assay.formats.sygra.record_files import content, fields, records_in
from assay.registry import reader

if TYPE_CHECKING:
    from assay.store.keyset import Seen

Row = dict[str, Any]
DATA = "data.jsonl"  # the items of an experiment that Assay wrote
_MARKS = (b'"correct"', b'"golden"', b'"predicted"')
_STAMP = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_LOOKED_AT, _TRIED = 200, 20  # records that tell what the fields are, and whether they are SyGra's


@reader
def sygra(path: Path, *, output: str = "") -> list[Foreign]:
    """A folder with SyGra's output files, or one of them.

    Parameters:
    output: only the file of this name
    """
    found: dict[tuple[Path, str], list[_Output]] = {}
    for file in files_below(path, ".json", ".jsonl"):
        if output in ("", file.name) and (made := _look(file)) is not None:
            found.setdefault((file.parent, made.experiment or file.name), []).append(made)
    return [Records(files) for files in found.values() if not _is_derived(files, found)]


class _Output(msgspec.Struct):
    path: Path
    about: Row
    report: Path | None

    @property
    def ours(self) -> Row:
        """What Assay noted in the metadata of a file that it wrote."""
        return fields(self.about.get("assay"))

    @property
    def experiment(self) -> str:
        return str(self.ours.get("experiment") or "")


def _look(path: Path) -> _Output | None:
    head = head_of(path).lstrip()
    if head[:1] not in (b"[", b"{") or path.name == DATA:
        return None
    has_results = all(mark in head for mark in _MARKS)
    about = _metadata(path) if has_results or "output" in path.name else {}
    if not has_results and not about:
        return None
    records = list(islice(records_in(path, lambda what: None), _TRIED))
    if not records or b'"evaluation_summary"' in head[:4096]:
        return None
    from assay.formats.sygra.exchange import attempts_in

    if not about and not any(
        attempts_in(value) for _, record in records for value in record.values()
    ):
        return None
    return _Output(path, about, _report(path))


def _is_derived(files: list[_Output], found: dict[tuple[Path, str], list[_Output]]) -> bool:
    """Whether a file is what a post-processor made of the records of an output file beside it."""
    (path, *more) = [file.path for file in files]
    beside = [
        other.path
        for (folder, _), others in found.items()
        if folder == path.parent
        for other in others
    ]
    return not more and any(_is_sibling(other.name, path.name) for other in beside)


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
        found = fields(content(file))
        if "metadata_version" in found and "execution" in found:
            if str(found["metadata_version"]).partition(".")[0] not in ("0", "1"):
                raise unknown_version("SyGra's metadata", found["metadata_version"], file)
            return found
    return {}


class Records:
    """The records of one output file, or of those that Assay wrote for the models of one experiment."""

    def __init__(self, files: list[_Output]) -> None:
        self._files = files
        about = files[0].about
        execution = fields(about.get("execution"))
        name = files[0].ours.get("dataset") or execution.get("task_name") or files[0].path.stem
        self.dataset = str(name)
        self.rejected = 0
        self.planned: int | None = None
        self._broken: list[str] = []

    @property
    def source(self) -> Row:
        from assay.engine.experiment.dataset import content_stamp

        beside = [
            file for one in self._files for file in (one.path, one.report) if file is not None
        ]
        data = self._files[0].path.with_name(DATA)
        beside += [data] if self._files[0].experiment and data.is_file() else []
        return {"format": "sygra", "files": [content_stamp(file.absolute()) for file in beside]}

    @property
    def facts(self) -> Row:
        names = [_author(one).model_name for one in self._files]
        said = [
            {name: value for name, value in one.about.items() if name != "assay"}
            for one in self._files
        ]
        return {"agents": names, "metadata": without_secrets([each for each in said if each])}

    def cases(self) -> Iterator[ForeignCase]:
        from assay.store.keyset import Seen

        self.rejected, self._broken = 0, []
        rows, known = 0, Seen()
        yield from self._items(known)
        for one in self._files:
            for case in self._answers(one, known):
                rows += 1
                yield case
        self.planned = self._planned(rows)

    def _planned(self, rows: int) -> int | None:
        """SyGra counts records that it then failed to write."""
        counts = [
            fields(fields(one.about.get("aggregate_statistics")).get("records"))
            for one in self._files
        ]
        known = [
            count["total_processed"]
            for count in counts
            if isinstance(count.get("total_processed"), int)
        ]
        return max(sum(known), rows) if len(known) == len(self._files) else None

    def _items(self, known: "Seen") -> Iterator[ForeignCase]:
        """The items of an experiment that Assay wrote; their ids are added to the `known` ones."""
        data = self._files[0].path.with_name(DATA)
        if not self._files[0].experiment or not data.is_file():
            return
        from assay.formats.sygra.exchange import item_of
        from assay.store.keys import id_hash

        roles = self._roles(self._files[0])
        for _, record in records_in(data, self._reject):
            item = item_of(record, roles)
            known.add(id_hash(str(item["id"])))
            yield ForeignCase(item)

    def _roles(self, one: _Output) -> Any:
        from assay.formats.sygra.exchange import Roles, roles_of

        try:
            return msgspec.convert(one.ours["roles"], Roles)
        except (KeyError, msgspec.ValidationError):
            return roles_of(
                record for _, record in islice(records_in(one.path, lambda what: None), _LOOKED_AT)
            )

    def _answers(self, one: _Output, known: "Seen") -> Iterator[ForeignCase]:
        from assay.formats.sygra.exchange import cases_of, item_of
        from assay.store.keys import id_hash
        from assay.store.keyset import Seen

        roles, author = self._roles(one), _author(one)
        seen, again = Seen(), dict[str, int]()
        for place, record in records_in(one.path, self._reject):
            id, number = str(item_of(record, roles)["id"]), 0
            if not seen.add(id_hash(id)) and not one.experiment:
                number = again[id] = again.get(id, 0) + 1
            is_known = id_hash(id) in known
            for case in cases_of(record, roles, author, number, place):
                yield case._replace(item=None) if is_known else case

    def _reject(self, what: str) -> None:
        self.rejected += 1
        self._broken.append(what)

    def notes(self) -> list[str]:
        if not self._broken:
            return []
        return [f"{len(self._broken):,} places of the files cannot be read: {self._broken[0]}"]

    def headlines(self) -> list[Headline]:
        from assay.formats.sygra.reported import headlines_of

        return [
            line
            for one in self._files
            if one.report is not None
            for line in headlines_of(
                content(one.report),
                self._roles(one),
                lambda one=one: (record for _, record in records_in(one.path, lambda what: None)),
                {"model_name": _author(one).model_name} if len(self._files) > 1 else {},
            )
        ]


def _author(one: _Output) -> Any:
    from assay.formats.sygra.exchange import Author

    try:
        return msgspec.convert(one.ours["author"], Author)
    except (KeyError, msgspec.ValidationError):
        execution, models = (
            fields(one.about.get("execution")),
            list(fields(one.about.get("models"))),
        )
        task = str(execution.get("task_name") or "sygra")
        started = fields(execution.get("timing")).get("start_time")
        return Author(models[0] if len(models) == 1 else task, task, timestamp=_time(started))


def _time(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return 0.0
