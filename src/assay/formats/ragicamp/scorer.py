"""RAGiCamp's metrics as scorers: `ragicamp.exact_match`, `ragicamp.bertscore`, `ragicamp.faithfulness` …

Each is one of ours with RAGiCamp's defaults and parameter names. What it scored 0 for want of references or retrieved
documents is an error row here: it says nothing about the answer.
"""

from collections.abc import Sequence
from typing import Literal

from assay.scorers import bertscore as core_bertscore, judge_correctness as core_correctness
from assay.scorers._parameters import ScorerCase
from assay.scorers._retrieved import FUNCTION_WORDS
from assay.scorers._transformers import check_model
from assay.scorers.answer_in_context import answer_in_context as core_answer_in_context
from assay.scorers.context_recall import context_recall as core_context_recall
from assay.scorers.exact_match import exact_match as core_exact_match
from assay.scorers.f1 import f1 as core_f1
from assay.scorers.faithfulness import faithfulness as core_faithfulness
from assay.scorers.hallucination import hallucination as core_hallucination
from assay.sdk import Context, Item, JsonMapping, JsonObject, Response, Score, UserError, scorer
from assay.text.expected import answers_listed

NLI_MODEL = "microsoft/deberta-base-mnli"
NAMES = (
    "exact_match",
    "f1",
    "bertscore",
    "bleurt",
    "llm_judge",
    "llm_judge_qa",
    "faithfulness",
    "hallucination",
    "answer_in_context",
    "context_recall",
)
# not by hallucination
_ALSO_COUNTED = {"this", "that", "these", "those", "it", "its", "they", "their"}


@scorer(name="ragicamp.exact_match", reads="ground_truth", version=1)
def exact_match(
    item: Item, response: Response, *, normalize: bool = True, use_stemming: bool = False
) -> Score:
    """The answer equals an accepted one, normalised as in SQuAD.

    Parameters:
    normalize: false compares the texts as they are
    use_stemming: compare the stems of English words
    """
    return core_exact_match(
        answers_listed(item),
        response,
        normalize="squad" if normalize else "none",
        strip_whitespace=normalize,
        stemming="nltk" if normalize and use_stemming else False,
    )


@scorer(name="ragicamp.f1", reads="ground_truth", verdicts=False, version=1)
def f1(
    item: Item, response: Response, *, normalize: bool = True, use_stemming: bool = False
) -> Score:
    """The F1 of the words that the answer shares with an accepted one, normalised as in SQuAD.

    Parameters:
    normalize: false counts as RAGiCamp's first version did
    use_stemming: compare the stems of English words
    """
    score = core_f1(
        answers_listed(item),
        response,
        normalize="squad" if normalize else "lower_spaces",
        stemming="nltk" if normalize and use_stemming else False,
    )
    if not normalize and not response.response.split():
        return Score(passed=False, score=0.0)
    return score


@scorer(
    name="ragicamp.bertscore",
    batch=256,
    reads="ground_truth",
    check=check_model,
    verdicts=False,
    version=1,
)
def bertscore(
    cases: Sequence[ScorerCase],
    *,
    model: str = "microsoft/deberta-xlarge-mnli",
    batch_size: int = 64,
) -> list[list[Score]]:
    """BERTScore, with labels `bertscore_precision`, `bertscore_recall` and `bertscore_f1`.

    Parameters:
    model: a folder with a model, or the name of one on the Hugging Face hub
    batch_size: how many texts go through the model at a time
    """
    found = core_bertscore.bertscore(cases, model=model, batch_size=batch_size)
    for labels in found:
        for label in labels:
            label.label = f"bertscore_{label.label[1:]}" if label.label else ""
    return found


def _refuse(params: JsonMapping, where: str) -> None:
    raise UserError(
        "BLEURT is not offered: its models need code that the transformers library does not have",
        where=where,
        fix="use ragicamp.bertscore, or judge_correctness",
    )


@scorer(name="ragicamp.bleurt", check=_refuse, version=1)
def bleurt(item: Item, response: Response) -> Score:
    """Refused, with the reason, when it is bound."""
    return Score(outcome="skipped")


