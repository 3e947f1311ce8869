"""A folder of Hugging Face's `datasets` (`save_to_disk`) with the table `samples`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.foreign import Foreign, head_of
from assay.readers._samples import SampleFile, is_samples
from assay.sdk import JsonObject, UserError, install_command, reader

_STATE, _INFO = "state.json", "dataset_info.json"


class _State(msgspec.Struct):
    files: list[dict[str, str]] = msgspec.field(name="_data_files")


class _Info(msgspec.Struct):
    features: JsonObject


@reader
def hf(path: Path) -> list[Foreign]:
    """A dataset with a row for each response, as `assay convert` writes it and `load_from_disk` reads it."""
    if not (path / _STATE).is_file() or not is_samples(_columns(path)):
        return []
    return [SampleFile(path, "hf", _columns(path), _rows)]


def _columns(folder: Path) -> Sequence[str]:
    try:
        return list(msgspec.json.decode(head_of(folder / _INFO), type=_Info).features)
    except (ValueError, RecursionError):
        return []


def _rows(folder: Path) -> Iterator[Sequence[Any]]:
    try:
        import pyarrow as pa
    except ImportError:
        raise UserError(
            "this needs pyarrow, which is not installed", fix=install_command("hf")
        ) from None
    columns = list(_columns(folder))
    state = msgspec.json.decode((folder / _STATE).read_bytes(), type=_State)
    for entry in state.files:
        name = entry.get("filename", "")
        if name != Path(name).name:  # only files of this folder
            what = f"the dataset names a file elsewhere: {name!r}"
            raise UserError(what, where=str(folder / _STATE))
        try:
            with pa.OSFile(str(folder / name)) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    table = cast("Any", batch).select(columns)
                    yield from zip(*(column.to_pylist() for column in table.columns), strict=True)
        except (OSError, pa.ArrowException, KeyError) as error:
            raise UserError(
                f"the dataset cannot be read: {error}", where=str(folder / name)
            ) from None
