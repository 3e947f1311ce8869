"""Which scorer calls a set of runs asks for: one per response. What several responses ask for is in `matches`."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from assay.engine.calls.failures import UNANSWERED
from assay.engine.calls.progress import Note
from assay.engine.evaluate.bind import BoundScorer, Case
from assay.sdk import Item, Log, Response, Score
from assay.store.index import ItemIndex
from assay.store.keys import canonical, digest, evaluation_key
from assay.store.table.decode import row_decoder
from assay.text.answers import without_reasoning


class Call(msgspec.Struct, gc=False):
    """One scorer call: its case, the key of its rows, and, for a match, players in canonical order and the seat.

    `sides` names the player of each response where there are several. `settled` is its label where nobody has to be
    called: the item is missing, a response failed, people decided.
    """

    scorer: BoundScorer
    case: Case
    key: bytes
    players: tuple[str, str] | None = None
    seat: int | None = None
    settled: Score | None = None
    sides: tuple[str, ...] = ()


def calls_of(
    scorers: Sequence[BoundScorer],
    runs: Sequence[tuple[str, Log]],
    items: ItemIndex,
    note: Note = lambda text: None,
) -> Iterator[Call]:
    """Every call of scorers that look at one response, in the order of the responses."""
    single = [scorer for scorer in scorers if not scorer.of_several]
    decode = response_decoder()
    seen = ItemDigests()
    for _, log in runs if single else ():
        known, problem, expected = Item(id=""), None, list[bytes]()
        for _, line, response in readable(log, decode, note):
            # the samples of one item are mostly neighbours
            if response.item_id != known.id or not expected:
                item = items.get(response.item_id)
                known = item or Item(id=response.item_id)
                problem = None
                if item is None:
                    missing = f"the item {response.item_id!r} is not in the dataset"
                    problem = Score(outcome="errored", error=missing)
                expected = [seen.of(known, scorer) for scorer in single]
            answers = [(response.key, content_of(response))]
            case = Case(known, [response], [line])
            settled = problem
            if settled is None and response.outcome != "ok":
                settled = failure_label(response)
            stripped = answers
            if response.outcome == "ok" and has_reasoning(response):
                stripped = [(response.key, content_of(response, stripped=True))]
            for scorer, wanted in zip(single, expected, strict=True):
                seen_answers = stripped if scorer.strips_reasoning else answers
                yield Call(
                    scorer,
                    case,
                    evaluation_key(scorer.identity, wanted, seen_answers, None),
                    settled=settled,
                )


def failure_label(response: Response) -> Score:
    """The label of a response that holds no answer."""
    assert response.outcome != "ok"
    why = f": {response.error}" if response.error else ""
    return Score(
        outcome=response.outcome,
        error=f"{UNANSWERED}{response.model_name!r} is {response.outcome}{why}",
    )


def response_decoder() -> Callable[[bytes], Response]:
    """Strict and fast for our rows, tolerant (NaN, Infinity, missing keys) for foreign ones."""
    decode_row = row_decoder(Response, strict=False)

    def decode(line: bytes) -> Response:
        row = decode_row(line)
        if not row.key:
            row.key = digest("line", line).hex()
            if row.error and row.outcome == "ok":
                row.outcome = "errored"
        return row

    return decode


def readable(
    log: Log, decode: Callable[[bytes], Response], note: Note = lambda text: None
) -> Iterator[tuple[int, bytes, Response]]:
    """(position, line, response) of every line that holds one; the run that owns the file sets the others aside."""
    unreadable = 0
    for position, line in log.scan():
        try:
            response = decode(line)
        except (ValueError, RecursionError):
            unreadable += bool(line.strip())
            continue
        yield position, line, response
    if unreadable:
        note(
            f"{unreadable} lines of the responses cannot be read and are not scored: run inference again"
        )


def content_of(response: Response, *, stripped: bool = False) -> bytes:
    """Return what a scorer can see of a response's answer, with or without its reasoning: rows that
    differ in it are scored anew."""
    output = b"" if response.output is None else canonical(response.output)
    text = without_reasoning(response.response) if stripped else response.response
    return digest("content", text.encode(), output, response.outcome.encode())


def has_reasoning(response: Response) -> bool:
    """Return whether the answer has reasoning before it."""
    text = response.response
    return "<" in text and without_reasoning(text) != text


class ItemDigests:
    """What scorers see of an item, as a digest; neighbouring calls mostly ask for the same item."""

    def __init__(self) -> None:
        self._item: Item | None = None
        self._known: dict[str, bytes] = {}

    def of(self, item: Item, scorer: BoundScorer) -> bytes:
        if item is not self._item:
            self._item = item
            self._known = {}
        known = self._known.get(scorer.reads)
        if known is None:
            seen = item.ground_truth
            if scorer.reads == "item":
                seen = (item.ground_truth, item.data, item.metadata, item.extra)
            known = self._known[scorer.reads] = digest("seen", canonical(seen))
        return known
