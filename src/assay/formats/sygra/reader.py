"""SyGra's output files, with the report and the metadata beside them, as experiments: one for each file.

A file is known by the results of unit metrics in its records, or by the metadata of its run in `metadata/`. What
another post-processor than the report made of the records is not read again.
"""

import re
from itertools import islice
from pathlib import Path

import msgspec

from assay.foreign import (
    Foreign,
    files_below,
    head_of,
    unknown_version,
    whole_json,
)
from assay.formats.sygra.types import Row
from assay.sdk import UserError, as_object, reader

_MARKS = (b'"correct"', b'"golden"', b'"predicted"')
_STAMP = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_TRIED = 20  # records that tell whether they are SyGra's


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
    if not found:
        return []
    from assay.formats.sygra.exchange import OutputFile

    own = [each for each in found if not _is_derived(each, found)]
    return [OutputFile(each.path, each.about, each.report) for each in own]


class _FoundOutput(msgspec.Struct):
    path: Path
    about: Row
    report: Path | None


def _look(path: Path) -> _FoundOutput | None:
    head = head_of(path).lstrip()
    if head[:1] not in (b"[", b"{"):
        return None
    has_results = all(mark in head for mark in _MARKS)
    about = _metadata(path) if has_results or "output" in path.name else {}
    if not has_results and not about:
        return None
    from assay.formats.sygra.exchange import attempts_in, records_in

    records = list(islice(records_in(path, str), _TRIED))
    if not records or b'"evaluation_summary"' in head[:4096]:
        return None
    if not about and not any(attempts_in(value) for record in records for value in record.values()):
        return None
    return _FoundOutput(path, about, _report(path))


def _is_derived(one: _FoundOutput, found: list[_FoundOutput]) -> bool:
    """Return whether a file is what a post-processor made of the records of an output file beside
    it."""
    return any(
        other.path.parent == one.path.parent and _is_sibling(other.path.name, one.path.name)
        for other in found
    )


def _is_sibling(output: str, name: str) -> bool:
    """Return whether a name is that of an output file with another word for `output`."""
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
    """Return what the run's own file says: that of the same time, or the only one."""
    files = sorted((path.parent / "metadata").glob("*.json"))
    named = [file for file in files if file.stem == f"metadata_{path.stem}"]
    stamp = _STAMP.search(path.name)
    named = named or [file for file in files if stamp and stamp[0] in file.name]
    for file in named or (files if len(files) == 1 and not stamp else []):
        found = as_object(whole_json(file))
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
