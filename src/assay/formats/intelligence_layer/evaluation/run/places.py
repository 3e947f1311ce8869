"""Where the rows of each example are in a log: found in one pass, and again only when the log has changed."""

import threading

import msgspec

from assay.interfaces import Log
from assay.records import Segment
from assay.store.repair import row_decoder


class _Mark(msgspec.Struct):
    item_id: str
    sample_index: int = 0


class Places:
    """Of several samples the first counts. Only what others append makes a new pass necessary to know the ids."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._segments: list[Segment] | None = None
        self._found: dict[str, list[int]] = {}
        self._appended = False  # the ids are known, the positions not all
        self._guard = threading.RLock()

    def __contains__(self, example_id: str) -> bool:
        with self._guard:
            if self._segments != self.log.segments():
                self._find()
            return example_id in self._found

    def all(self) -> dict[str, list[int]]:
        """The positions of the rows of each example, in the order of the log."""
        with self._guard:
            if self._appended or self._segments != self.log.segments():
                self._find()
            return self._found

    def remove(self, example_id: str) -> None:
        """Take the example's rows out of the log."""
        with self._guard:
            mine = set(self.all().pop(example_id))
            self.log.replace(line + b"\n" for position, line in self.log.scan() if position not in mine)
            self._segments, self._appended = self.log.segments(), True

    def append(self, example_id: str, line: bytes) -> None:
        """Add the row of an example that has none."""
        with self._guard:
            self.log.append(line)
            self._found[example_id] = []
            self._segments, self._appended = self.log.segments(), True

    def _find(self) -> None:
        self.log.close()  # what it has open may have been replaced by another process
        self._segments, self._appended, self._found = self.log.segments(), False, {}
        decode = row_decoder(_Mark)
        for position, line in self.log.scan():
            if line.strip():
                row = decode(line)
                if row.sample_index == 0:
                    self._found.setdefault(row.item_id, []).append(position)
