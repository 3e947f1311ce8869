"""The answers of an experiment that one person labels, without seeing who gave them."""

import fcntl
import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.analysis.judge.label_frame import Address, Frame, Unit, read_frame
from assay.analysis.judge.labelling import AnswerView, ChosenAnswer, views, waiting
from assay.datasets._labels import FILE
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import Source
from assay.errors import UserError
from assay.stats.agreement import RaterAgreement, agreement
from assay.store.files import make_folder, open_own, store_error
from assay.store.log import FileLog
from assay.store.shared.mirror import push


class LabelRecord(msgspec.Struct, kw_only=True):
    """One person's verdict on one answer. `scorer` is the label that it is about, `probability` the chance with
    which the answer was chosen (see `labelling`), `chosen` why, `stratum_size` out of how many."""

    item: str
    sample: int = 0
    model: str = ""
    response: str = ""
    scorer: str = ""
    label: Any = None
    annotator: str = ""
    probability: float | None = None
    chosen: str = ""
    stratum: str = ""
    stratum_size: int | None = None
    note: str = ""
    tags: list[str] = []
    time: float | None = None

    @property
    def address(self) -> Address:
        return Address(self.item, self.sample, self.model, self.response)


def record(
    chosen: ChosenAnswer, *, label: float | None, scorer: str, annotator: str, **more: Any
) -> LabelRecord:
    """Return a label given now; `more` may be a note and tags."""
    return LabelRecord(
        **chosen.unit.address._asdict(),
        scorer=scorer,
        label=label,
        annotator=annotator,
        probability=chosen.probability,
        chosen=chosen.kind,
        stratum=chosen.stratum,
        stratum_size=chosen.size,
        **more,
        time=time.time(),
    )


def chosen_before(frame: Frame, records: Iterable[LabelRecord]) -> list[ChosenAnswer]:
    """The answers that these labels are about, as they were chosen then; without those that are no
    longer there."""
    units = {unit.address: unit for unit in frame.units}
    return [
        ChosenAnswer(
            units[record.address],
            record.chosen,
            record.probability or 1.0,
            record.stratum,
            record.stratum_size or len(units),
        )
        for record in records
        if record.label is not None and record.address in units
    ]


class LabelFile:
    """A file of labels, a line for every one: the last line about an answer counts, and `label` is
    null where one was taken back or only a note was made. A line is one append, so that several
    people may share the file; what was appended is on the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = FileLog(path)

    def append(self, record: LabelRecord) -> None:
        with self._alone():
            self._log.append(msgspec.json.encode(record) + b"\n")
            self._log.sync()
        push(self.path.parent)

    def records(self) -> Iterator[LabelRecord]:
        """Every line, in order."""
        for number, (_, line) in enumerate(self._log.scan(), 1):
            if not line.strip():
                continue
            try:
                yield msgspec.convert(msgspec.json.decode(line), LabelRecord, strict=False)
            except (ValueError, RecursionError) as error:
                place = f"{self.path}, line {number}"
                raise UserError(
                    f"a line is not a label: {error}", where=place, fix="mend or remove it"
                ) from None

    def latest(self, scorer: str) -> dict[tuple[Address, str], LabelRecord]:
        """The last word of each annotator on each answer, in the order in which they were given."""
        latest: dict[tuple[Address, str], LabelRecord] = {}
        for record in self.records():
            if record.scorer == scorer:
                latest.pop((record.address, record.annotator), None)
                latest[record.address, record.annotator] = record
        return latest

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Opening the file mends its end: not while somebody else is writing there."""
        try:
            make_folder(self.path.parent)
            guard = open_own(self.path, os.O_RDWR)
        except OSError as error:
            raise store_error(error, self.path) from error
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield
        finally:
            os.close(guard)


# ---- what there is so far


def agreement_in(file: LabelFile, scorer: str, *, ordered: bool) -> dict[str, RaterAgreement]:
    """Return how far the annotators agree where several labelled one answer, by coefficient.
    `ordered`: labels are grades, of which some are nearer to each other than others."""
    labels = {
        key: float(record.label)
        for key, record in file.latest(scorer).items()
        if isinstance(record.label, (int, float))
    }
    people = sorted({annotator for _, annotator in labels})
    if len(people) < 2:
        return {}
    answers = dict.fromkeys(address for address, _ in labels)
    votes = np.array([labels.get(pair, np.nan) for pair in product(answers, people)])
    votes = votes.reshape(-1, len(people))
    numbers: dict[str, int] = {}
    items = np.array([numbers.setdefault(answer.item, len(numbers)) for answer in answers])
    kappa = "cohen_kappa" if len(people) == 2 else "krippendorff_alpha"
    level = "ordinal" if ordered else "nominal"
    return {
        "percent": agreement(votes, items, coefficient="percent"),
        kappa: agreement(votes, items, coefficient=kappa, level=level),
    }


