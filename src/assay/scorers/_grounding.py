"""How far retrieved passages support an answer: what `faithfulness` and `hallucination` are made of."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from assay.scorers._parameters import Grounded, ScorerCase, error_score, unparsed_score
from assay.scorers._retrieved import FUNCTION_WORDS, retrieved, support_of, texts
from assay.scorers._transformers import check_model, chunks, load
from assay.sdk import JsonMapping, Score, UserError
from assay.text.answers import Unparsed


class Judgement(NamedTuple):
    """Probabilities."""

    entailment: float
    contradiction: float


class Inference:
    def __init__(self, name: str, revision: str | None) -> None:
        self._loaded = load("AutoModelForSequenceClassification", name, revision)
        self.identity = self._loaded.identity
        labels: dict[int, str] = self._loaded.model.config.id2label
        places = [
            [at for at, label in labels.items() if label.lower().startswith(word)]
            for word in ("entail", "contra")
        ]
        if any(len(place) != 1 for place in places):
            shown = ", ".join(map(str, labels.values()))
            raise UserError(
                f"{name!r} is not a model for NLI: its labels are {shown}",
                fix="try microsoft/deberta-base-mnli",
            )
        self._places = [place[0] for place in places]

    def judge(
        self, pairs: Iterable[tuple[str, str]], batch_size: int
    ) -> dict[tuple[str, str], Judgement]:
        """Of each (passage, text), whether the passage entails or contradicts the text."""
        tokenizer, model, torch, longest, _ = self._loaded
        judgements: dict[tuple[str, str], Judgement] = {}
        for batch in chunks(list(dict.fromkeys(pairs)), batch_size):
            inputs: Any = tokenizer(
                [passage for passage, _ in batch],
                [text for _, text in batch],
                padding=True,
                truncation="longest_first",
                max_length=longest,
                return_tensors="pt",
            )
            with torch.inference_mode():
                chances = (
                    model(**inputs.to(model.device)).logits.float().softmax(-1)[:, self._places]
                )
            judgements.update(
                zip(batch, (Judgement(*row) for row in chances.tolist()), strict=True)
            )
        return judgements


@cache
def inference(name: str, revision: str | None) -> Inference:
    return Inference(name, revision)


class Grounds(NamedTuple):
    """What was found about one answer: the share of its words that are supported (None: it has none), or what the
    model thinks of each passage."""

    answer: str
    passages: list[str]
    share: float | None = None
    judgements: Sequence[Judgement] = ()
    details: JsonMapping = {}


def check(params: JsonMapping, where: str) -> None:
    if params["method"] == "nli":
        if not params["model"]:
            fix = "add `model:` with a folder or a name on the hub, such as microsoft/deberta-base-mnli"
            raise UserError("which model judges the passages?", where=where, fix=fix)
        check_model(params, where)


def score_grounds(
    cases: Sequence[ScorerCase], reading: Grounded, scored: Callable[[Grounds], Score]
) -> list[Score]:
    """Return of each case the score of what its passages say about its answer, or why nothing can be said."""
    return [
        entry if isinstance(entry, Score) else scored(entry) for entry in _support(cases, reading)
    ]


def _support(cases: Sequence[ScorerCase], reading: Grounded) -> list[Grounds | Score]:
    support: list[Grounds | Score] = []
    for case in cases:
        try:
            passages = texts(retrieved(case.item, case.responses[0], reading.documents))
            support.append(Grounds(reading.answer(case.responses[0]), passages))
        except Unparsed as error:
            support.append(unparsed_score(error))
        except LookupError as error:
            support.append(error_score(error))
    if reading.method == "nli":
        return _with_judgements(support, reading)
    left_out = FUNCTION_WORDS if reading.stopwords is None else reading.stopwords
    return [
        entry
        if isinstance(entry, Score)
        else entry._replace(share=support_of(entry.answer, entry.passages, reading.words, left_out))
        for entry in support
    ]


def _with_judgements(support: list[Grounds | Score], reading: Grounded) -> list[Grounds | Score]:
    model = inference(reading.model, reading.revision)
    answered = [entry for entry in support if isinstance(entry, Grounds)]
    asked = [(entry, [(passage, entry.answer) for passage in entry.passages]) for entry in answered]
    known = model.judge(
        (pair for entry, pairs in asked if entry.answer.strip() for pair in pairs),
        reading.batch_size,
    )
    judged = iter(
        entry._replace(
            judgements=[known[pair] for pair in pairs if pair in known],
            details={"model": model.identity},
        )
        for entry, pairs in asked
    )
    return [entry if isinstance(entry, Score) else next(judged) for entry in support]
