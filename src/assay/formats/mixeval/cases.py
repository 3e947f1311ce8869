"""Rows of MixEval's files as cases of a reader: entries first, then each model's responses, then its verdicts."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from assay.engine.experiment.imports.foreign import ForeignCase, Rest
from assay.engine.experiment.imports.kept import restored
from assay.errors import UserError
from assay.formats.mixeval.dataset import Row, content_of
from assay.formats.mixeval.exchange import id_of, item_from, kind_of, response_from
from assay.formats.mixeval.plans import COMPATIBLE
from assay.formats.mixeval.verdicts import Tally, evaluation_from
from assay.store.keys import digest, id_hash
from assay.store.keyset import Seen
from assay.text.json_stream import file_entries

_JUDGED = ("judge_results_ff_model_judge_", "judge_results_mp_model_judge_")


class Cases:
    """`note` is told what is odd; `tallies` is what each model's verdicts counted, `asked` how many entries there
    are."""

    def __init__(self, benchmark: str, note: Callable[[str, str], None], rest: Rest) -> None:
        self.tallies: dict[str, Tally] = {}
        self.asked = 0
        self._benchmark, self._note, self._rest = benchmark, note, rest
        self._ids, self._pairs, self._apart = Seen(), Seen(), dict[int, str]()
        self._answered, self._whole = Seen(), Seen()

    def entries(self, paths: Sequence[Path]) -> Iterator[ForeignCase]:
        for path in paths:
            for _, row in self._rows(path):
                item = self._item(row, whole=True)
                if item is not None:
                    self.asked += 1
                    yield ForeignCase(item=item)

    def answers(self, model: str, paths: Sequence[Path]) -> Iterator[ForeignCase]:
        """The rows of response files, which may hold their evaluations, too."""
        for path in paths:
            for place, row in self._rows(path):
                case = self._answer(row, model, place)
                if case is None:
                    what = f"two responses of {model!r} have the id {row['id']!r}"
                    raise UserError(what, where=place, fix="keep one of them")
                yield case

    def verdicts(
        self, model: str, paths: Sequence[Path], *, answered: bool
    ) -> Iterator[ForeignCase]:
        """The rows of verdicts; where no response file has a response, it comes from here. `answered`: there are such
        files."""
        tally = self.tallies.setdefault(model, Tally())
        for path in paths:
            for place, row in self._rows(path):
                label = _label(path, row)
                id = self._known_id(row)
                response, _ = restored(
                    "mixeval", row, response_from(row, id, model, self._rest), place
                )
                evaluation, counted = evaluation_from(row, response, label)
                if counted is not None:
                    tally.add(label, kind_of(row), str(row.get("benchmark_name") or ""), counted)
                if evaluation.outcome == "unparsed" and "outcome" not in row:
                    self._note("drawn", id)
                if id_hash(f"{model}\n{id}") in self._whole:
                    continue
                stray = self._answer(row, model, place)
                if stray is None:
                    yield ForeignCase(evaluations=[evaluation])
                else:
                    if answered:
                        self._note("stray", id)
                    yield stray._replace(evaluations=[evaluation])

    def _rows(self, path: Path) -> Iterator[tuple[str, Row]]:
        for place, row in file_entries(path, partial(self._note, "broken")):
            if isinstance(row, dict) and cast("Row", row).get("id") not in (None, ""):
                yield place, cast("Row", row)
            else:
                self._note("no_id", place)

    def _answer(self, row: Row, model: str, place: str) -> ForeignCase | None:
        """None for a second response of a model to one entry."""
        item = self._item(row)
        id = self._known_id(row)
        address = id_hash(f"{model}\n{id}")
        if not self._answered.add(address):
            return None
        response, evaluations = restored(
            "mixeval", row, response_from(row, id, model, self._rest), place
        )
        if row.get("response") is None and evaluations is None and "outcome" not in row:
            self._note("null", id)
        if evaluations is not None:
            self._whole.add(address)
        return ForeignCase(item=item, response=response, evaluations=evaluations or ())

    def _item(self, row: Row, *, whole: bool = False) -> Row | None:
        """The item of a row that is new; one whose id another entry has gets an id of its own."""
        id, pair = id_of(row), _pair(row)
        if not self._pairs.add(pair):
            return None
        if not self._ids.add(id_hash(id)):
            if "prompt" not in row:  # it names its entry and does not repeat it
                return None
            id = self._apart[pair] = f"{id}~{pair:016x}"
            self._note("apart", id)
        return {**item_from(row, self._benchmark, whole=whole), "id": id}

    def _known_id(self, row: Row) -> str:
        return self._apart.get(_pair(row), "") or id_of(row) if self._apart else id_of(row)


def _pair(row: Row) -> int:
    """A number for id and content together."""
    parts = (id_of(row).encode("utf-8", "replace"), content_of(row).encode())
    return int.from_bytes(digest("mixeval-entry", *parts)[:8], "big")


def _label(path: Path, row: Row) -> str:
    """What a file's verdicts are called: the rule, or the judge that its name says."""
    if "eval_result" in row:
        return COMPATIBLE
    return next(
        (path.stem.removeprefix(start) for start in _JUDGED if path.stem.startswith(start)),
        path.stem,
    )