def _check_judge(params: JsonMapping, where: str) -> None:
    core_correctness.check({**_DEFAULTS, **params}, where)


_DEFAULTS: JsonObject = {"threshold": None, "repeats": 1, "tries": 2, "params": None}


@scorer(name="ragicamp.llm_judge_qa", judge=True, check=_check_judge, version=1)
@scorer(name="ragicamp.llm_judge", judge=True, check=_check_judge, version=1)
async def llm_judge_qa(
    item: Item,
    response: Response,
    *,
    context: Context,
    model: str | list[str] = "",
    prompt: str = "correctness",
    judgment_type: Literal["binary", "ternary"] = "binary",
) -> list[Score]:
    """A model says whether the answer is correct (1), partly correct (0.5, with `ternary`) or not (0).

    Parameters:
    model: the name of the model that judges; by default the only `helper`, or the only model
    prompt: the name of a shipped prompt, a file, or the text itself
    judgment_type: what a verdict may be
    """
    return await core_correctness.judge_correctness(
        item, response, context=context, model=model, prompt=prompt, verdicts=judgment_type
    )


def _check_method(params: JsonMapping, where: str) -> None:
    if params["method"] == "llm":
        fix = "use the scorer judge_faithfulness; with `measure: hallucination` for the reverse"
        raise UserError("a language model judges in a scorer of its own", where=where, fix=fix)
    if params["method"] in ("nli", "claim_analysis"):
        check_model(params, where, "nli_model")


@scorer(name="ragicamp.faithfulness", batch=64, check=_check_method, version=1)
def faithfulness(
    cases: Sequence[ScorerCase],
    *,
    method: Literal["nli", "token_overlap", "llm"] = "nli",
    nli_model: str = NLI_MODEL,
    threshold: float = 0.5,
) -> list[Score]:
    """How far the retrieved documents support the answer; the score is not changed by the threshold.

    Parameters:
    method: by a model for natural language inference, by words, or by a judge, which is a scorer of its own
    nli_model: a folder with a model, or the name of one on the Hugging Face hub
    threshold: the least score that passes
    """
    return core_faithfulness(
        cases,
        method="nli" if method == "nli" else "token_overlap",
        model=nli_model,
        words="split",
        stopwords=sorted(FUNCTION_WORDS - _ALSO_COUNTED),
        threshold=threshold,
    )


@scorer(
    name="ragicamp.hallucination", batch=64, check=_check_method, lower_is_better=True, version=1
)
def hallucination(
    cases: Sequence[ScorerCase],
    *,
    method: Literal["nli", "simple", "claim_analysis"] = "nli",
    nli_model: str = NLI_MODEL,
    threshold: float = 0.5,
) -> list[Score]:
    """How much of the answer the retrieved documents do not support. Lower is better.

    Parameters:
    method: by a model for natural language inference, or by words; `claim_analysis` is `nli`, as in RAGiCamp
    nli_model: a folder with a model, or the name of one on the Hugging Face hub
    threshold: the score from which an answer fails
    """
    return core_hallucination(
        cases,
        method="token_overlap" if method == "simple" else "nli",
        model=nli_model,
        words="split",
        stopwords=sorted(FUNCTION_WORDS),
        threshold=threshold,
    )


@scorer(name="ragicamp.answer_in_context", version=1)
def answer_in_context(item: Item, response: Response, *, min_answer_len: int = 2) -> Score:
    """An accepted answer stands in the retrieved documents, be it within a word.

    Parameters:
    min_answer_len: accepted answers with fewer letters do not count
    """
    return core_answer_in_context(item, response, whole_words=False, shortest=min_answer_len)


@scorer(name="ragicamp.context_recall", verdicts=False, version=1)
def context_recall(
    item: Item, response: Response, *, min_sentence_words: int = 3, overlap_threshold: float = 0.8
) -> Score:
    """The share of an accepted answer's sentences that the retrieved documents hold.

    Parameters:
    min_sentence_words: shorter sentences do not count; an answer without a longer one scores 0
    overlap_threshold: the share of a sentence's words that is enough
    """
    return core_context_recall(
        item, response, shortest=min_sentence_words, overlap=overlap_threshold, whole_words=False
    )
