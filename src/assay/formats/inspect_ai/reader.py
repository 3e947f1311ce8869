"""inspect_ai's logs as experiments: one for each log, whatever became of its run."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.foreign import Case, Foreign, Headline, Rest, files_below
from assay.formats.inspect_ai.documents import header_at, is_log, one_line, samples_at
from assay.formats.inspect_ai.header import Header
from assay.formats.inspect_ai.numbers import Numbers
from assay.formats.inspect_ai.rows import Around, case_of
from assay.formats.inspect_ai.shapes import Decoder, Sample
from assay.registry import reader
from assay.store.keys import id_hash
from assay.store.keyset import Seen

SHARDS = ".shards"
RECOVERED = "-recovered"
_ENDS = {"started": "the run had not ended when this log was written", "cancelled": "the run was cancelled"}
_MOST_SHOWN = 3


@reader
def inspect_ai(path: Path) -> list[Foreign]:
    """Logs of inspect_ai: `.eval` and `.json` files, or a folder with them."""
    files = [file for file in files_below(path, ".eval", ".json") if is_log(file)]
    return [Log(group) for group in _runs(files)]


def _runs(files: list[Path]) -> list[list[Path]]:
    """The files of each run. The shards of a run whose merged log is there are not read, nor is a log beside which
    there is the same one, recovered."""
    names = {str(file) for file in files}
    runs: dict[str, list[Path]] = {}
    for file in files:
        if f"{file.with_suffix('')}{RECOVERED}{file.suffix}" in names:
            continue
        shards = next((parent for parent in file.parents if parent.name.endswith(SHARDS)), None)
        run = str(file) if shards is None else f"{str(shards).removesuffix(SHARDS)}{file.suffix}"
        if shards is None or run not in names:
            runs.setdefault(run, []).append(file)
    return list(runs.values())


class Log:
    """The samples of one run, in one file, or in several shards."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self._rest = Rest()
        self._header = header_at(paths[0], self._rest)
        self._numbers = Numbers(self._header)
        self._broken: list[str] = []
        self._odd: Counter[str] = Counter()
        self.rejected = 0
        self.dataset = self._header.task

    @property
    def planned(self) -> int | None:
        """Samples times epochs."""
        return self._header.planned if len(self._paths) == 1 else None

    @cached_property
    def source(self) -> dict[str, Any]:
        """What tells that the files are still those that were read."""
        return {"format": "inspect_ai", "files": [content_stamp(path.absolute()) for path in self._paths]}

    @property
    def facts(self) -> dict[str, Any]:
        """What the header says beyond rows."""
        version = self._header.eval.get("packages", {}).get("inspect_ai", "")
        read_from = f"inspect_ai {version}".rstrip()
        told = {"read_from": [read_from], "models": [self._header.model], "status": self._header.status}
        return {**self._header.facts(), **told}

    def cases(self) -> Iterator[Case]:
        """Every sample."""
        header = self._header
        self._numbers, self._odd, self._broken, self.rejected = Numbers(header), Counter(), [], 0
        decode, seen = Decoder(), Seen()
        alike = _alike(header)
        around = self._around(header)
        for path in self._paths:
            for place, data in samples_at(path, self._reject):
                try:
                    sample, unknown = decode(one_line(data))
                    if alike and isinstance(sample.id, int) and str(sample.id) in alike:
                        sample.id = f"{sample.id}~number"
                    case = case_of(sample, unknown, around)
                except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
                    self._reject(f"{path}, {place}: {error}")
                    continue
                for name in unknown:
                    self._rest.unknown[f"sample.{name}"] += 1
                self._count(sample)
                if header.epochs > 1 and not seen.add(id_hash(str(sample.id))):
                    case = _without_item(case, sample)
                yield case

    def _around(self, header: Header) -> Around:
        scorer = next((scorer for scorer, _ in self._numbers.labels), "score")
        counted = self._numbers
        return Around(header.log, header.model, header.epochs, scorer, counted.labels, counted.facets, counted.count)

    def _reject(self, what: str) -> None:
        self.rejected += 1
        if len(self._broken) < _MOST_SHOWN:
            self._broken.append(what)

    def _count(self, sample: Sample) -> None:
        odd = self._odd
        odd["samples"] += 1
        if sample.error is not None:
            odd["failed"] += 1
            odd["unscored"] += not sample.scores
        if isinstance(sample.limit, msgspec.Raw) and bytes(sample.limit) != b"null":
            odd["limited"] += 1
        if isinstance(sample.invalidation, msgspec.Raw) and bytes(sample.invalidation) != b"null":
            odd["invalidated"] += 1
        if isinstance(sample.error_retries, msgspec.Raw) and len(bytes(sample.error_retries)) > 4:
            odd["retried"] += 1

    def headlines(self) -> list[Headline]:
        """The numbers of the header."""
        return self._numbers.headlines()

    def notes(self) -> list[str]:
        header, odd = self._header, self._odd
        notes = [_ENDS[header.status]] if header.status in _ENDS else []
        if header.status == "error":
            notes.append(f"the run failed: {header.error.get('message', 'no reason is given')}")
        if header.invalidated or odd["invalidated"]:
            notes.append(f"the log is marked as invalid, {odd['invalidated']:,} of its samples are by themselves")
        if odd["limited"]:
            notes.append(f"{odd['limited']:,} samples reached a limit; they are scored, see metadata.source.limit")
        if odd["retried"]:
            notes.append(f"{odd['retried']:,} samples were tried again after errors, see metadata.source.error_retries")
        notes += self._numbers.notes(odd["unscored"])
        if self._broken:
            notes.append(f"what could not be read, {self.rejected:,} in all: {'; '.join(self._broken)}")
        return [*notes, *self._rest.notes()]


def _alike(header: Header) -> set[str]:
    """The ids that are a number in one place and the same text in another."""
    texts = {id for id in header.ids if isinstance(id, str)}
    return {str(id) for id in header.ids if not isinstance(id, str) and str(id) in texts}


def _without_item(case: Case, sample: Sample) -> Case:
    """A further epoch: the item is there already, and solvers may have changed what its metadata say."""
    if sample.metadata and case.response is not None:
        case.response.metadata["source"]["metadata"] = sample.metadata
    return case._replace(item=None)
