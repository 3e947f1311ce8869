"""Records on disk that can be read in any order: memory holds one number for each."""

from array import array
from collections.abc import Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

import msgspec

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record, Records
from assay.formats.sygra.data.values import as_text


class Spool:
    """All records of one source. `columns` are the fields of any of them, in the order of their first appearance."""

    def __init__(self, records: Records, *, where: str) -> None:
        self.columns: dict[str, None] = {}
        self._starts = array("Q")
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._file = TemporaryFile(prefix="assay-")  # noqa: SIM115  closed with the spool
        try:
            self._fill(records, where)
        except BaseException:
            self._file.close()
            raise

    def _fill(self, records: Records, where: str) -> None:
        encode = msgspec.json.Encoder(enc_hook=as_text).encode
        at = 0
        for record in records:
            if not record.keys() <= self.columns.keys():
                self.columns.update(dict.fromkeys(record))
            try:
                line = encode(record)
            except (TypeError, ValueError, RecursionError) as error:
                raise UserError(f"a record cannot be written as JSON: {error}", where=where) from None
            self._starts.append(at)
            at += self._file.write(line + b"\n")

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Record:
        self._file.seek(self._starts[number])
        return self._decode(self._file.readline())

    def __iter__(self) -> Iterator[Record]:
        for number in range(len(self)):
            yield self[number]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
