"""How far retrieved passages support an answer: what `faithfulness` and `hallucination` are made of."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from assay.errors import UserError
from assay.interfaces import Score
from assay.scorers._cases import Case, failed
from assay.scorers._inference import Judgement, inference
from assay.scorers._parameters import Grounded
from assay.scorers._retrieved import retrieved, texts
from assay.scorers._transformers import check_model
from assay.text.answers import Unparsed
from assay.text.support import FUNCTION_WORDS, supported


class Grounds(NamedTuple):
    """What was found about one answer: the share of its words that are supported (None: it has none), or what the
    model thinks of each passage."""

    answer: str
    passages: list[str]
    share: float | None = None
    judgements: Sequence[Judgement] = ()
    details: Mapping[str, Any] = {}


def check(params: Mapping[str, Any], where: str) -> None:
    if params["method"] == "nli":
        if not params["model"]:
            fix = "add `model:` with a folder or a name on the hub, such as microsoft/deberta-base-mnli"
            raise UserError("which model judges the passages?", where=where, fix=fix)
        check_model(params, where)


def grounds(cases: Sequence[Case], reading: Grounded) -> list[Grounds | Score]:
    """Of each case what its passages say about its answer, or why nothing can be said."""
    support: list[Grounds | Score] = []
    for case in cases:
        try:
            passages = texts(retrieved(case.item, case.responses[0], reading.documents))
            support.append(Grounds(reading.answer(case.responses[0]), passages))
        except Unparsed as error:
            support.append(Score(outcome="unparsed", error=str(error)))
        except LookupError as error:
            support.append(failed(error))
    if reading.method == "nli":
        return _inferred(support, reading)
    left_out = FUNCTION_WORDS if reading.stopwords is None else reading.stopwords
    return [
        entry
        if isinstance(entry, Score)
        else entry._replace(share=supported(entry.answer, entry.passages, reading.words, left_out))
        for entry in support
    ]


def _inferred(support: list[Grounds | Score], reading: Grounded) -> list[Grounds | Score]:
    model = inference(reading.model, reading.revision)
    answered = [entry for entry in support if isinstance(entry, Grounds)]
    asked = [(entry, [(passage, entry.answer) for passage in entry.passages]) for entry in answered]
    known = model.judge((pair for entry, pairs in asked if entry.answer.strip() for pair in pairs), reading.batch_size)
    judged = iter(
        entry._replace(judgements=[known[pair] for pair in pairs if pair in known], details={"model": model.identity})
        for entry, pairs in asked
    )
    return [entry if isinstance(entry, Score) else next(judged) for entry in support]