class Labelling:
    """`order` has the answers that this person labelled before, then those that wait; `views` what is shown of each.
    Every label is on the disk when `save` returns."""

    COLUMNS = (
        "label",
        "question",
        "reference",
        "answer",
        "second_answer",
        "item",
        "sample",
        "model",
        "response",
        "scorer",
        "annotator",
        "probability",
        "stratum",
        "stratum_size",
    )

    def __init__(
        self,
        path: str | Path | Source,
        label: str = "",
        annotator: str = "",
    ) -> None:
        self._source = path if isinstance(path, Source) else find_source(path, "evaluation")
        self.frame = read_frame(self._source, label)
        folder = self._source.path if self._source.path.is_dir() else self._source.path.parent
        self.file = LabelFile(folder / FILE)
        self.annotator = annotator
        self.order: Sequence[ChosenAnswer] = ()
        self.waiting: Sequence[ChosenAnswer] = ()
        self.views: dict[Address, AnswerView] = {}

    def choose(self, count: int, random: float, seed: int) -> None:
        """Choose the answers that this person labels, if they are to be `count` in all."""
        self.annotator = self.annotator or _login_name()
        latest = self.file.latest(self.frame.label)
        labelled: dict[Address, set[str]] = {}
        for (address, name), entry in latest.items():
            if entry.label is not None:
                labelled.setdefault(address, set()).add(name)
        before = chosen_before(self.frame, self.mine().values())
        self.waiting = waiting(
            self.frame, labelled, self.annotator, count=count, random=random, seed=seed
        )
        chosen = [*before, *self.waiting]
        self.look([answer.unit for answer in chosen if answer.unit.address not in self.views], seed)
        self.order = [answer for answer in chosen if answer.unit.address in self.views]

    def look(self, units: Sequence[Unit], seed: int) -> None:
        """Read what is shown of these answers, too."""
        if units:
            self.views |= views(self._source, units, seed)

    def mine(self) -> dict[Address, LabelRecord]:
        """This person's last word on each answer."""
        latest = self.file.latest(self.frame.label)
        return {
            address: record for (address, name), record in latest.items() if name == self.annotator
        }

    def save(
        self, answer: ChosenAnswer, label: float | None, note: str = "", tags: Sequence[str] = ()
    ) -> None:
        """Store a label; None takes the last one back."""
        by = {"scorer": self.frame.label, "annotator": self.annotator}
        self.file.append(record(answer, label=label, **by, note=note, tags=[*tags]))

    def agreement(self) -> dict[str, RaterAgreement]:
        """Return how far all annotators agree so far."""
        return agreement_in(self.file, self.frame.label, ordered=self.frame.scale is not None)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the answers that wait as rows of a file of labels, to be filled in. A pair is in
        the order of its players. A model is named only where the key of its answer does not say
        which one is meant."""
        for chosen in self.waiting:
            item, sample, model, response = chosen.unit.address
            view = self.views.get(chosen.unit.address)
            if view is None:
                continue
            first, *second = view.answers[::-1] if view.swapped else view.answers
            named = model if self.frame.match or not response else ""
            shown = ("", view.question, view.reference, first, "".join(second))
            about = (item, sample, named, response, self.frame.label, self.annotator)
            yield *shown, *about, chosen.probability, chosen.stratum, chosen.size


def label(
    path: str | Path,
    *,
    label: str = "",
    annotator: str = "",
    count: int = 50,
    random: float = 0.3,
    seed: int = 0,
) -> Labelling:
    """Choose the answers of an experiment that a person labels by hand, `count` in all: at least
    the share `random` at random, the rest because they tell most."""
    labelling = Labelling(path, label, annotator)
    labelling.choose(count, random, seed)
    return labelling


def _login_name() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        raise UserError(
            "who labels?", fix="add --annotator NAME: the login has no name here"
        ) from None
