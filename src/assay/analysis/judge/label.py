"""`assay judge label`: the answers of an experiment that one person labels, without seeing who gave them."""

from collections.abc import Sequence
from pathlib import Path

from assay.analysis.judge.label_frame import Address, read_frame
from assay.analysis.judge.label_records import LabelFile, Record, Summary, chosen_before, record, summarise
from assay.analysis.judge.label_views import View, views
from assay.analysis.judge.labelling import Chosen, waiting
from assay.datasets._labels import FILE
from assay.engine.experiment.sources import find_source
from assay.errors import UserError


class Labelling:
    """`order` has the answers that this person labelled before, then those that wait; `views` what is shown of each.
    Every label is on the disk when `save` returns."""

    def __init__(
        self, path: str | Path, label: str = "", annotator: str = "", output: str | Path | None = None
    ) -> None:
        self._source = find_source(path, "evaluation")
        self.frame = read_frame(self._source, label)
        folder = self._source.path if self._source.path.is_dir() else self._source.path.parent
        self.file = LabelFile(Path(output) if output else folder / FILE)
        self.annotator = annotator
        self.order: Sequence[Chosen] = ()
        self.waiting: Sequence[Chosen] = ()
        self.views: dict[Address, View] = {}
        self.done = 0

    def choose(self, count: int, random: float, seed: int) -> None:
        """Which answers this person labels, if they are to be `count` in all."""
        self.annotator = self.annotator or _login_name()
        latest = self.file.latest(self.frame.label)
        labelled: dict[Address, set[str]] = {}
        for (address, name), entry in latest.items():
            if entry.label is not None:
                labelled.setdefault(address, set()).add(name)
        before = chosen_before(self.frame, self.mine().values())
        self.done = len(before)
        self.waiting = waiting(self.frame, labelled, self.annotator, count=count, random=random, seed=seed)
        chosen = [*before, *self.waiting]
        self.views = views(self._source, [answer.unit for answer in chosen], seed)
        self.order = [answer for answer in chosen if answer.unit.address in self.views]

    def mine(self) -> dict[Address, Record]:
        """This person's last word on each answer."""
        latest = self.file.latest(self.frame.label)
        return {address: record for (address, name), record in latest.items() if name == self.annotator}

    def save(self, answer: Chosen, label: float | None, note: str = "") -> None:
        """Store a label; None takes the last one back."""
        self.file.append(record(answer, label=label, scorer=self.frame.label, annotator=self.annotator, note=note))

    def summary(self) -> Summary:
        """What is labelled so far by everybody, and how far they agree."""
        return summarise(self.file, self.frame.label, ordered=self.frame.scale is not None)


def label(
    path: str | Path,
    *,
    label: str = "",
    annotator: str = "",
    count: int = 50,
    random: float = 0.3,
    seed: int = 0,
    output: str | Path | None = None,
    choose: bool = True,
) -> Labelling:
    """Choose the answers of an experiment that a person labels by hand, `count` in all: at least the share `random` at
    random, the rest because they tell most. Without `choose` there is only the summary of what is labelled."""
    labelling = Labelling(path, label, annotator, output)
    if choose:
        labelling.choose(count, random, seed)
    return labelling


def _login_name() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        raise UserError("who labels?", fix="add --annotator NAME: the login has no name here") from None
