"""People as the judges of matches: their labels, as verdicts on pairs of answers.

The review of `assay view` shows pairs blind and writes what people decide. A match that nobody has
labelled yet is a row that waits; its key holds the verdict, so the next evaluation puts it in its
place.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from assay.datasets._labels import FILE, Label, majority, read_labels, verdict
from assay.sdk import Score, canonical, digest

WAITING = "waiting"  # in the details of a row: nobody has decided this match yet


class _PeopleVote(NamedTuple):
    annotator: str
    payoff: float
    response: str


class PeoplesVerdicts:
    """What people decided in the matches of one evaluation method; `digest` is another one when any of it is."""

    def __init__(self, labels: Iterable[Label], name: str) -> None:
        self._votes: dict[tuple[str, int, str], list[_PeopleVote]] = {}
        for label in labels:
            if label.scorer in ("", name):
                vote = _PeopleVote(
                    label.annotator, verdict(label, None, match=True), label.response
                )
                self._votes.setdefault((label.item, label.sample, label.model), []).append(vote)
        self.digest = digest("people", canonical(sorted(self._votes.items()))).hex()

    def of(self, item_id: str, sample: int, players: tuple[str, str], response: str) -> Score:
        """The verdict on a match; `response` is the key of the first player's answer, which a label may name."""
        cast = self._votes.get((item_id, sample, " vs ".join(players)), [])
        votes = {vote.annotator: vote.payoff for vote in cast if vote.response in ("", response)}
        if not votes:
            return Score(outcome="skipped", error="waiting for a person", details={WAITING: True})
        won = majority(votes.values())
        payoff = 0.5 if won is None else won
        return Score(score=payoff, passed=payoff > 0.5, details={"votes": votes})


def read_verdicts(name: str, folder: Path, file: Path | None = None) -> PeoplesVerdicts:
    """Return the verdicts in a file of labels; by default in that of the review in an experiment's
    folder, which may not be there yet."""
    source = file or folder / FILE
    if file is None and not source.exists():
        return PeoplesVerdicts([], name)
    return PeoplesVerdicts(read_labels(source, may_be_empty=file is None).rows, name)
